"""The dispatch of events to hooks: one chain, one order, two manners.

Order: ascending `priority`; hooks of equal priority in the order of their registration. An event
that may be changed goes from hook to hook, each seeing what the one before made of it; a hook that
raises there, whatever it is, ends the call and nothing else. An event that only tells is told to
everybody; a hook that raises there, whatever it is, is reported and skipped.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Protocol, TypeVar, get_args, get_origin, get_type_hints, runtime_checkable

from harness.errors import ConfigError, HookError, PersistenceError
from harness.hooks.events import Event
from harness.hooks.handing import own
from harness.hooks.misfits import Misfit, validated
from harness.hooks.uninterrupted import handed_on, is_the_end_of
from harness.text import error_text
from harness.tools.threads import run_in_own_thread

__all__ = ["DEFAULT_PRIORITY", "FunctionHook", "Hook", "HookChain", "as_hook", "where"]

log = logging.getLogger("harness.hooks")

DEFAULT_PRIORITY = 100
E = TypeVar("E", bound=Event)


@runtime_checkable
class Hook(Protocol):
    """Anything with `on_event`. It may be sync (it then runs in a thread) or async.

    It returns None to leave the event as it is, or `event.change(...)`. Optional attributes:
    `priority` (int, default 100), `events` (the event classes it wants, default all) and
    `tools()` (tools it brings along). One hook object serves all calls at once: what belongs to a
    call belongs into `event.scope`, never on the hook.
    """

    def on_event(self, event: Any) -> Any:
        """React to an event; see the class."""
        ...


class FunctionHook:
    """A plain function as a hook; the annotation of its argument says which events it wants."""

    def __init__(self, function: Callable[[Any], Any], priority: int = DEFAULT_PRIORITY) -> None:
        self.function = function
        self.priority = priority
        self.events = _wanted_by(function)

    def on_event(self, event: Event) -> Any:
        """Call the function."""
        return self.function(event)


class HookChain:
    """The hooks of one agent in their order. Immutable, shared by all calls."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self.hooks: tuple[Hook, ...] = tuple(sorted(hooks, key=_priority_of))
        self._foreign = tuple(hook for hook in self.hooks if not _is_ours(hook))

    def wants(self, kind: type[Event]) -> bool:
        """Whether any hook listens to this kind of event."""
        return any(_listens(hook, kind) for hook in self.hooks)

    def own(self, event: E) -> E:
        """The event as a user's hooks are handed it: what they edit in place is theirs. As it is where none listens."""
        return own(event) if any(_listens(hook, type(event)) for hook in self._foreign) else event

    async def change(self, event: E) -> E:
        """Let each hook change the event in turn. Raises `HookError` naming the hook that raised.

        That is so for `sys.exit()` too: the loop serves others. A `KeyboardInterrupt` goes on to the process as well.
        """
        for hook in self.hooks:
            if _listens(hook, type(event)):
                event = _checked(hook, event, await self._ask(hook, event))
        return event

    async def notify(self, event: Event) -> list[tuple[Hook, BaseException]]:
        """Tell each hook; what a hook raises is logged and returned, and the next hook is told.

        Not even what would end the process ends the call: a `KeyboardInterrupt` is the process's, see `handed_on`.
        A cancellation cuts short the hook it meets. The others are told all the same, and then it is
        raised again: a snapshot is written whatever the hook before it is waiting for.
        """
        failures: list[tuple[Hook, BaseException]] = []
        cancelled: asyncio.CancelledError | None = None
        task = asyncio.current_task()
        for hook in self.hooks:
            if not _listens(hook, type(event)):
                continue
            try:
                await _answer(hook, event)
            except BaseException as error:
                if is_the_end_of(task, error):
                    if not isinstance(error, asyncio.CancelledError):
                        raise
                    cancelled = error
                    continue
                handed_on(error)
                log.exception("hook %s failed on %s; the call goes on", where(hook), type(event).__name__)
                failures.append((hook, error))
        if cancelled is not None:
            raise cancelled
        return failures

    @staticmethod
    async def _ask(hook: Hook, event: Event) -> Any:
        task = asyncio.current_task()
        try:
            return await _answer(hook, event)
        except PersistenceError:
            raise  # the disk refused, which is no fault of the hook's
        except BaseException as error:
            if is_the_end_of(task, error):
                raise
            handed_on(error)
            raise HookError(
                f"hook {where(hook)} raised {type(error).__name__} on {type(event).__name__}: {error_text(error)}"
            ) from error


