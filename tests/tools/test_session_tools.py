from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.filesystem.namespaces import agent_root, tenant_root
from harness.messages import Msg, TextBlock, ToolResult, ToolUse
from harness.sessions import SessionTree
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.tools import SESSION_TOOLS, ToolCall, Toolkit

TOOLS = Toolkit(*SESSION_TOOLS)
AGENT = "agent"


def folder_of(workspace: Path, user: str, agent: str = AGENT) -> Path:
    return agent_root(tenant_root(workspace, (user,)), agent) / "sessions"


async def say(
    workspace: Path,
    user: str,
    session: str,
    turns: Sequence[tuple[str, str]],
    agent: str = AGENT,
    *,
    compact: bool = False,
) -> None:
    """A conversation as the loop logs it: each turn a prompt and a committed answer."""
    tree = SessionTree(folder_of(workspace, user, agent), session, agent=agent, namespace=(user,))
    async with tree.writing():
        ids = []
        for prompt, answer in turns:
            asked = Msg.user(prompt).to_dict()
            ids.append(turn := tree.add_message(asked, via="user"))
            binding = tree.bind([{"name": "base", "text": "Be kind."}], [], "m", "p")
            request = tree.begin_request("execute", 1, binding, [asked], turn, "none")
            tree.add_message(Msg.assistant(answer).to_dict(), via="model", turn=turn, request=request)
            tree.end_request(request, "completed", turn=turn)
            await tree.commit()
        if compact:
            tree.append_compaction("They talked.", ids[0], ids[-1], "m", 10)
            await tree.commit()


@pytest.fixture
def place(tmp_path) -> Path:
    """A workspace on disk."""
    return tmp_path / "workspace"


@pytest.fixture
def use(make_scope, place):
    """Calls a session tool as a user's model would; gives its text."""

    async def call(name: str, user: str = "alice", session: str = "s1", **given: object) -> str:
        scope = make_scope(user, SessionCatalog(folder_of(place, user), AGENT, (user,)), session=session)
        return (await TOOLS.run(ToolCall("c", name, given), scope)).text

    return call


def test_no_parameter_names_another_user_or_agent():
    shown = {spec.name: list(spec.parameters["properties"]) for spec in TOOLS.specs()}

    assert shown == {
        "session_search": ["query", "max_results", "session_id"],
        "session_list": [],
        "session_history": ["session_id", "last_n"],
        "recall": ["query", "limit", "turn", "id", "lines", "chars"],
    }
    assert all(not spec.parameters.get("required") or spec.name == "session_search" for spec in TOOLS.specs())


async def test_history_is_of_this_session_unless_another_is_named(use, place):
    await say(place, "alice", "s1", [("My name is Alice.", "Hello Alice.")])
    await say(place, "alice", "s2", [("And now?", "Still here.")])

    assert await use("session_history") == (
        "Session s1 (current) (the last 2 messages):\n[USER]: My name is Alice.\n[ASSISTANT]: Hello Alice."
    )
    assert await use("session_history", session_id="s2", last_n=1) == (
        "Session s2 (the last 1 messages):\n[ASSISTANT]: Still here."
    )


async def test_history_holds_what_was_compacted(use, place):
    await say(place, "alice", "s1", [("one", "uno"), ("two", "due")], compact=True)

    assert (await use("session_history")).endswith("[USER]: one\n[ASSISTANT]: uno\n[USER]: two\n[ASSISTANT]: due")


async def test_history_shows_calls_and_results(use, place):
    tree = SessionTree(folder_of(place, "alice"), "s1", agent=AGENT, namespace=("alice",))
    async with tree.writing():
        turn = tree.add_message(Msg.user("look").to_dict(), via="user")
        binding = tree.bind([], [], "m", "p")
        request = tree.begin_request("execute", 1, binding, [], turn, "none")
        call = Msg.assistant(TextBlock(text="I look."), ToolUse(id="c1", name="read_file", input={"path": "a"}))
        tree.add_message(call.to_dict(), via="model", turn=turn, request=request)
        tree.end_request(request, "completed", turn=turn)
        tree.add_message(Msg.tool(ToolResult(id="c1", name="read_file", content="42")).to_dict(), via="tool", turn=turn)
        await tree.commit()

    assert (await use("session_history")).split("\n")[1:] == [
        "[USER]: look",
        '[ASSISTANT]: I look. (calls read_file with {"path":"a"})',
        "[TOOL]: (result of read_file: 42)",
    ]


async def test_a_long_history_keeps_the_newest_and_says_so(use, place):
    await say(place, "alice", "s1", [(f"question {n} {'x' * 3000}", "ok") for n in range(30)])

    text = await use("session_history", last_n=60)

    assert len(text) < 41_000
    assert text.split("\n")[1] == "[earlier ones do not fit; session_search finds them]"
    assert text.endswith("more characters]\n[ASSISTANT]: ok")
    assert "question 29" in text
    assert "question 0 " not in text


