"""The viewer as a server of its own, on the loopback address."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from harness.errors import ConfigError

__all__ = ["USUAL_PORT", "serve"]


USUAL_PORT = 43117
"""Taken where any port will do and it is free: browsers remember by it where somebody stopped reading."""
_LEFT = 1
"""Seconds that answers under way have left when the server is stopped."""
_CUT = 1
"""Seconds in which those that are cut short must have let go of what they hold: worker processes, files."""


async def serve(app: Starlette, *, port: int, started: Callable[[int], None]) -> None:
    """Answer on 127.0.0.1 until interrupted; `started` is told the port once the server can be reached.

    What is being answered then has a second left; a second signal takes that, too. Port 0 takes `USUAL_PORT`, or a
    free one where that is taken. Raises `ConfigError` when the port is taken.
    """
    with closing(_listening(port) if port else _listening_anywhere()) as listener:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=_LEFT,
        )
        await _Server(config, partial(started, listener.getsockname()[1])).serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Ends soon after it is told to, whatever its clients do: one that does not read would be waited for for ever."""

    def __init__(self, config: uvicorn.Config, tell: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell that it can be reached: not before a signal would end it in good order."""
        await super().startup(sockets)
        self._tell()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; at a second signal of any kind at once."""
        self.force_exit = self.force_exit or self.should_exit
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for answers under way, then for those that are cut short to let go of what they hold."""
        with _without_word_of_those_cut_short():
            await super().shutdown(sockets)
            cut = list(self.server_state.tasks)
            for task in cut:
                task.cancel()
            if cut:
                await asyncio.wait(cut, timeout=_CUT)
            for connection in list(self.server_state.connections):
                connection.transport.abort()  # what it still holds nobody reads


@contextmanager
def _without_word_of_those_cut_short() -> Iterator[None]:
    """The server logs answers that it cuts short as faults of the application, each with a traceback."""
    log = logging.getLogger("uvicorn.error")
    log.addFilter(_is_fault)
    try:
        yield
    finally:
        log.removeFilter(_is_fault)


def _is_fault(record: logging.LogRecord) -> bool:
    was_cut = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not was_cut and not str(record.msg).startswith("Cancel ")


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