def _is_ours(hook: Hook) -> bool:
    """Whether it is one of this library's, which edit nothing in place and are spared the copies."""
    return type(hook).__module__.startswith("harness.hooks.") and not isinstance(hook, FunctionHook)


def _priority_of(hook: Hook) -> int:
    """The hook's priority; lower runs first."""
    return int(getattr(hook, "priority", DEFAULT_PRIORITY))


def as_hook(candidate: Any, priority: int | None = None) -> Hook:
    """A hook from an object with `on_event` or from a function. Raises `ConfigError`."""
    if isinstance(candidate, type):
        raise ConfigError(f"{candidate.__name__} is a class; give a hook made from it, as in {candidate.__name__}()")
    if priority is not None:
        _check_priority("a hook's priority", priority)
    if hasattr(candidate, "on_event"):
        _check_object(candidate)
        if priority is not None:
            raise ConfigError(f"{type(candidate).__name__} says its priority itself; set its attribute `priority`")
        return candidate  # type: ignore[no-any-return]  # structural: anything with on_event is a Hook
    if callable(candidate):
        _check_signature(candidate, candidate)
        return FunctionHook(candidate, DEFAULT_PRIORITY if priority is None else priority)
    raise ConfigError(f"{candidate!r} is no hook; give an object with on_event(event) or a function of one event")


def _check_object(hook: Any) -> None:
    """Raise `ConfigError` for an object that could not be asked once it is in a chain."""
    name = type(hook).__name__
    if not callable(hook.on_event):
        raise ConfigError(f"{name}.on_event is a {type(hook.on_event).__name__}; make it a method of one event")
    _check_signature(hook, hook.on_event)
    _check_priority(f"{name}.priority", getattr(hook, "priority", DEFAULT_PRIORITY))
    wanted = getattr(hook, "events", None)
    if wanted is not None and not (isinstance(wanted, Collection) and all(map(_is_event, wanted))):
        raise ConfigError(f"{name}.events is {wanted!r}; give a tuple of event classes, as (PreCall,)")


def _check_priority(what: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{what} is {value!r}; give a whole number, lower runs first")


def _check_signature(hook: Any, target: Callable[..., Any]) -> None:
    try:
        inspect.signature(target).bind(None)
    except TypeError:
        name = getattr(target, "__qualname__", type(hook).__name__)
        raise ConfigError(f"hook {name} cannot be called with one event; let it take one argument, the event") from None
    except ValueError:  # a built-in without a signature
        return


def _is_event(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, Event)


async def _answer(hook: Hook, event: Event) -> Any:
    """The hook's answer. A sync hook runs in a thread of its own, in the call's context."""
    target: Callable[[Any], Any] = hook.function if isinstance(hook, FunctionHook) else hook.on_event
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__):
        answer: Awaitable[Any] = target(event)
        return await answer
    result = await run_in_own_thread(f"hook {where(hook)} on {type(event).__name__}", target, event)
    return await result if inspect.isawaitable(result) else result


def _listens(hook: Hook, kind: type[Event]) -> bool:
    wanted = getattr(hook, "events", None)
    return wanted is None or issubclass(kind, tuple(wanted))


def _checked(hook: Hook, before: E, after: Any) -> E:
    try:
        return validated(before, after)
    except Misfit as wrong:
        raise HookError(f"hook {where(hook)} {wrong}") from None


def where(hook: Hook) -> str:
    """The hook's name and the place of its code, for messages to its author."""
    target: Any = hook.function if isinstance(hook, FunctionHook) else type(hook)
    name = getattr(target, "__qualname__", repr(target))
    code = getattr(target, "__code__", None) or getattr(getattr(type(hook), "on_event", None), "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def _wanted_by(function: Callable[[Any], Any]) -> tuple[type[Event], ...] | None:
    try:
        hints = get_type_hints(function)
    except Exception:  # noqa: BLE001 - an annotation that cannot be evaluated here restricts nothing
        return None
    first = hints.get(_first_name(function))
    if isinstance(first, type) and first not in (Any, object, Event) and get_origin(first) is None:
        if not issubclass(first, Event):
            name = getattr(function, "__qualname__", repr(function))
            raise ConfigError(
                f"hook {name} asks for a {first.__name__}, which is no event; write an event class such as PreCall"
            )
        return (first,)
    members = get_args(first)
    return tuple(members) if members and all(map(_is_event, members)) else None


def _first_name(function: Callable[[Any], Any]) -> str:
    try:
        return next(iter(inspect.signature(function).parameters), "")
    except ValueError:  # a built-in without a signature
        return ""
