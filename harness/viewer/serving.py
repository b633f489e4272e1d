"""The viewer as a server of its own, on the loopback address."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn
from starlette.applications import Starlette

from harness.errors import ConfigError

__all__ = ["serve"]


async def serve(app: Starlette, *, port: int, started: Callable[[int], None]) -> None:
    """Answer on 127.0.0.1 until interrupted; `started` is told the port once the server can be reached.

    Port 0 takes a free one. Raises `ConfigError` when the port is taken.
    """
    with closing(_listening(port)) as listener:
        config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, lifespan="off")
        started(listener.getsockname()[1])
        await uvicorn.Server(config).serve(sockets=[listener])


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
