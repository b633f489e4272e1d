from __future__ import annotations

import asyncio
import logging
import threading
from typing import Annotated

import pytest

from harness.context import CallScope, RuntimeContext, current_scope
from harness.errors import NoCurrentCall, ToolError
from harness.filesystem.base import AbstractFilesystem
from harness.messages import Media, MediaBlock, Msg, TextBlock, ToolResult
from harness.models.base import ToolSpec
from harness.tools import Inject, Tool, ToolCall, Toolkit, as_tool, tool


class Database:
    def __init__(self, name: str) -> None:
        self.name = name


async def run(function, scope, emit=None, **given):
    made = function if isinstance(function, Tool) else as_tool(function)
    return await made.run(ToolCall("call-1", made.name, given), scope, emit)


async def text_of(function, scope, **given) -> str:
    return (await run(function, scope, **given)).text


async def test_the_result_carries_the_calls_id_and_name(scope):
    def f() -> str:
        return "done"

    assert await run(f, scope) == ToolResult(id="call-1", name="f", content="done")


async def test_input_is_converted_to_the_annotated_types(scope):
    async def f(n: int, flag: bool, words: tuple[str, ...], label: str) -> str:
        return repr((n, flag, words, label))

    assert await text_of(f, scope, n="3", flag="true", words=["a"], label=7) == "(3, True, ('a',), '7')"


async def test_an_input_that_does_not_fit_tells_the_model_what_to_change(scope):
    def f(path: str, limit: int = 5) -> str:
        raise AssertionError

    result = await run(f, scope, limit="many", paht="x")

    assert result.is_error
    assert result.text == (
        "Error: the input does not fit the tool f:\n"
        "- path: is required\n"
        "- limit: Input should be a valid integer, unable to parse string as an integer, not 'many'\n"
        "- paht: is no parameter of it\n"
        "It takes: path, limit?"
    )


async def test_null_for_an_optional_parameter_is_its_default(scope):
    def f(limit: int = 5, name: str | None = "x") -> str:
        return f"{limit} {name}"

    assert await text_of(f, scope, limit=None, name=None) == "5 None"


async def test_identity_and_services_are_injected(make_scope, tenants):
    scope = make_scope("alice", tenants.for_namespace(("alice",)), Database("main"), extra={"tz": "UTC"})

    def f(
        ctx: RuntimeContext,
        own: CallScope,
        call: ToolCall,
        files: AbstractFilesystem,
        database: Annotated[Database, Inject],
        word: str,
    ) -> str:
        return f"{ctx.user_id} {own is scope} {call.id} {type(files).__name__} {database.name} {word}"

    assert await text_of(f, scope, word="w") == "alice True call-1 LocalFilesystem main w"


async def test_an_object_in_the_callers_extra_is_injected(make_scope):
    def f(database: Annotated[Database, Inject]) -> str:
        return database.name

    assert await text_of(f, make_scope("alice", extra={"db": Database("extra")})) == "extra"


async def test_an_object_that_is_missing_is_the_developers_to_read_of_and_an_error_result_unless_optional(
    scope, caplog
):
    def need(database: Annotated[Database, Inject]) -> str:
        raise AssertionError

    def like(database: Annotated[Database | None, Inject]) -> str:
        return repr(database)

    def keep(database: Annotated[Database, Inject] = "default") -> str:
        return database

    assert await text_of(need, scope) == "Error: the tool need is not available now; go on without it"
    assert "this call has no Database; give one with the call, as RuntimeContext(extra={Database: …})" in caplog.text
    assert await text_of(like, scope) == "None"
    assert await text_of(keep, scope) == "default"


async def test_the_model_cannot_give_an_injected_parameter(scope):
    def f(ctx: RuntimeContext) -> str:
        raise AssertionError

    assert "- ctx: is no parameter of it" in await text_of(f, scope, ctx={"user_id": "bob"})


async def test_a_plain_function_runs_in_a_thread_and_knows_its_call(scope):
    def f() -> str:
        assert threading.current_thread() is not threading.main_thread()
        return str(current_scope().user_id)

    assert await text_of(f, scope) == "alice"
    with pytest.raises(NoCurrentCall):
        current_scope()