async def test_a_session_that_does_not_exist_is_an_error_but_the_current_one_is_only_new(use):
    assert await use("session_history", session_id="nope") == (
        "Error: Session not found: nope; session_list shows the ones there are"
    )
    assert await use("session_history") == "Session s1 (current) has no messages yet"


async def test_the_list_marks_the_current_session_and_tells_titles_and_turns(use, place):
    await say(place, "alice", "s1", [("Plan the trip", "Sure."), ("More", "Fine.")])
    await say(place, "alice", "other one", [("Buy milk", "Noted.")])

    lines = (await use("session_list")).split("\n")

    assert lines[0] == "2 sessions:"
    assert {line.partition(", last")[0] for line in lines[1:]} == {
        "  - s1 (current): Plan the trip (2 turns",
        "  - other one: Buy milk (1 turns",
    }
    assert await use("session_list", user="bob") == "No sessions found"


@pytest.mark.parametrize("session", ["agent:x:main", "../up", "a\nb", ' "quoted"', '"q', "会话", "a.log", "line\u2028"])
async def test_an_id_from_the_list_can_be_given_back(use, place, session):
    await say(place, "alice", session, [("hello", "world")])

    line = (await use("session_list")).split("\n")[1]
    shown = line.removeprefix("  - ").partition(": hello (1 turns")[0]

    assert "[ASSISTANT]: world" in await use("session_history", session_id=shown)
    assert "[ASSISTANT]: world" in await use("session_history", session_id=session)


async def test_search_finds_words_in_any_session_with_ids_that_can_be_used(use, place):
    await say(place, "alice", "s1", [("The boat is blue", "Yes.")])
    await say(place, "alice", "s2", [("Blue BOAT again", "Indeed."), ("我喜欢喝茶", "好")], compact=True)

    lines = (await use("session_search", query="blue boat")).split("\n")

    assert lines[0] == 'Found 2 matches for "blue boat":'
    assert {line.partition("]")[0] for line in lines[1:]} == {"  [s1 (current)", "  [s2"}
    assert all(" — [USER]: " in line for line in lines[1:])
    assert "[USER]: 我喜欢喝茶" in await use("session_search", query="喝茶")
    assert (await use("session_search", query="blue", session_id="s2")).startswith("Found 1 matches")
    assert await use("session_search", query="zebra") == "No matching messages found for: zebra"


async def test_a_search_without_words_is_an_error(use):
    assert (await use("session_search", query=" ")).startswith("Error: the query is empty")


async def test_another_tenants_and_agents_sessions_are_not_there(use, place):
    await say(place, "bob", "s1", [("canary of bob", "ok")])
    await say(place, "bob", "secret", [("canary of bob", "ok")])
    await say(place, "alice", "s9", [("canary of another agent", "ok")], agent="other")

    assert await use("session_search", query="canary") == "No matching messages found for: canary"
    assert await use("session_search", query="canary", session_id="secret") == "No matching messages found for: canary"
    assert await use("session_list") == "No sessions found"
    assert await use("session_history") == "Session s1 (current) has no messages yet"
    for hostile in ("secret", "../../bob/agents/agent/sessions/secret", "s9", "../../other/sessions/s9", "*", "%2e%2e"):
        assert "canary" not in await use("session_history", session_id=hostile)


@pytest.mark.parametrize("bad", [" ", "a\0b", "x" * 5000])
async def test_an_id_that_is_none_is_an_error(use, bad):
    assert (await use("session_history", session_id=bad)).startswith("Error: ")


async def test_a_damaged_session_is_an_error_that_names_no_place_of_the_host(use, place, caplog):
    await say(place, "bob", "s1", [("canary of bob", "ok")])
    stolen = folder_of(place, "bob") / "s1.log.jsonl"
    target = folder_of(place, "alice") / "s1.log.jsonl"
    target.parent.mkdir(parents=True)
    target.write_bytes(stolen.read_bytes())

    for answer in (await use("session_history"), await use("session_search", query="canary", session_id="s1")):
        assert answer == "Error: the sessions cannot be read at the moment; go on without them"
    assert str(target) in caplog.text


async def test_the_turn_that_searches_does_not_find_itself(make_scope, place):
    await say(place, "alice", "s1", [("The code word is heron.", "Noted."), ("What is the code word?", "Wait.")])
    tree = SessionTree(folder_of(place, "alice"), "s1", agent=AGENT, namespace=("alice",))
    await tree.load()
    scope = make_scope("alice", SessionCatalog(folder_of(place, "alice"), AGENT, ("alice",)), tree, session="s1")
    shown = (await TOOLS.run(ToolCall("c", "session_search", {"query": "code word"}), scope)).text
    assert "The code word is heron." in shown
    assert "What is the code word?" not in shown
