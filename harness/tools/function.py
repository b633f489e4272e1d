"""`@tool` and `as_tool`: from a typed Python function to a `Tool`."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar, overload

from harness.context import CallScope
from harness.errors import ConfigError
from harness.messages import BlockBase, Media, Msg
from harness.models.base import ToolSpec
from harness.text import clean_text
from harness.tools.base import Emit, Function, Tool, ToolCall
from harness.tools.docstring import parse_docstring
from harness.tools.render import as_text
from harness.tools.signature import Plan, place_of, plan_function
from harness.tools.threads import run_in_own_thread

__all__ = ["as_tool", "is_tool_function", "tool"]

F = TypeVar("F", bound=Function)

_MARK = "__harness_tool__"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, eq=False)
class _Definition:
    spec: ToolSpec
    group: str
    timeout: float | None
    plan: Plan
    origin: str


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, timeout: float | None = None, group: str = ""
) -> Callable[[F], F]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    group: str = "",
) -> Any:
    """Mark a typed function or method as a tool; it stays callable as before.

    The function may be plain (it then runs in a thread), async, or a generator of either kind, whose
    pieces are shown as they come and make up the result. Its annotations become the schema, its
    docstring the descriptions. Parameters of the types named in `harness.tools.injection` are filled
    in by the harness and hidden from the model.

    name         what the model calls it; the function's own name by default
    description  what the model reads; the docstring up to its first section by default
    timeout      seconds a call may take
    group        the tool group it belongs to

    Raises `ConfigError` naming the function and the parameter that cannot work.
    """
    local_names = _local_names(function)

    def mark(target: Function) -> Function:
        if not inspect.isroutine(target) or isinstance(target, staticmethod | classmethod):
            raise ConfigError(f"{target!r} is no function; put @tool directly on a function (below @staticmethod)")
        setattr(target, _MARK, _define(target, name, description, timeout, group, local_names or _local_names(target)))
        return target

    return mark if function is None else mark(function)


def is_tool_function(value: object) -> bool:
    """Whether this is a function or method that carries `@tool`."""
    return inspect.isroutine(value) and isinstance(getattr(value, _MARK, None), _Definition)


def as_tool(function: Function) -> Tool:
    """The `Tool` of a function, a bound method, or one marked with `@tool`. Raises `ConfigError`."""
    if isinstance(function, Tool):
        return function
    if not inspect.isroutine(function):
        raise ConfigError(f"{function!r} is no function and no Tool; give a function, or an object with @tool methods")
    found = getattr(function, _MARK, None)
    made = found if isinstance(found, _Definition) else _define(function, None, None, None, "", {})
    return Tool(made.spec, _Handler(function, made.plan), made.group, made.timeout, made.origin)


def _define(
    function: Function,
    name: str | None,
    description: str | None,
    timeout: float | None,
    group: str,
    local_names: Mapping[str, Any],
) -> _Definition:
    name = name or str(getattr(function, "__name__", ""))
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"tool {place_of(function)}: {name!r} is no name that providers take; "
            "use up to 64 of A-Z a-z 0-9 _ - in @tool(name=…)"
        )
    if timeout is not None and not timeout > 0:
        raise ConfigError(f"tool {place_of(function)}: a timeout of {timeout} s; use more than 0, or None for no limit")
    docs = parse_docstring(function.__doc__)
    plan = plan_function(function, docs, local_names)
    spec = ToolSpec(name, docs.description if description is None else description, plan.schema)
    return _Definition(spec, group, timeout, plan, place_of(function))


def _local_names(function: Function | None) -> dict[str, Any]:
    """Names of the functions and classes around this one: its annotations may use them."""
    place = getattr(function, "__qualname__", "")
    frame = sys._getframe(1)
    names: dict[str, Any] = {}
    while frame is not None:
        if place.startswith(frame.f_code.co_qualname + "."):
            names = {**frame.f_locals, **names}
        frame = frame.f_back  # type: ignore[assignment]  # None at the outermost frame ends the loop
    return names


@dataclass(frozen=True, slots=True, eq=False)
class _Handler:
    """Runs one function as a tool: fills in its arguments, collects its pieces."""

    function: Function
    plan: Plan

    async def __call__(self, call: ToolCall, scope: CallScope, emit: Emit) -> object:
        arguments = self.plan.arguments(call, scope)
        if inspect.isasyncgenfunction(self.function):
            return await _drained(self.function(**arguments), emit)
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**arguments)
        what, over = f"tool {call.name}", threading.Event()
        try:
            value = await run_in_own_thread(what, _in_thread, self.function, arguments, _across(emit), over)
        finally:
            over.set()  # a generator in a thread stops at its next piece when nobody waits any more
        return await value if inspect.isawaitable(value) else value


def _across(emit: Emit) -> Emit:
    """The same, to be called from a thread."""
    loop = asyncio.get_running_loop()
    return lambda piece: _ignore_handle(loop.call_soon_threadsafe(emit, piece))


def _ignore_handle(_handle: asyncio.Handle) -> None:
    return None


def _in_thread(function: Function, arguments: Mapping[str, Any], emit: Emit, over: threading.Event) -> object:
    value = function(**arguments)
    return _drained_here(value, emit, over) if inspect.isgenerator(value) else value


async def _drained(pieces: AsyncIterator[object], emit: Emit) -> object:
    collected: list[object] = []
    try:
        async for piece in pieces:
            _collect(piece, collected, emit)
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:  # here and now, in this call's context, also when it was stopped
            await close()
    return _joined(collected)


def _drained_here(pieces: Generator[object, Any, Any], emit: Emit, over: threading.Event) -> object:
    collected: list[object] = []
    with contextlib.closing(pieces):
        for piece in pieces:
            if over.is_set():
                break
            _collect(piece, collected, emit)
    return _joined(collected)


def _collect(piece: object, collected: list[object], emit: Emit) -> None:
    if piece is None:
        return
    if not isinstance(piece, str | BlockBase | Media | Msg):
        piece = as_text(piece)
    collected.append(piece)
    if isinstance(piece, str):
        emit(clean_text(piece))


def _joined(pieces: list[object]) -> object:
    """Neighbouring texts become one; a single value is itself."""
    joined: list[object] = []
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        run = list(group)
        joined.extend(["".join(map(str, run))] if is_text else run)
    return joined[0] if len(joined) == 1 else joined or None
