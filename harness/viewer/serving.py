"""The viewer as a server of its own, on the loopback address."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn
from starlette.applications import Starlette

from harness.errors import ConfigError

__all__ = ["USUAL_PORT", "serve"]


USUAL_PORT = 43117
"""Taken where any port will do and it is free: browsers remember by it where somebody stopped reading."""


async def serve(app: Starlette, *, port: int, started: Callable[[int], None]) -> None:
    """Answer on 127.0.0.1 until interrupted; `started` is told the port once the server can be reached.

    Port 0 takes `USUAL_PORT`, or a free one where that is taken. Raises `ConfigError` when the port is taken.
    """
    with closing(_listening(port) if port else _listening_anywhere()) as listener:
        config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, lifespan="off")
        started(listener.getsockname()[1])
        await uvicorn.Server(config).serve(sockets=[listener])


def _listening_anywhere() -> socket.socket:
    try:
        return _listening(USUAL_PORT)
    except ConfigError:
        return _listening(0)


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(f"port {port} of 127.0.0.1 cannot be used ({error}); choose another with --port") from error
    return listener
