"""Dispatch: one order, two manners, and a bad hook is named."""

import asyncio
import dataclasses
import functools
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from harness.context import CallScope, RuntimeContext
from harness.errors import ConfigError, HookError
from harness.hooks import (
    Error,
    Event,
    Hook,
    HookChain,
    Notice,
    PostActing,
    PostReasoning,
    PreActing,
    PreCall,
    PreReasoning,
    ReasoningChunk,
    SystemPart,
    as_hook,
)
from harness.messages import Msg, ToolResult, ToolUse

SCOPE = CallScope(RuntimeContext(session_id="s1", user_id="alice"), ("alice",), "notes", "s1", MappingProxyType({}))
PRE_CALL = PreCall(scope=SCOPE, messages=(Msg.user("hi"),))
CHUNK = ReasoningChunk(scope=SCOPE, text="x")


class Named:
    """A hook with a name and a priority that notes when it is asked."""

    def __init__(self, name: str, order: list[str], priority: int | None = None) -> None:
        self.name = name
        self.order = order
        if priority is not None:
            self.priority = priority

    async def on_event(self, event: Event) -> None:
        self.order.append(self.name)


async def test_lower_priorities_come_first_and_ties_in_the_order_of_registration() -> None:
    order: list[str] = []
    late, early, first, second, last = (
        Named("late", order, 900), Named("early", order, 0), Named("first", order), Named("second", order, 100),
        Named("last", order, 901),
    )  # fmt: skip
    await HookChain([late, first, last, second, early]).change(PRE_CALL)
    assert order == ["early", "first", "second", "late", "last"]


async def test_events_that_tell_keep_the_same_order() -> None:
    order: list[str] = []
    await HookChain([Named("b", order, 2), Named("a", order, 1)]).notify(CHUNK)
    assert order == ["a", "b"]


async def test_each_hook_sees_what_the_one_before_made() -> None:
    async def one(event: PreCall) -> PreCall:
        return event.change(context=(*event.context, "one"))

    def two(event: PreCall) -> PreCall:
        return event.change(context=(*event.context, "two"))

    changed = await HookChain([as_hook(one), as_hook(two)]).change(PRE_CALL)
    assert changed.context == ("one", "two")
    assert PRE_CALL.context == ()


async def test_none_leaves_the_event_as_it_is() -> None:
    async def nothing(event: PreCall) -> None:
        return None

    assert await HookChain([as_hook(nothing)]).change(PRE_CALL) is PRE_CALL


async def test_the_annotation_of_a_function_says_what_it_hears() -> None:
    heard: list[str] = []

    def one(event: PreCall) -> None:
        heard.append(f"one {type(event).__name__}")

    async def two(event: PreCall | ReasoningChunk) -> None:
        heard.append(f"two {type(event).__name__}")

    def all_of_them(event: Event) -> None:
        heard.append(f"all {type(event).__name__}")

    def untyped(event) -> None:  # type: ignore[no-untyped-def]
        heard.append(f"untyped {type(event).__name__}")

    chain = HookChain([as_hook(hook) for hook in (one, two, all_of_them, untyped)])
    await chain.change(PRE_CALL)
    await chain.notify(CHUNK)
    assert heard == [
        "one PreCall", "two PreCall", "all PreCall", "untyped PreCall",
        "two ReasoningChunk", "all ReasoningChunk", "untyped ReasoningChunk",
    ]  # fmt: skip


async def test_an_object_says_with_events_what_it_hears() -> None:
    heard: list[str] = []

    class Choosy:
        events = (Notice, ReasoningChunk)

        def on_event(self, event: Event) -> None:
            heard.append(type(event).__name__)

    chain = HookChain([Choosy()])
    await chain.change(PRE_CALL)
    await chain.notify(CHUNK)
    assert heard == ["ReasoningChunk"]
    assert [chain.wants(kind) for kind in (PreCall, Notice, Error)] == [False, True, False]


async def test_hooks_may_be_callables_of_every_kind() -> None:
    heard: list[str] = []

    class Callable:
        async def __call__(self, event: Event) -> None:
            heard.append("object")

    async def with_word(word: str, event: Event) -> None:
        heard.append(word)

    class Bound:
        def method(self, event: Event) -> None:
            heard.append("method")

    hooks = [Callable(), functools.partial(with_word, "partial"), Bound().method, lambda event: heard.append("lambda")]
    await HookChain([as_hook(hook) for hook in hooks]).notify(CHUNK)
    assert heard == ["object", "partial", "method", "lambda"]


async def test_an_object_that_has_a_function_of_its_own_is_asked_by_on_event() -> None:
    heard: list[str] = []

    class Odd:
        def function(self, event: Event) -> None:
            heard.append("function")

        def on_event(self, event: Event) -> None:
            heard.append("on_event")

    await HookChain([Odd()]).notify(CHUNK)
    assert heard == ["on_event"]