async def test_methods_are_tools_of_their_object(scope):
    class Counter:
        def __init__(self, start: int) -> None:
            self.start = start

        @tool
        async def plus(self, n: int) -> int:
            """Add."""
            return self.start + n

    assert await text_of(Counter(10).plus, scope, n=1) == "11"


async def test_pieces_of_an_async_generator_are_shown_and_joined(scope):
    async def count(n: int):
        for i in range(n):
            yield f"{i} "
            await asyncio.sleep(0)

    pieces: list[str] = []
    result = await run(count, scope, pieces.append, n=3)

    assert pieces == ["0 ", "1 ", "2 "]
    assert result.content == (TextBlock(text="0 1 2 "),)


async def test_pieces_of_a_plain_generator_come_before_the_result(scope):
    def count():
        yield "a"
        yield {"b": 1}

    pieces: list[str] = []
    result = await run(count, scope, pieces.append)

    assert (pieces, result.text) == (["a", '{"b":1}'], 'a{"b":1}')


async def test_blocks_among_the_pieces_keep_their_place(scope):
    image = MediaBlock(type="image", media=Media.from_bytes(b"x", "image/png"))

    async def draw():
        yield "be"
        yield "fore"
        yield image
        yield "after"

    result = await run(draw, scope)

    assert result.content == (TextBlock(text="before"), image, TextBlock(text="after"))


async def test_nothing_is_emitted_after_the_result(scope):
    go_on = threading.Event()
    done = threading.Event()

    @tool(timeout=0.05)
    def slow():
        try:
            yield "early"
            go_on.wait(5)
            yield "late"
            pieces.append("never asked for")
        finally:
            done.set()

    pieces: list[str] = []
    await run(slow, scope, pieces.append)
    go_on.set()
    assert await asyncio.to_thread(done.wait, 5)
    await asyncio.sleep(0)

    assert pieces == ["early"]


async def test_a_timeout_is_an_error_result_and_stops_the_tool(scope):
    stopped = asyncio.Event()

    @tool(timeout=0.02)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    result = await run(slow, scope)

    assert stopped.is_set()
    assert result.is_error
    assert result.text == (
        "Error: slow took longer than 0.02 s and is not waited for any more; whether it has an effect is not known: "
        "see what came of it before you ask for the same again"
    )


async def test_a_generator_is_closed_before_the_result_when_no_one_can_listen(scope):
    seen: list[str] = []

    async def speak():
        try:
            yield "a"
        finally:
            seen.append(current_scope().session_id)

    def broken(_piece: str) -> None:
        raise BrokenPipeError("gone")

    assert (await run(speak, scope, broken)).text == "Error: BrokenPipeError: gone"
    assert seen == ["s1"]


async def test_a_default_timeout_holds_only_for_tools_without_one(scope):
    @tool(timeout=5)
    async def own() -> str:
        await asyncio.sleep(0.05)
        return "own"

    async def none() -> str:
        await asyncio.Event().wait()
        return "none"

    kit = Toolkit(own, none)

    assert (await kit.run(ToolCall("c", "own", {}), scope, timeout=0.01)).text == "own"
    assert "took longer than 0.01 s" in (await kit.run(ToolCall("c", "none", {}), scope, timeout=0.01)).text


async def test_a_timeout_closes_a_generator_in_its_own_call(scope):
    seen: list[str] = []

    @tool(timeout=0.02)
    async def slow():
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            seen.append(current_scope().session_id)

    assert (await run(slow, scope)).is_error
    assert seen == ["s1"]


async def test_a_tools_own_timeout_error_is_an_ordinary_error(scope):
    @tool(timeout=5)
    async def f() -> None:
        raise TimeoutError("upstream")

    assert await text_of(f, scope) == "Error: TimeoutError: upstream"


