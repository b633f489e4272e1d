"""Prompts sent again, compactions cut short, and turns in short: what the next process makes of them."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, call_of, dict_text, ledger, logged, of_kind, sessions_folder, shown

from harness.agent import open_session
from harness.errors import CallCancelled, ModelRejected
from harness.hooks import CompactionConfig, PostActing, PostReasoning, PreCall
from harness.messages import Msg, ToolResult
from harness.sessions import SessionTree
from harness.sessions.ledger import answers
from harness.testing import ScriptedModel
from harness.tools import tool

AT_FIVE = CompactionConfig(trigger_messages=5, keep_messages=2)


@tool
def look(n: int) -> str:
    """Look."""
    return f"found {n}"


def new_process() -> None:
    open_session._cache._open.clear()


async def crashed(workspace: Path, *before: Any, key: str | None = "k", hooks: Any = ()) -> None:
    """A call that was killed while the model was at work; `before` came first."""
    copy = workspace.with_name("copy")

    def die(_request: Any) -> str:
        shutil.copytree(workspace, copy)
        return "never heard"

    async with agent_of(workspace, ScriptedModel([*before, die]), look, hooks=hooks) as agent:
        await agent.call("do it", ALICE, idempotency_key=key)
    shutil.rmtree(workspace)
    copy.rename(workspace)
    new_process()


# ---- the same prompt again


async def test_a_retry_after_a_crash_goes_on_with_its_turn(workspace: Path) -> None:
    await crashed(workspace)
    model = ScriptedModel(["done"])
    async with agent_of(workspace, model, look) as agent:
        call = agent.call("do it", ALICE, idempotency_key="k")
        assert (await call).text == "done"
    assert shown(model.requests[0]) == [("user", "do it")]
    assert [(via, text) for via, _, text in logged(workspace)] == [("user", "do it"), ("model", "done")]
    assert call.turn_id == of_kind(ledger(workspace), "message")[0]["id"]


async def test_work_that_was_done_before_the_crash_is_not_done_again(workspace: Path) -> None:
    await crashed(workspace, [call_of("look", n=1)])
    model = ScriptedModel(["done"])
    async with agent_of(workspace, model, look) as agent:
        await agent.call("do it", ALICE, idempotency_key="k")
    assert [text for _, text in shown(model.requests[0])] == ["do it", 'look({"n": 1})', "found 1"]


async def test_what_a_hook_adds_to_a_call_stands_once_in_a_turn_that_goes_on(workspace: Path) -> None:
    def monday(event: PreCall) -> PreCall:
        return event.change(context=("it is monday",))

    await crashed(workspace, hooks=[monday])
    model = ScriptedModel(["done"])
    async with agent_of(workspace, model, look, hooks=[monday]) as agent:
        await agent.call("do it", ALICE, idempotency_key="k")
    assert shown(model.requests[0]) == [("user", "do it it is monday")]


async def test_without_its_key_a_prompt_is_a_new_one(workspace: Path) -> None:
    await crashed(workspace, key=None)
    model = ScriptedModel(["done"])
    async with agent_of(workspace, model, look) as agent:
        await agent.call("do it", ALICE)
    assert [text for _, text in shown(model.requests[0])] == ["do it", "[stopped]", "do it"]


async def test_a_call_that_was_stopped_goes_on_with_its_key(workspace: Path) -> None:
    async def stop(_request: Any) -> str:
        call.cancel()
        import asyncio

        await asyncio.sleep(9)
        return "never"

    model = ScriptedModel([stop, "done", "next"])
    async with agent_of(workspace, model) as agent:
        call = agent.call("do it", ALICE, idempotency_key="k")
        with pytest.raises(CallCancelled):
            await call
        for _ in range(2):
            assert (await agent.call("do it", ALICE, idempotency_key="k")).text == "done"
        await agent.call("and on", ALICE)
    assert [text for _, text in shown(model.requests[2])] == ["do it", "done", "and on"]


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_key_is_known_behind_a_compaction_and_behind_a_second_one(workspace: Path, restarted: bool) -> None:
    model = ScriptedModel([f"answer {n}" for n in range(12)])
    model._steps[3:3] = ["SUMMARY 1"]
    model._steps[6:6] = ["SUMMARY 2"]
    async with agent_of(workspace, model, compaction=CompactionConfig(trigger_messages=7, keep_messages=3)) as agent:
        calls = [agent.call(f"q{n}", ALICE, idempotency_key=f"k{n}") for n in range(7)]
        firsts = [(await call).to_dict() for call in calls]
        asked, before = len(model.requests), ledger(workspace)
        assert len(of_kind(before, "compaction")) == 2
        if restarted:
            new_process()
        for n in (0, 2, 6):
            again = agent.call("again", ALICE, idempotency_key=f"k{n}")
            assert (await again).to_dict() == firsts[n]
            assert (again.turn_id, again.entry_id) == (calls[n].turn_id, calls[n].entry_id)
        assert (len(model.requests), ledger(workspace)) == (asked, before)


async def test_a_boundary_names_the_newest_keys_only(make_key_tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_KEYS", 3)
    tree, talk = make_key_tree
    async with tree.writing():
        for n in range(5):
            tree.add_message(
                {"id": f"u{n}", "role": "user", "content": talk("hi")}, via="user", idempotency_key=f"k{n}"
            )
            tree.add_message({"id": f"a{n}", "role": "assistant", "content": talk(f"re {n}")}, via="repair")
        turns = tree.view().turns
        tree.append_compaction("S.", turns[0].id, turns[-1].id, "m", 1)
        await tree.commit()
        assert [await tree.find_answered(f"k{n}") is not None for n in range(5)] == [False, False, True, True, True]
        found = await tree.find_answered("k3")
        assert found.turn.messages[-1]["content"] == talk("re 3")
        assert (found.turn.id, found.turn.closed) == (turns[3].id, True)


@pytest.fixture
def make_key_tree(tmp_path: Path) -> Any:
    return SessionTree(tmp_path / "s", "s", agent="a", namespace=()), lambda text: [{"type": "text", "text": text}]


# ---- a compaction that was cut short


def cut_before(workspace: Path, kind: str) -> None:
    """Cut the ledger before its first line or event of this kind."""
    path = sessions_folder(workspace) / "s1.log.jsonl"
    lines = path.read_bytes().split(b"\n")
    at = next(n for n, entry in enumerate(ledger(workspace)) if kind in (entry["type"], entry.get("kind")))
    path.write_bytes(b"\n".join([*lines[:at], b""]))
    (sessions_folder(workspace) / "s1.head.json").unlink()
    new_process()


async def compacted(workspace: Path) -> None:
    model = ScriptedModel(["one", "two", "SUMMARY", "three"])
    async with agent_of(workspace, model, compaction=AT_FIVE) as agent:
        for n in range(3):
            await agent.call(f"q{n}", ALICE)
    shutil.rmtree(workspace / "tenants/alice/agents/notes/context")


@pytest.mark.parametrize(("lost", "status"), [("compaction", "failed"), ("compaction_end", "completed")])
async def test_a_compaction_without_an_end_gets_one_before_anything_else(
    workspace: Path, lost: str, status: str
) -> None:
    await compacted(workspace)
    cut_before(workspace, lost)
    before = ledger(workspace)
    model = ScriptedModel(["again", "and again"])
    async with agent_of(workspace, model, compaction=CompactionConfig(100, 2)) as agent:
        await agent.call("on", ALICE)
        await agent.call("and on", ALICE)
    ends = of_kind(ledger(workspace), "compaction_end")
    assert [end["data"]["status"] for end in ends] == [status]
    new = ledger(workspace)[len(before) :]
    new = [entry for entry in new if entry.get("kind") != "damage"]  # the anchor is gone too
    assert new[0].get("kind") == "compaction_end"
    texts = [text for _, text in shown(model.requests[0])]
    assert ("SUMMARY" in texts[0]) is (status == "completed")


async def test_a_ledger_without_brackets_is_not_touched_by_opening_it(workspace: Path) -> None:
    await compacted(workspace)
    before = (sessions_folder(workspace) / "s1.log.jsonl").read_bytes()
    new_process()
    async with agent_of(workspace, ScriptedModel()) as agent:
        await (await agent.sessions("alice").tree("s1")).load()
        await agent.sessions("alice").history("s1")
    assert (sessions_folder(workspace) / "s1.log.jsonl").read_bytes() == before


# ---- an answer that only an unfinished request holds


async def test_output_of_a_request_without_an_end_is_no_answer_and_its_results_no_orphans(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([[call_of("look", n=1)], "done"]), look) as agent:
        await agent.call("do it", ALICE)
    shutil.rmtree(workspace / "tenants/alice/agents/notes/context")
    cut_before(workspace, "request_end")
    model = ScriptedModel([[call_of("look", n=2)], "good"])
    async with agent_of(workspace, model, look) as agent:
        await agent.call("again", ALICE)
    assert [text for _, text in shown(model.requests[1])] == [
        "do it", "[stopped]", "again", 'look({"n": 2})', "found 2",
    ]  # fmt: skip


# ---- cards


async def test_a_turn_gets_its_card_in_its_last_commit(workspace: Path) -> None:
    model = ScriptedModel([[call_of("look", n=1), call_of("look", n=2)], "It is 3. " + "More of it. " * 60])
    async with agent_of(workspace, model, look) as agent:
        await agent.call("Add what you find.", ALICE)
    entries = ledger(workspace)
    [card] = of_kind(entries, "turn_card")
    calls = [entry for entry in of_kind(entries, "message") if entry["via"] == "tool"]
    ids = [entry["message"]["content"][0]["id"] for entry in calls]
    assert card["turn"] == card["turnId"] == entries[1]["id"]
    assert (card["asked"], card["answered"], card["outcome"]) == ("Add what you find.", "It is 3.", "completed")
    assert [(each["tool"], each["args"]) for each in card["did"]] == [("look", {"n": 1}), ("look", {"n": 2})]
    assert sorted(card["evidence"]) == sorted(ids) == sorted(each["call"] for each in card["did"])
    assert [entry["type"] for entry in entries[-4:]] == ["message", "request_end", "turn_card", "state"]
    assert card["tokens"]["card"] < card["tokens"]["full"]


async def test_a_turn_that_failed_gets_its_card_when_it_is_closed(workspace: Path) -> None:
    model = ScriptedModel([ModelRejected("no"), "two"])
    async with agent_of(workspace, model) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("one", ALICE)
        assert of_kind(ledger(workspace), "turn_card") == []
        await agent.call("two", ALICE)
    cards = of_kind(ledger(workspace), "turn_card")
    assert [(card["asked"], card["outcome"]) for card in cards] == [("one", "stopped"), ("two", "completed")]


async def test_a_turn_at_its_step_limit_says_so(workspace: Path) -> None:
    model = ScriptedModel([[call_of("look", n=1)], "That is all."])
    async with agent_of(workspace, model, look, max_steps=1) as agent:
        await agent.call("one", ALICE)
    assert [card["outcome"] for card in of_kind(ledger(workspace), "turn_card")] == ["step_limit"]


# ---- what hooks change


async def test_what_a_hook_replaces_is_noted_without_what_it_took_away(workspace: Path) -> None:
    def hook(event: Any) -> Any:
        if isinstance(event, PostActing):
            return event.change(result=ToolResult(id=event.result.id, content="clean"))
        if isinstance(event, PostReasoning) and not event.message.tool_uses:
            return event.change(message=Msg.assistant("mine"))
        return event.change(messages=(Msg.user("other"),)) if isinstance(event, PreCall) else None

    model = ScriptedModel([[call_of("look", n=1)], "secret"])
    async with agent_of(workspace, model, look, hooks=[_Every(hook)]) as agent:
        await agent.call("original", ALICE)
    events = of_kind(ledger(workspace), "replace")
    assert [event["data"]["event"] for event in events] == ["pre_call", "post_acting", "post_reasoning"]
    assert [sorted(event["data"]) for event in events] == [
        ["event", "message"],
        ["event", "result"],
        ["event", "message"],
    ]
    assert all(event["turnId"] for event in events)
    whole = (sessions_folder(workspace) / "s1.log.jsonl").read_text()
    assert not any(word in whole for word in ("original", "found 1", "secret"))
    texts = [dict_text(entry["message"]) for entry in of_kind(ledger(workspace), "message")]
    assert texts == ["other", 'look({"n": 1})', "clean", "mine"]


class _Every:
    def __init__(self, answer: Any) -> None:
        self.on_event = answer


async def test_every_line_says_which_turn_and_which_request_it_belongs_to(workspace: Path) -> None:
    model = ScriptedModel([[call_of("look", n=1)], "one", "two", "SUMMARY", "three"])
    async with agent_of(workspace, model, look, compaction=CompactionConfig(7, 2)) as agent:
        for n in range(3):
            await agent.call(f"q{n}", ALICE)
    entries = ledger(workspace)
    assert {entry["type"] for entry in entries if "turnId" not in entry} <= {"header", "state"}
    requests = ("request_begin", "request_end")
    assert all(
        "requestId" in entry for entry in entries if entry["type"] in requests or entry.get("via") in ("model", "tool")
    )
    purposes = [entry["purpose"] for entry in of_kind(entries, "request_begin")]
    assert purposes == ["execute", "execute", "execute", "summarize", "execute"]
    assert [bool(entry.get("select")) for entry in of_kind(entries, "request_begin")] == [
        False,
        False,
        False,
        True,
        False,
    ]