async def test_sync_hooks_run_in_a_thread_with_the_calls_context() -> None:
    word = ContextVar("word", default="none")
    seen: list[Any] = []

    def look(event: Event) -> None:
        seen.extend([word.get(), threading.current_thread() is threading.main_thread()])

    word.set("set")
    await HookChain([as_hook(look)]).notify(CHUNK)
    assert seen == ["set", False]


@pytest.mark.parametrize("candidate", [7, None, "text", object()])
def test_what_is_no_hook_is_refused(candidate: object) -> None:
    with pytest.raises(ConfigError, match="is no hook"):
        as_hook(candidate)


def test_a_class_is_no_hook() -> None:
    class Mine:
        def on_event(self, event: Event) -> None:
            return None

    with pytest.raises(ConfigError, match=r"Mine is a class; .*Mine\(\)"):
        as_hook(Mine)


def test_a_priority_beside_an_object_is_refused_for_the_object_has_its_own() -> None:
    with pytest.raises(ConfigError, match="priority"):
        as_hook(Named("a", []), 5)


def test_a_function_gets_its_priority_beside_it() -> None:
    hook: Any = as_hook(lambda event: None, 5)
    assert (hook.priority, isinstance(hook, Hook)) == (5, True)


async def test_a_hook_that_raises_where_it_may_change_ends_the_call_and_is_named() -> None:
    async def guard(event: PreCall) -> None:
        raise ValueError("not today")

    with pytest.raises(HookError) as caught:
        await HookChain([as_hook(guard)]).change(PRE_CALL)
    line = guard.__code__.co_firstlineno
    assert str(caught.value) == (
        f"hook {guard.__qualname__} ({Path(__file__)}:{line}) raised ValueError on PreCall: not today"
    )
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.fixture
def interrupts() -> Iterator[list[int]]:
    """The interrupts that the process gets, which are kept from the test run."""
    got: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: got.append(number))
    yield got
    signal.signal(signal.SIGINT, before)


class Odd(BaseException):
    """A library's own ending."""


