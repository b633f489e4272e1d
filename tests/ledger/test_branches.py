"""Going back, trying another way, copying and naming: nothing is lost, and turns stay whole."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, call_of, ledger, of_kind, sessions_folder, shown

from harness import RuntimeContext
from harness.agent import open_session
from harness.errors import ConfigError, ModelRejected, NotATurnEnd, SessionDamaged, SessionExists, SessionNotFound
from harness.hooks import CompactionConfig
from harness.sessions import InMemorySession
from harness.testing import ScriptedModel
from harness.tools import tool

COPY = RuntimeContext(session_id="copy", user_id="alice")
NEVER = CompactionConfig(trigger_messages=1000, keep_messages=2)


@tool
def look(n: int) -> str:
    """Look."""
    return f"found {n}"


def new_process() -> None:
    open_session._cache._open.clear()


async def talked(workspace: Path, *answers: Any, **options: Any) -> tuple[Any, ScriptedModel, list[str]]:
    """An agent with turns `q0`, `q1`…, and the entry ids of the replies."""
    model = ScriptedModel(answers or ["one", "two", "three"])
    agent = agent_of(workspace, model, look, compaction=NEVER, **options)
    replies = []
    for number in range(sum(isinstance(answer, str) for answer in answers) or 3):
        call = agent.call(f"q{number}", ALICE)
        await call
        replies.append(call.entry_id)
    model.add(*[f"later {n}" for n in range(9)])
    return agent, model, replies


def bytes_of(workspace: Path, session: str = "s1") -> bytes:
    return (sessions_folder(workspace) / f"{session}.log.jsonl").read_bytes()


async def test_the_conversation_goes_on_from_an_earlier_reply_and_nothing_is_removed(workspace: Path) -> None:
    agent, model, replies = await talked(workspace)
    before = bytes_of(workspace)
    line = await agent.sessions("alice").branch("s1", replies[0])
    await agent.call("other", ALICE)
    assert shown(model.requests[-1]) == [("user", "q0"), ("assistant", "one"), ("user", "other")]
    assert bytes_of(workspace).startswith(before)
    entries = {entry["id"]: entry for entry in ledger(workspace)}
    assert entries[line]["type"] == "branch"
    assert entries[line]["to"] == entries[line]["parentId"]


async def test_a_branch_stands_in_the_file_and_holds_in_a_new_process(workspace: Path) -> None:
    agent, _, replies = await talked(workspace)
    await agent.sessions("alice").branch("s1", replies[1])
    new_process()
    model = ScriptedModel(["again"])
    async with agent_of(workspace, model) as other:
        await other.call("other", ALICE)
        assert (await other.sessions("alice").verify("s1")).ok
    texts = ["q0", "one", "q1", "two", "other"]
    assert [text for _, text in shown(model.requests[0])] == texts


@pytest.mark.parametrize("store", [None, InMemorySession()])
async def test_a_snapshot_does_not_bring_back_what_was_left_behind(workspace: Path, store: Any) -> None:
    options = {"session": store} if store else {}
    agent, _, replies = await talked(workspace, **options)
    await agent.sessions("alice").branch("s1", replies[0])
    new_process()
    model = ScriptedModel(["again", "once more"])
    async with agent_of(workspace, model, **options) as other:
        call = other.call("other", ALICE)
        await call
        await other.call("and on", ALICE)
    assert call.warnings == []
    assert [text for _, text in shown(model.requests[1])] == ["q0", "one", "other", "again", "and on"]


async def test_the_context_file_and_the_state_go_back_too(workspace: Path) -> None:
    agent, _, replies = await talked(workspace)
    await agent.sessions("alice").branch("s1", replies[0])
    lines = [json.loads(raw) for raw in (sessions_folder(workspace) / "s1.jsonl").read_bytes().splitlines()]
    assert [line["message"]["content"][0]["text"] for line in lines[1:]] == ["q0", "one"]


async def test_every_line_of_the_last_commit_stands_for_the_same_turns_end(workspace: Path) -> None:
    agent, _model, replies = await talked(workspace)
    entries = ledger(workspace)
    start = next(n for n, entry in enumerate(entries) if entry["id"] == replies[1])
    ends = [entry["id"] for entry in entries[start : start + 3]]
    assert [entry["type"] for entry in entries[start : start + 3]] == ["message", "request_end", "turn_card"]
    for end in ends:
        await agent.sessions("alice").branch("s1", end)
        assert [text for _, text in shown_of(await agent.sessions("alice").tree("s1"))] == ["q0", "one", "q1", "two"]


def shown_of(tree: Any) -> list[tuple[str, str]]:
    return [(message["role"], message["content"][0].get("text", "")) for message in tree.messages()]


async def test_the_header_stands_for_the_beginning(workspace: Path) -> None:
    agent, model, _ = await talked(workspace)
    await agent.sessions("alice").branch("s1", ledger(workspace)[0]["id"])
    await agent.call("anew", ALICE)
    assert shown(model.requests[-1]) == [("user", "anew")]


async def test_the_middle_of_a_turn_is_refused_and_the_nearest_end_is_named(workspace: Path) -> None:
    agent, _, replies = await talked(workspace, "one", [call_of("look", n=1)], "three")
    entries = ledger(workspace)
    last = entries.index(next(entry for entry in entries if entry["id"] == replies[1]))
    second = next(entry["turnId"] for entry in entries if entry["id"] == replies[1])
    middle = [entry["id"] for entry in entries[:last] if entry.get("turnId") == second]
    assert len(middle) >= 5
    before = bytes_of(workspace)
    for entry_id in middle:
        with pytest.raises(NotATurnEnd, match=replies[1]) as refused:
            await agent.sessions("alice").branch("s1", entry_id)
        assert refused.value.nearest == replies[1]
        with pytest.raises(NotATurnEnd):
            await agent.sessions("alice").fork("s1", entry_id)
    assert bytes_of(workspace) == before


async def test_an_open_turn_has_no_end_and_the_one_before_is_named(workspace: Path) -> None:
    agent, model, replies = await talked(workspace, "one")
    model._steps[1:] = [ModelRejected("no")]
    with pytest.raises(ModelRejected):
        await agent.call("q1", ALICE)
    directive = [entry["id"] for entry in of_kind(ledger(workspace), "message") if entry["via"] == "user"][-1]
    with pytest.raises(NotATurnEnd) as refused:
        await agent.sessions("alice").branch("s1", directive)
    assert refused.value.nearest == replies[0]


async def test_a_draft_that_was_steered_on_is_no_end(workspace: Path) -> None:
    async def steer(_request: Any) -> str:
        agent.running(ALICE).steer("and hurry")
        return "draft"

    agent = agent_of(workspace, ScriptedModel([steer, "final"]))
    call = agent.call("q0", ALICE)
    await call
    draft = next(entry["id"] for entry in of_kind(ledger(workspace), "message") if entry["via"] == "model")
    with pytest.raises(NotATurnEnd) as refused:
        await agent.sessions("alice").branch("s1", draft)
    assert refused.value.nearest == call.entry_id
    assert [card["answered"] for card in of_kind(ledger(workspace), "turn_card")] == ["final"]


async def test_a_line_or_session_that_is_not_there_is_said(workspace: Path) -> None:
    agent, _, replies = await talked(workspace)
    sessions = agent.sessions("alice")
    for refused in (sessions.branch("s1", "nowhere"), sessions.fork("s1", "nowhere"), sessions.label("s1", "no", "x")):
        with pytest.raises(ConfigError, match="there is no line"):
            await refused
    said = (await sessions.history("s1"))[-1].id
    for refused in (sessions.branch("s1", said), sessions.fork("s1", said)):
        with pytest.raises(
            ConfigError, match=f"'{said}' is the id of a message .*; give that of its line, '{replies[-1]}'"
        ):
            await refused
    for missing in (sessions.branch("s9", replies[0]), sessions.fork("s9"), sessions.label("s9", replies[0], "x")):
        with pytest.raises(SessionNotFound):
            await missing
    with pytest.raises(SessionNotFound):
        await agent.sessions("bob").branch("s1", replies[0])


async def test_going_back_behind_a_compaction_shows_what_was_there_before_it(workspace: Path) -> None:
    agent, _model, replies = await talked(workspace)
    await agent.sessions("alice").compact("s1")
    compacted = (await agent.sessions("alice").tree("s1")).leaf
    await agent.sessions("alice").branch("s1", replies[0])
    new_process()
    tree = await agent.sessions("alice").tree("s1")
    assert [text for _, text in shown_of(tree)] == ["q0", "one"]
    await agent.sessions("alice").branch("s1", compacted)
    tree = await agent.sessions("alice").tree("s1")
    assert [role for role, _ in shown_of(tree)] == ["user", "user", "assistant"]
    assert (await agent.sessions("alice").verify("s1")).ok


async def test_all_branches_are_listed_with_where_they_left(workspace: Path) -> None:
    agent, _, replies = await talked(workspace)
    sessions = agent.sessions("alice")
    await sessions.branch("s1", replies[0])
    await agent.call("second way", ALICE)
    await sessions.branch("s1", replies[1])
    await agent.call("third way", ALICE)
    found = await sessions.branches("s1")
    assert [(each.title, each.turns, each.active) for each in found] == [
        ("q0", 3, False), ("second way", 2, False), ("third way", 3, True),
    ]  # fmt: skip
    entries = {entry["id"]: entry for entry in ledger(workspace)}
    starts = [entries[each.start]["turnId"] for each in found[1:]]
    assert starts == [entries[replies[0]]["turnId"], entries[replies[1]]["turnId"]]
    assert found[0].start is None


async def test_a_left_branch_can_be_taken_up_again(workspace: Path) -> None:
    agent, model, replies = await talked(workspace)
    sessions = agent.sessions("alice")
    await sessions.branch("s1", replies[0])
    await agent.call("aside", ALICE)
    await sessions.branch("s1", replies[2])
    await agent.call("back", ALICE)
    assert [text for _, text in shown(model.requests[-1])] == ["q0", "one", "q1", "two", "q2", "three", "back"]


# ---- copies


async def test_a_copy_is_a_session_of_its_own_up_to_that_reply(workspace: Path) -> None:
    agent, model, replies = await talked(workspace)
    before = bytes_of(workspace)
    assert await agent.sessions("alice").fork("s1", replies[1], to="copy") == "copy"
    await agent.call("on", COPY)
    assert [text for _, text in shown(model.requests[-1])] == ["q0", "one", "q1", "two", "on"]
    assert bytes_of(workspace) == before
    header = ledger(workspace, "copy")[0]
    assert header["forkedFrom"] == {"session": "s1", "entry": of_kind(ledger(workspace), "turn_card")[1]["id"]}
    assert header["ledgerId"] != ledger(workspace)[0]["ledgerId"]
    assert (await agent.sessions("alice").verify("copy")).findings == ()


async def test_a_copy_without_a_place_is_of_all_turns_that_have_ended(workspace: Path) -> None:
    agent, model, _ = await talked(workspace, "one")
    model._steps[1:] = [ModelRejected("no"), "later"]
    with pytest.raises(ModelRejected):
        await agent.call("q1", ALICE)
    made = await agent.sessions("alice").fork("s1")
    assert made.startswith("session-")
    assert [text for _, text in shown_of(await agent.sessions("alice").tree(made))] == ["q0", "one"]


async def test_a_copy_of_a_compacted_session_has_its_history_and_the_same_view(workspace: Path) -> None:
    agent, model, _ = await talked(workspace)
    sessions = agent.sessions("alice")
    await sessions.compact("s1")
    await agent.call("q3", ALICE)
    await sessions.fork("s1", to="copy")
    new_process()
    tree, source = await sessions.tree("copy"), await sessions.tree("s1")
    assert tree.messages() == source.messages()
    assert tree.boundary != source.boundary
    assert [message.text for message in await sessions.history("copy")][:4] == ["q0", "one", "q1", "two"]
    await agent.call("on", COPY)
    assert shown(model.requests[-1])[:-1] == shown_of(source)


async def test_what_each_request_showed_can_be_proved_in_the_copy_too(workspace: Path) -> None:
    agent, _, _ = await talked(workspace, "one", [call_of("look", n=1)], "three")
    await agent.sessions("alice").fork("s1", to="copy")
    tree = await agent.sessions("alice").tree("copy")
    begun = [entry["id"] for entry in of_kind(ledger(workspace, "copy"), "request_begin")]
    assert [(await tree.context_at(request)).exact for request in begun] == [True] * 3


async def test_a_copy_has_the_title_and_the_labels_of_its_lines_whenever_they_were_given(workspace: Path) -> None:
    agent, model, replies = await talked(workspace)
    sessions = agent.sessions("alice")
    for line, name in ((replies[0], "old"), (replies[2], "beyond"), (replies[1], "old"), (replies[0], "first")):
        await sessions.label("s1", line, name)
    await sessions.rename("s1", "Working title")
    await sessions.branch("s1", replies[1])
    await sessions.rename("s1", "About q0")
    await sessions.label("s1", replies[1], "second")
    await sessions.fork("s1", replies[1], to="copy")
    new_process()
    assert await sessions.labels("copy") == {"old": replies[1], "first": replies[0], "second": replies[1]}
    assert {info.id: info.title for info in await sessions.list()} == {"s1": "About q0", "copy": "About q0"}
    assert [entry["data"]["title"] for entry in of_kind(ledger(workspace, "copy"), "title")] == ["About q0"]
    assert (await sessions.verify("copy")).findings == ()
    await agent.call("on", COPY)
    assert [text for _, text in shown(model.requests[-1])] == ["q0", "one", "q1", "two", "on"]
    assert await sessions.labels(await sessions.fork("copy", replies[0])) == {"first": replies[0]}


async def test_a_copy_does_not_take_the_id_of_a_session_that_lives_in_a_store_alone(workspace: Path) -> None:
    store = InMemorySession()
    agent, model, replies = await talked(workspace, session=store)
    await agent.call("mine", COPY)
    for name in ("copy.log.jsonl", "copy.head.json"):
        (sessions_folder(workspace) / name).unlink()
    new_process()
    with pytest.raises(SessionExists, match="in the store of its state"):
        await agent.sessions("alice").fork("s1", replies[0], to="copy")
    await agent.call("on", COPY)
    assert [text for _, text in shown(model.requests[-1])] == ["mine", "later 0", "on"]
    assert await agent.sessions("alice").delete("copy")
    assert await agent.sessions("alice").fork("s1", replies[0], to="copy") == "copy"


async def test_a_copy_keeps_large_contents_when_its_source_is_deleted(workspace: Path) -> None:
    agent, _, _ = await talked(workspace, "x" * 300_000)
    await agent.sessions("alice").fork("s1", to="copy")
    await agent.sessions("alice").delete("s1")
    tree = await agent.sessions("alice").tree("copy")
    assert shown_of(tree)[1][1] == "x" * 300_000


async def test_an_id_that_is_taken_is_refused_and_nothing_is_written(workspace: Path) -> None:
    agent, _, _ = await talked(workspace)
    await agent.call("hi", COPY)
    before = bytes_of(workspace, "copy")
    with pytest.raises(SessionExists, match="already"):
        await agent.sessions("alice").fork("s1", to="copy")
    assert bytes_of(workspace, "copy") == before


@pytest.mark.parametrize("damage", ["changed", "missing"])
async def test_a_damaged_ledger_is_neither_branched_nor_copied(workspace: Path, damage: str) -> None:
    agent, _, replies = await talked(workspace)
    path = sessions_folder(workspace) / "s1.log.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[1:2] = [lines[1].replace(b"q0", b"q9")] if damage == "changed" else []
    path.write_bytes(b"\n".join(lines))
    new_process()
    for refused in (agent.sessions("alice").branch("s1", replies[2]), agent.sessions("alice").fork("s1", replies[2])):
        with pytest.raises(SessionDamaged):
            await refused
    assert [info.id for info in await agent.sessions("alice").list()] == ["s1"]


async def test_a_torn_tail_is_no_hindrance(workspace: Path) -> None:
    agent, model, replies = await talked(workspace)
    path = sessions_folder(workspace) / "s1.log.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    new_process()
    await agent.sessions("alice").branch("s1", replies[1])
    await agent.sessions("alice").fork("s1", replies[0], to="copy")
    await agent.call("on", ALICE)
    assert [text for _, text in shown(model.requests[-1])] == ["q0", "one", "q1", "two", "on"]


# ---- names


async def test_a_label_names_a_line_and_the_newest_of_a_name_counts(workspace: Path) -> None:
    agent, _, replies = await talked(workspace)
    sessions = agent.sessions("alice")
    await sessions.label("s1", replies[0], "good")
    await sessions.label("s1", replies[1], "bad")
    await sessions.label("s1", replies[2], "good")
    new_process()
    assert await sessions.labels("s1") == {"good": replies[2], "bad": replies[1]}
    with pytest.raises(ConfigError, match="blank"):
        await sessions.label("s1", replies[0], "  ")


async def test_a_title_shows_in_the_list_and_survives_its_loss(workspace: Path) -> None:
    agent, _, _ = await talked(workspace)
    sessions = agent.sessions("alice")
    await sessions.rename("s1", "About three things")
    assert [info.title for info in await sessions.list()] == ["About three things"]
    (sessions_folder(workspace) / "sessions.json").unlink()
    await agent.call("more", ALICE)
    assert [info.title for info in await sessions.list()] == ["About three things"]
    assert (await (await sessions.tree("s1")).notes()).title == "About three things"


@pytest.mark.parametrize("value", [None, 7, b"x", ["x"]])
async def test_names_and_titles_and_lines_are_texts(workspace: Path, value: Any) -> None:
    agent, _, replies = await talked(workspace)
    sessions = agent.sessions("alice")
    for refused in (
        sessions.rename("s1", value),
        sessions.label("s1", replies[0], value),
        sessions.label("s1", value, "name"),
        sessions.branch("s1", value),
    ):
        with pytest.raises(ConfigError, match="give text"):
            await refused
    await agent.aclose()


async def test_half_a_character_in_a_name_or_a_title_is_replaced(workspace: Path) -> None:
    agent, _, replies = await talked(workspace)
    sessions = agent.sessions("alice")
    await sessions.rename("s1", "a\ud800b")
    await sessions.label("s1", replies[0], "c\udfffd")
    assert (await sessions.list())[0].title == "a\ufffdb"
    assert await sessions.labels("s1") == {"c\ufffdd": replies[0]}
    await agent.aclose()
