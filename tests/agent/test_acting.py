"""Tools in the loop: side by side, answered in order, and never the end of a turn."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, assert_pair_complete, call_of, ledger, logged, of_kind, shown

from harness.errors import ToolError
from harness.messages import Msg, TextBlock, ToolUse
from harness.models import Done
from harness.testing import ScriptedModel
from harness.tools import Toolkit, tool


def results_of(model: ScriptedModel, request: int = -1) -> list[tuple[str, str, bool]]:
    """The results in the last message of a request: (id, text, whether an error)."""
    return [(result.id, result.text, result.is_error) for result in model.requests[request].messages[-1].tool_results]


async def test_parallel_tools_really_run_at_the_same_time(workspace: Path) -> None:
    meeting = asyncio.Barrier(3)

    async def meet() -> str:
        await meeting.wait()
        return "met"

    model = ScriptedModel([[call_of("meet"), call_of("meet"), call_of("meet")], "done"])
    async with agent_of(workspace, model, meet) as agent:
        reply = await asyncio.wait_for(agent.call("hi", ALICE)._wait(), 20)
    assert reply.text == "done"
    assert [text for _, text, _ in results_of(model)] == ["met", "met", "met"]


async def test_results_reach_the_model_in_the_order_of_the_calls(workspace: Path) -> None:
    turns = [asyncio.Event() for _ in range(3)]
    turns[2].set()

    async def wait(n: int) -> str:
        await turns[n].wait()
        if n:
            turns[n - 1].set()
        return f"result {n}"

    calls = [ToolUse(id=f"c{n}", name="wait", input={"n": n}) for n in range(3)]
    model = ScriptedModel([calls, "done"])
    async with agent_of(workspace, model, wait) as agent:
        await agent.call("hi", ALICE)
    assert results_of(model) == [("c0", "result 0", False), ("c1", "result 1", False), ("c2", "result 2", False)]
    assert [text for via, _, text in logged(workspace) if via == "tool"] == ["result 2", "result 1", "result 0"]
    assert_pair_complete(model.requests[-1])


async def test_each_result_is_logged_when_it_is_there(workspace: Path) -> None:
    seen = []

    async def first() -> str:
        return "first is done"

    async def second() -> str:
        while ("tool", "tool", "first is done") not in logged(workspace):
            await asyncio.sleep(0.001)
        seen.append("on disk")
        return "second"

    model = ScriptedModel([[call_of("first"), call_of("second")], "done"])
    async with agent_of(workspace, model, first, second) as agent:
        await agent.call("hi", ALICE)
    assert seen == ["on disk"]


async def test_the_call_is_on_disk_before_its_tool_runs(workspace: Path) -> None:
    seen: list[Any] = []

    def look() -> str:
        seen.extend(logged(workspace))
        return "x"

    async with agent_of(workspace, ScriptedModel([call_of("look"), "done"]), look) as agent:
        await agent.call("hi", ALICE)
    assert seen == [("user", "user", "hi"), ("model", "assistant", "look({})")]


async def test_a_tool_that_is_not_there_gives_an_error_result(workspace: Path) -> None:
    def here() -> str:
        return "x"

    model = ScriptedModel([call_of("gone"), "done"])
    async with agent_of(workspace, model, here) as agent:
        assert (await agent.call("hi", ALICE)).text == "done"
    [(_, text, is_error)] = results_of(model)
    assert (text, is_error) == ("Error: gone is not available: there is no tool of that name; available: here", True)


async def test_a_tool_that_raises_gives_an_error_result(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> str:
        raise ZeroDivisionError("by nothing")

    model = ScriptedModel([call_of("fail"), "done"])
    async with agent_of(workspace, model, fail) as agent:
        assert (await agent.call("hi", ALICE)).text == "done"
    [(_, text, is_error)] = results_of(model)
    assert ("by nothing" in text, is_error) == (True, True)
    assert "tool fail failed" in caplog.text


async def test_the_words_of_a_tool_error_are_the_models_to_read(workspace: Path) -> None:
    def fail() -> str:
        raise ToolError("there is no such street; ask for its number")

    model = ScriptedModel([call_of("fail"), "done"])
    async with agent_of(workspace, model, fail) as agent:
        await agent.call("hi", ALICE)
    assert results_of(model)[0][1:] == ("there is no such street; ask for its number", True)


async def test_arguments_that_do_not_fit_give_an_error_result(workspace: Path) -> None:
    def double(n: int) -> int:
        return 2 * n

    model = ScriptedModel([call_of("double", n="many"), call_of("double"), call_of("double", n=4), "done"])
    async with agent_of(workspace, model, double) as agent:
        await agent.call("hi", ALICE)
    assert [results_of(model, n)[0][2] for n in (1, 2, 3)] == [True, True, False]
    assert results_of(model, 3)[0][1] == "8"


async def test_a_tool_that_takes_too_long_gives_an_error_result(workspace: Path) -> None:
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    model = ScriptedModel([call_of("wait"), "done"])
    async with agent_of(workspace, model, wait, tool_timeout=0.02) as agent:
        assert (await agent.call("hi", ALICE)).text == "done"
    [(_, text, is_error)] = results_of(model)
    assert (text.startswith("Error: wait took longer than 0.02 s"), is_error) == (True, True)


async def test_a_tools_own_timeout_goes_before_the_agents(workspace: Path) -> None:
    @tool(timeout=0.02)
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    model = ScriptedModel([call_of("wait"), "done"])
    async with agent_of(workspace, model, wait, tool_timeout=None) as agent:
        await agent.call("hi", ALICE)
    assert results_of(model)[0][2] is True


async def test_one_tool_that_fails_does_not_stop_the_others(workspace: Path) -> None:
    failed = asyncio.Event()

    async def fail() -> str:
        failed.set()
        raise ZeroDivisionError

    async def work() -> str:
        await failed.wait()
        await asyncio.sleep(0)
        return "worked"

    model = ScriptedModel([[call_of("fail"), call_of("work")], "done"])
    async with agent_of(workspace, model, fail, work) as agent:
        await agent.call("hi", ALICE)
    assert [(text if not is_error else "error") for _, text, is_error in results_of(model)] == ["error", "worked"]


@pytest.mark.parametrize("nothing", [None, "", [], "   "])
async def test_a_tool_that_says_nothing_is_shown_as_such(workspace: Path, nothing: object) -> None:
    async def quiet() -> object:
        return nothing

    model = ScriptedModel([call_of("quiet"), "done"])
    async with agent_of(workspace, model, quiet) as agent:
        await agent.call("hi", ALICE)
    assert results_of(model)[0][1] == ("[]" if nothing == [] else "[no output]")


async def test_pieces_of_a_tool_show_as_they_come(workspace: Path) -> None:
    async def count() -> Any:
        yield "one "
        yield "two"

    model = ScriptedModel([call_of("count"), "done"])
    async with agent_of(workspace, model, count) as agent:
        events = [event async for event in agent.call("hi", ALICE)]
    assert [event.data["text"] for event in events if event.event == "acting_chunk"] == ["one ", "two"]
    assert results_of(model)[0][1] == "one two"


async def test_calls_of_one_answer_that_share_an_id_are_told_apart(workspace: Path) -> None:
    async def say(word: str) -> str:
        return word

    twice = [ToolUse(id="c1", name="say", input={"word": word}) for word in ("one", "two")]
    model = ScriptedModel([twice, "done"])
    async with agent_of(workspace, model, say) as agent:
        await agent.call("hi", ALICE)
    assert results_of(model) == [("c1", "one", False), ("c1#2", "two", False)]
    assert_pair_complete(model.requests[-1])


async def test_a_call_id_used_again_later_gets_its_own_result(workspace: Path) -> None:
    async def say(word: str) -> str:
        return word

    steps = [ToolUse(id="c1", name="say", input={"word": word}) for word in ("one", "two")]
    model = ScriptedModel([*steps, "done", steps[0], "done again"])
    async with agent_of(workspace, model, say) as agent:
        await agent.call("hi", ALICE)
        await agent.call("once more", ALICE)
    texts = [result.text for message in model.requests[-1].messages for result in message.tool_results]
    assert texts == ["one", "two", "one"]
    assert_pair_complete(model.requests[-1])


async def test_a_call_without_an_id_gets_one(workspace: Path) -> None:
    async def say() -> str:
        return "said"

    model = ScriptedModel([[ToolUse(id="", name="say"), ToolUse(id="", name="say")], "done"])
    async with agent_of(workspace, model, say) as agent:
        await agent.call("hi", ALICE)
    assert [call_id for call_id, _, _ in results_of(model)] == ["say", "say#2"]
    assert_pair_complete(model.requests[-1])


async def test_an_answer_that_repeats_a_message_id_is_logged_all_the_same(workspace: Path) -> None:
    answers = [Msg.assistant(text, id="same") for text in ("one", "two")]
    model = ScriptedModel([*answers, "three"])
    async with agent_of(workspace, model) as agent:
        for prompt in ("first", "second", "third"):
            await agent.call(prompt, ALICE)
    assert [text for role, text in shown(model.requests[-1]) if role == "assistant"] == ["one", "two"]


async def test_at_the_limit_of_steps_the_turn_ends_with_a_summary(workspace: Path) -> None:
    async def dig() -> str:
        return "earth"

    model = ScriptedModel([call_of("dig"), call_of("dig"), "I dug twice."])
    async with agent_of(workspace, model, dig, max_steps=2) as agent:
        events = [event async for event in agent.call("dig", ALICE)]
        model.add("next")
        await agent.call("and now?", ALICE)
    assert "".join(event.data["text"] for event in events if event.event == "summary_chunk") == "I dug twice."
    assert "limit of steps" in shown(model.requests[2])[-1][1]
    assert shown(model.requests[3])[-2:] == [("assistant", "I dug twice."), ("user", "and now?")]
    assert "limit of steps" not in str(shown(model.requests[3]))


async def test_the_reply_at_the_limit_says_that_it_is_one(workspace: Path) -> None:
    model = ScriptedModel([call_of("dig"), "I dug."])
    async with agent_of(workspace, model, max_steps=1) as agent:
        assert (await agent.call("dig", ALICE)).meta == {"stepLimit": True}


async def test_a_summary_that_asks_for_tools_is_taken_without_them(workspace: Path) -> None:
    model = ScriptedModel([call_of("dig"), [TextBlock(text="I dug."), call_of("dig")], call_of("dig"), call_of("dig")])
    async with agent_of(workspace, model, max_steps=1) as agent:
        reply = await agent.call("dig", ALICE)
        empty = await agent.call("dig", ALICE)
    assert (reply.text, reply.tool_uses) == ("I dug.", ())
    assert (empty.text, empty.tool_uses) == ("I have reached the limit of steps for this request.", ())
    assert_pair_complete(model.requests[-1])


async def test_the_tools_are_still_declared_at_the_limit(workspace: Path) -> None:
    async def dig() -> str:
        return "earth"

    model = ScriptedModel([call_of("dig"), "I dug."])
    async with agent_of(workspace, model, dig, max_steps=1) as agent:
        await agent.call("dig", ALICE)
    assert [spec.name for spec in model.requests[1].tools] == ["dig"]


async def test_a_model_that_answers_nothing_ends_the_turn(workspace: Path) -> None:
    model = ScriptedModel([[Done(Msg.assistant())], "something"])
    async with agent_of(workspace, model) as agent:
        assert (await agent.call("hi", ALICE)).text == ""
        assert (await agent.call("and?", ALICE)).text == "something"
    assert [role for role, _ in shown(model.requests[1])][-1] == "user"


async def test_tools_of_a_group_that_is_off_are_not_shown_and_not_run(workspace: Path) -> None:
    @tool(group="admin")
    async def wipe() -> str:
        raise AssertionError("must not run")

    toolkit = Toolkit(wipe).group("admin", active=False, description="Dangerous.")
    model = ScriptedModel([call_of("wipe"), "done"])
    async with agent_of(workspace, model, toolkit) as agent:
        await agent.call("hi", ALICE)
    assert "wipe" not in [spec.name for spec in model.requests[0].tools]
    assert "its group admin is switched off" in results_of(model)[0][1]


async def test_usage_is_the_sum_of_the_turns_requests(workspace: Path) -> None:
    from harness.messages import Usage

    model = ScriptedModel([call_of("gone"), "done"], usage=Usage(input=10, output=2))
    async with agent_of(workspace, model) as agent:
        call = agent.call("hi", ALICE)
        await call
    assert call.usage is not None
    assert (call.usage.input, call.usage.output) == (20, 4)
    ends = of_kind(ledger(workspace), "request_end")
    assert [end["usage"]["input"] for end in ends] == [10, 10]