@pytest.mark.parametrize("error", [SystemExit(3), Odd(), GeneratorExit(), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("in_thread", [True, False])
async def test_what_would_end_the_process_ends_in_a_hook_only_its_own_call(
    error: BaseException, in_thread: bool, interrupts: list[int]
) -> None:
    def leave(event: PreCall) -> None:
        raise error

    async def leave_loop(event: PreCall) -> None:
        raise error

    with pytest.raises(HookError, match=r"hook .*leave.* on PreCall") as caught:
        await HookChain([as_hook(leave if in_thread else leave_loop)]).change(PRE_CALL)
    await asyncio.sleep(0)
    assert type(error).__name__ in str(caught.value)
    assert interrupts == ([signal.SIGINT] if isinstance(error, KeyboardInterrupt) else [])


async def test_a_hook_after_one_that_raised_is_not_asked_for_a_change() -> None:
    order: list[str] = []

    def fail(event: PreCall) -> None:
        raise ValueError

    with pytest.raises(HookError):
        await HookChain([as_hook(fail), Named("after", order)]).change(PRE_CALL)
    assert order == []


async def test_a_hook_that_raises_where_it_only_listens_is_reported_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    order: list[str] = []

    def fail(event: Event) -> None:
        raise ValueError("deaf")

    hook = as_hook(fail)
    failures = await HookChain([hook, Named("after", order)]).notify(CHUNK)
    assert order == ["after"]
    assert [(failed is hook, str(error)) for failed, error in failures] == [(True, "deaf")]
    assert "fail" in caplog.text
    assert "ReasoningChunk" in caplog.text


@pytest.mark.parametrize("wrong", ["text", 7, CHUNK, {"messages": ()}, True])
async def test_an_answer_that_is_no_such_event_is_refused(wrong: object) -> None:
    def answer(event: PreCall) -> object:
        return wrong

    with pytest.raises(HookError, match=r"answer .* answered PreCall with .*; return None or event.change"):
        await HookChain([as_hook(answer)]).change(PRE_CALL)


async def test_what_a_hook_may_not_change_is_refused_and_the_hook_is_named() -> None:
    async def meddle(event: PreReasoning) -> PreReasoning:
        return event.change(step=9)

    event = PreReasoning(scope=SCOPE, step=1, messages=())
    with pytest.raises(HookError, match=r"meddle .*PreReasoning.step cannot be changed; .*additions, options"):
        await HookChain([as_hook(meddle)]).change(event)


async def test_going_around_change_does_not_help() -> None:
    async def meddle(event: PreReasoning) -> PreReasoning:
        return dataclasses.replace(event, step=9)

    event = PreReasoning(scope=SCOPE, step=1, messages=())
    with pytest.raises(HookError, match=r"meddle .* changed PreReasoning.step, which is not its to change"):
        await HookChain([as_hook(meddle)]).change(event)


def test_an_event_is_not_altered_in_passing() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PRE_CALL.messages = ()  # type: ignore[misc]


USE = ToolUse(id="c1", name="look")


@pytest.mark.parametrize(
    ("event", "change"),
    [
        (PRE_CALL, {"messages": ["hi"]}),
        (PRE_CALL, {"messages": "hi"}),
        (PRE_CALL, {"messages": None}),
        (PRE_CALL, {"context": "text"}),
        (PRE_CALL, {"system": ("text",)}),
        (PreReasoning(scope=SCOPE, step=1, messages=()), {"additions": Msg.user("hi")}),
        (PreReasoning(scope=SCOPE, step=1, messages=()), {"options": None}),
        (PreReasoning(scope=SCOPE, step=1, messages=()), {"tools": ("look",)}),
        (PostReasoning(scope=SCOPE, message=Msg.assistant("x")), {"message": "x"}),
        (PostReasoning(scope=SCOPE, message=Msg.assistant("x")), {"message": None}),
        (PostReasoning(scope=SCOPE, message=Msg.assistant("x")), {"message": Msg.user("x")}),
        (PostReasoning(scope=SCOPE, message=Msg.assistant("x")), {"stop": "yes"}),
        (PreActing(scope=SCOPE, tool_use=USE), {"result": "no"}),
        (PreActing(scope=SCOPE, tool_use=USE), {"tool_use": None}),
        (PostActing(scope=SCOPE, tool_use=USE, result=ToolResult(id="c1")), {"result": None}),
    ],
)
async def test_a_value_of_the_wrong_kind_is_refused_where_the_hook_is_known(event: Event, change: Any) -> None:
    async def careless(event: Event) -> Event:
        return event.change(**change)

    field = next(iter(change))
    with pytest.raises(HookError, match=rf"careless .*put .* into {type(event).__name__}.{field}"):
        await HookChain([as_hook(careless)]).change(event)


async def test_a_list_does_where_a_tuple_is_asked_for() -> None:
    async def lists(event: PreCall) -> PreCall:
        return event.change(system=[SystemPart("a", "b")], context=["c"])

    changed = await HookChain([as_hook(lists)]).change(PRE_CALL)
    assert (list(changed.system), list(changed.context)) == ([SystemPart("a", "b")], ["c"])


async def test_stop_iteration_of_a_sync_hook_does_not_hang_the_call() -> None:
    def empty(event: PreCall) -> None:
        next(iter(()))

    with pytest.raises(HookError, match="StopIteration"):
        await asyncio.wait_for(HookChain([as_hook(empty)]).change(PRE_CALL), 10)


@pytest.mark.parametrize("change", [True, False])
async def test_a_cancellation_of_a_hooks_own_making_is_its_failure(change: bool) -> None:
    async def cancelled(event: Event) -> None:
        raise asyncio.CancelledError

    chain = HookChain([as_hook(cancelled)])
    if change:
        with pytest.raises(HookError, match="CancelledError"):
            await chain.change(PRE_CALL)
    else:
        assert [type(error) for _, error in await chain.notify(CHUNK)] == [asyncio.CancelledError]


async def test_a_cancelled_telling_cuts_one_hook_short_and_tells_the_others() -> None:
    order: list[str] = []
    there = asyncio.Event()

    async def waits(event: Event) -> None:
        there.set()
        await asyncio.Event().wait()

    chain = HookChain([Named("before", order), as_hook(waits), Named("after", order, 900)])
    telling = asyncio.ensure_future(chain.notify(CHUNK))
    await there.wait()
    telling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await telling
    assert order == ["before", "after"]


def test_a_telling_that_is_thrown_away_with_its_loop_tells_nobody_else() -> None:
    order: list[str] = []

    async def waits(event: Event) -> None:
        order.append("waits")
        await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    telling = loop.create_task(HookChain([as_hook(waits), Named("after", order, 900)]).notify(CHUNK))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    telling.get_coro().close()  # type: ignore[union-attr]  # it is the coroutine that was made above
    telling._log_destroy_pending = False  # type: ignore[attr-defined]  # its loop was closed by hand: that is the test
    assert order == ["waits"]


async def test_names_on_the_stream_are_the_class_names_in_snake_case() -> None:
    assert [kind.event_name() for kind in (PreCall, ReasoningChunk, PostActing, Error)] == [
        "pre_call", "reasoning_chunk", "post_acting", "error",
    ]  # fmt: skip