async def test_an_exception_becomes_a_result_and_a_warning_with_traceback(scope, caplog):
    def f() -> None:
        raise ValueError("no such thing")

    with caplog.at_level(logging.WARNING, "harness.tools"):
        result = await run(f, scope)

    assert (result.is_error, result.text) == (True, "Error: ValueError: no such thing")
    assert caplog.records[0].exc_info[0] is ValueError
    assert "session 's1', call call-1" in caplog.text


async def test_a_tool_error_speaks_for_itself(scope, caplog):
    def f() -> None:
        raise ToolError("Try Tuesday.")

    result = await run(f, scope)

    assert (result.is_error, result.text, caplog.records) == (True, "Try Tuesday.", [])


@pytest.mark.parametrize(
    "error", [StopIteration("x"), StopAsyncIteration(), RecursionError("deep"), SystemExit(3), KeyError("k")]
)
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_no_exception_of_a_tool_reaches_the_loop(scope, error, kind):
    def plain() -> None:
        raise error

    async def asynchronous() -> None:
        raise error

    result = await run(plain if kind == "plain" else asynchronous, scope)

    assert result.is_error
    assert result.text.startswith("Error: ")


async def test_an_exception_without_text_of_its_own_is_named(scope):
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def f() -> None:
        raise SilentError

    assert await text_of(f, scope) == "Error: SilentError"


async def test_asking_for_identity_outside_a_call_is_an_error_result(scope):
    def f() -> str:
        outcome: list[object] = []

        def look() -> None:
            try:
                current_scope()
            except NoCurrentCall as error:
                outcome.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        raise outcome[0]

    assert (await text_of(f, scope)).startswith("Error: no call is in progress here")


async def test_cancelling_the_call_passes_through(scope):
    started = asyncio.Event()

    async def f() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(run(f, scope))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_something_cancelled_inside_a_tool_does_not_cancel_the_call(scope):
    async def f() -> None:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner

    result = await run(f, scope)

    assert result.is_error
    assert result.text.startswith("Error: CancelledError")


async def test_one_tool_serves_many_calls_at_once(make_scope):
    async def who(wait: float) -> str:
        before = current_scope().user_id
        await asyncio.sleep(wait)
        return f"{before} {current_scope().user_id}"

    made = as_tool(who)
    users = [f"u{n}" for n in range(50)]
    results = await asyncio.gather(*(run(made, make_scope(user), wait=(n % 7) / 1000) for n, user in enumerate(users)))

    assert [result.text for result in results] == [f"{user} {user}" for user in users]


async def test_fields_of_a_result_that_only_others_know_are_kept(scope):
    async def f() -> ToolResult:
        return ToolResult(id="x", content="a", synthetic="made up", theirs=[1])

    stored = (await run(f, scope)).to_dict()

    assert (stored["synthetic"], stored["theirs"]) == ("made up", [1])


async def test_results_messages_and_blocks_are_kept(scope):
    image = MediaBlock(type="image", media=Media.from_bytes(b"x", "image/png"))
    values = {
        "result": ToolResult(id="other", content=["a", image], is_error=True),
        "message": Msg.assistant("a", image),
        "list": ["a", image],
        "media": ["a", Media.from_bytes(b"x", "image/png")],
    }

    def give(key: str) -> object:
        return values[key]

    for key in values:
        result = await run(give, scope, key=key)
        assert (result.id, result.content) == ("call-1", (TextBlock(text="a"), image))
        assert result.is_error is (key == "result")
        assert result.content[1].media.data == b"x"


@pytest.mark.parametrize("nothing", [None, "", "  \n", (TextBlock(text=""),)])
async def test_no_output_is_said(scope, nothing):
    def f() -> object:
        return nothing

    assert await text_of(f, scope) == "[no output]"


async def test_a_tool_made_by_hand_sees_its_input_as_it_came(scope):
    async def handle(call, scope, emit):
        emit("…")
        return f"{call.input} for {scope.user_id}"

    made = Tool(ToolSpec("recorded.tool", "", {"type": "object"}), handle)

    assert (await run(made, scope, x=[1])).text == "{'x': [1]} for alice"
