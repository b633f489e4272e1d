"""A tool as the loop sees it: what the model is shown, and how a call of it becomes a result.

Whatever a tool does, the loop gets a `ToolResult`: errors, timeouts and odd values become text the
model can read. Only a cancellation of the call itself passes through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness.context import CallScope, enter_scope
from harness.errors import FilesystemError, HarnessError, InvalidId, ToolError, ToolTimeout
from harness.messages import ToolResult
from harness.models.base import ToolSpec
from harness.text import error_text, said
from harness.tools.render import error_result, render_result

__all__ = ["Emit", "Function", "Handler", "Tool", "ToolCall"]

log = logging.getLogger("harness.tools")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One request of the model for a tool. A tool that needs the call's id asks for it by this type."""

    id: str
    name: str
    input: Mapping[str, Any] = field(default_factory=dict)


Emit: TypeAlias = Callable[[str], None]
"""Takes a piece of a tool's output while the tool still runs. Called on the loop's own thread."""

Function: TypeAlias = Callable[..., Any]
"""A function or bound method that can be made a tool."""

Handler: TypeAlias = Callable[[ToolCall, CallScope, Emit], Awaitable[object]]
"""Does a tool's work: any value is a result, any exception an error result. It checks its own input."""


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A tool, ready to be called from many calls at once.

    Made from functions by `harness.tools.as_tool`; made by hand where the schema comes from
    elsewhere (a server's tools, a recording).

    group    the tool group it belongs to; empty for none, and then it is always on
    timeout  seconds one call may take; None for no limit. A coroutine is cancelled then. A function that
             runs in a thread cannot be stopped: its call ends in time, its thread when the function
             returns, which the log tells. Either way the model is told that an effect is possible
    origin   where it was defined, for messages to developers
    """

    spec: ToolSpec
    handler: Handler
    group: str = ""
    timeout: float | None = None
    origin: str = ""

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.spec.name

    async def run(
        self, call: ToolCall, scope: CallScope, emit: Emit | None = None, timeout: float | None = None
    ) -> ToolResult:
        """The result of one call, which carries the call's id. Never raises but for cancellation.

        `timeout` is the limit in seconds for a tool that names none itself.
        """
        limit = timeout if self.timeout is None else self.timeout
        pieces = _Pieces(emit)
        with enter_scope(scope), pieces:
            try:
                value = await self._within(limit, call, scope, pieces.emit)
                return await render_result(call.id, call.name, value)
            except asyncio.CancelledError:
                if _is_being_cancelled():
                    raise
                return self._failed(call, scope, "Error: CancelledError: something the tool waited for was cancelled")
            except (ToolError, FilesystemError, InvalidId) as error:
                log.debug("tool %s refused call %s: %s", self.name, call.id, error)
                return error_result(call.id, call.name, _error_text(error))
            except (Exception, SystemExit) as error:  # noqa: BLE001  # tools are foreign; sys.exit in one must not end the service
                return self._failed(call, scope, _error_text(error))

    async def _within(self, seconds: float | None, call: ToolCall, scope: CallScope, emit: Emit) -> object:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self.handler(call, scope, emit)
        except TimeoutError:
            if not limit.expired():
                raise
            log.warning("tool %s took longer than %g s (%s, call %s)", self.name, seconds, scope, call.id)
            raise ToolTimeout(
                f"Error: {self.name} took longer than {seconds:g} s and is not waited for any more; whether it has an "
                "effect is not known: see what came of it before you ask for the same again"
            ) from None

    def _failed(self, call: ToolCall, scope: CallScope, text: str) -> ToolResult:
        log.warning("tool %s failed (%s, call %s)", self.name, scope, call.id, exc_info=True)  # noqa: LOG014  # called in handlers
        return error_result(call.id, call.name, text)


class _Pieces:
    """Passes pieces on until the call has its result: a thread that was left behind may go on emitting."""

    def __init__(self, emit: Emit | None) -> None:
        self._emit = emit

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_error: object) -> None:
        self._emit = None

    def emit(self, piece: str) -> None:
        if self._emit is not None:
            self._emit(piece)


def _is_being_cancelled() -> bool:
    """Whether it is this task that is to end, and not only something the tool waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _error_text(error: BaseException) -> str:
    if isinstance(error, ToolError):
        return error_text(error)
    if isinstance(error, HarnessError):  # their messages are sentences already
        return f"Error: {error_text(error)}"
    return f"Error: {said(error)}"
