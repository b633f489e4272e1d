"""Ids from outside, as users, sessions and agents: refused before a file is touched, or fully usable."""

import asyncio
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
from places import agent_in, all_ids, bad_names, changed_outside, is_refused, listing, neighbourhood, own_ids

from harness.agent import HarnessAgent, open_session
from harness.cli.app import app
from harness.context import RuntimeContext
from harness.errors import InvalidId, SessionNotFound
from harness.messages import ToolUse
from harness.sessions import SessionCache
from harness.testing import ScriptedModel


@pytest.fixture
def restart(monkeypatch: pytest.MonkeyPatch):
    """Forget what this process remembers of sessions, as a new process would know nothing."""
    return lambda: monkeypatch.setattr(open_session, "_cache", SessionCache())


async def live(workspace: Path, restart, *, user: str = "alice", session: str = "s", agent: str = "agent") -> None:
    """A whole life: two calls, a restart, a third, history, list, search, delete, and all under this very id."""
    ctx = RuntimeContext(session_id=session, user_id=user)
    async with agent_in(workspace, agent) as first:
        assert (await first.call("one", ctx)).text == "heard: one"
        assert (await first.call("two", ctx)).text == "heard: two"
    restart()
    async with agent_in(workspace, agent) as second:
        assert [info.id for info in await second.sessions(user).list()] == [session]
        await second.call("three", ctx)
        history = [message.text for message in await second.sessions(user).history(session)]
        assert history == ["one", "heard: one", "two", "heard: two", "three", "heard: three"]
        hits = await second.sessions(user).search("two")
        assert {hit.session_id for hit in hits} == {session}
        assert len((await second.sessions(user).tree(session)).messages()) == 6


async def end(workspace: Path, *, user: str = "alice", session: str = "s", agent: str = "agent") -> None:
    async with agent_in(workspace, agent) as last:
        assert await last.sessions(user).delete(session) is True
        assert await last.sessions(user).list() == []


ACCEPTED = [id_ for id_ in all_ids() if not is_refused(lambda id_=id_: RuntimeContext(user_id=id_))]
REFUSED = [id_ for id_ in all_ids() if id_ not in ACCEPTED]


def test_the_corpus_is_large_and_the_own_part_is_judged_as_it_says() -> None:
    assert len(ACCEPTED) >= 100
    assert [item for item in own_ids() if (item["class"] == "accepted") != (item["id"] in ACCEPTED)] == []


@pytest.mark.slow
async def test_as_a_user_an_id_has_one_folder_and_touches_no_other(tmp_path: Path, restart) -> None:
    workspace = await neighbourhood(tmp_path)
    for user in ACCEPTED:
        before = listing(tmp_path)
        await live(workspace, restart, user=user)
        after = listing(tmp_path)
        [root] = {key.split("/")[2] for key in after.keys() - before.keys()}
        assert changed_outside(before, after, f"workspace/tenants/{root}/") == [], user
        await end(workspace, user=user)
    assert bad_names(tmp_path) == []


@pytest.mark.slow
async def test_as_a_session_an_id_stays_in_the_agents_folder(tmp_path: Path, restart) -> None:
    workspace = await neighbourhood(tmp_path)
    for session in ACCEPTED:
        before = listing(tmp_path)
        await live(workspace, restart, session=session)
        inside = "workspace/tenants/alice/agents/agent/"
        changed = changed_outside(before, listing(tmp_path), inside)
        assert changed in ([], ["workspace/tenants/alice/tenant.json"]), session
        assert bad_names(tmp_path) == [], session
        await end(workspace, session=session)


@pytest.mark.slow
async def test_as_an_agent_an_id_has_one_folder_in_the_tenant(tmp_path: Path, restart) -> None:
    workspace = await neighbourhood(tmp_path)
    await live(workspace, restart, agent="first")
    for agent in ACCEPTED:
        before = listing(tmp_path)
        await live(workspace, restart, agent=agent)
        after = listing(tmp_path)
        [folder] = {"/".join(key.split("/")[:5]) for key in after.keys() - before.keys()}
        assert changed_outside(before, after, f"{folder}/") == [], agent
        assert folder.startswith("workspace/tenants/alice/agents/"), agent
    assert bad_names(tmp_path) == []


async def test_no_two_ids_share_a_folder_not_even_on_a_disk_that_is_blind_to_case(tmp_path: Path) -> None:
    async with agent_in(tmp_path) as agent:
        for number, session in enumerate(ACCEPTED):
            await agent.call(f"number {number}", RuntimeContext(session_id=session, user_id="alice"))
        assert sorted(info.id for info in await agent.sessions("alice").list()) == sorted(ACCEPTED)
        for number, session in enumerate(ACCEPTED):
            history = [message.text for message in await agent.sessions("alice").history(session)]
            assert history == [f"number {number}", f"heard: number {number}"]
    ledgers = [key for key in listing(tmp_path) if key.endswith(".log.jsonl")]
    assert len({name.casefold() for name in ledgers}) == len(ledgers) == len(ACCEPTED)


@pytest.mark.parametrize("role", ["user", "session", "agent"])
async def test_a_refused_id_is_refused_before_anything_is_touched(tmp_path: Path, role: str) -> None:
    workspace = await neighbourhood(tmp_path)
    before = listing(tmp_path)
    for id_ in REFUSED:
        with pytest.raises(InvalidId):
            await call_as(workspace, role, id_)
    assert listing(tmp_path) == before


async def call_as(workspace: Path, role: str, id_: str) -> None:
    if role == "agent":
        # Without an id the name stands in for it, so a blank one is nobody's id.
        HarnessAgent.builder().agent_id(id_)
    ctx = RuntimeContext(**{"user_id": "alice", "session_id": "s", f"{role}_id": id_})
    await agent_in(workspace).call("hello", ctx)


@pytest.mark.parametrize("method", ["history", "tree", "delete", "compact"])
async def test_a_hostile_session_id_reaches_nothing_through_the_session_methods(tmp_path: Path, method: str) -> None:
    workspace = await neighbourhood(tmp_path)
    async with agent_in(workspace) as agent:
        await agent.call("hello", RuntimeContext(session_id="s", user_id="alice"))
        await agent.sessions("alice").list()
        before = listing(tmp_path)
        for id_ in [*ACCEPTED, *REFUSED, "../../../../bob/agents/other/sessions/chat", "chat"]:
            assert await found_by(agent, method, id_) is False, id_
    after = listing(tmp_path)
    assert changed_outside(before, after, "workspace/tenants/alice/agents/agent/sessions/") == []
    assert {key for key in after if key.endswith(".log.jsonl")} == {key for key in before if key.endswith(".log.jsonl")}


async def found_by(agent: HarnessAgent, method: str, session: str) -> bool:
    try:
        return bool(await getattr(agent.sessions("alice"), method)(session))
    except (InvalidId, SessionNotFound):
        return False


async def test_a_hostile_session_id_reaches_nothing_through_the_models_session_tools(tmp_path: Path) -> None:
    workspace = await neighbourhood(tmp_path)
    ids = [*all_ids(), "../../../../bob/agents/other/sessions/chat", "chat"]
    uses = [
        ToolUse(id=f"{name}-{number}", name=name, input={"session_id": id_, **more})
        for number, id_ in enumerate(ids)
        if not any("\ud800" <= character <= "\udfff" for character in id_)
        for name, more in (("session_history", {}), ("session_search", {"query": "here"}))
    ]
    model = ScriptedModel([uses, "done"])
    async with HarnessAgent.builder().name("agent").model(model).workspace(workspace).build() as agent:
        before = listing(tmp_path)
        await agent.call("look around", RuntimeContext(session_id="s", user_id="alice"))
    told = [result.text for message in model.requests[1].messages for result in message.tool_results]
    assert len(told) == len(uses)
    assert [text for text in told if "I am here" in text] == []
    assert changed_outside(before, listing(tmp_path), "workspace/tenants/alice/") == []


@pytest.mark.parametrize("option", ["--user", "--agent", "session"])
def test_a_hostile_id_on_the_command_line_touches_nothing_outside(tmp_path: Path, option: str) -> None:
    workspace = asyncio.run(neighbourhood(tmp_path))
    before = listing(tmp_path)
    for id_ in ("../bob", "..", "/etc/passwd", "a\nb", "*"):
        words = {"--user": "alice", "--agent": "agent", "session": "s"} | {option: id_}
        session = words.pop("session")
        options = [word for pair in words.items() for word in pair]
        done = CliRunner().invoke(
            app, ["sessions", "show", *options, "--workspace", str(workspace), "--json", "--", session]
        )
        assert done.exit_code in {1, 2, 3}, done.output
        assert "I am here" not in done.output
    assert changed_outside(before, listing(tmp_path), "workspace/tenants/alice/") == []


async def test_hostile_keys_in_the_index_reach_nothing_and_are_not_listed(tmp_path: Path) -> None:
    workspace = await neighbourhood(tmp_path)
    async with agent_in(workspace) as agent:
        await agent.call("hello", RuntimeContext(session_id="s", user_id="alice"))
    index = workspace / "tenants/alice/agents/agent/sessions/sessions.json"
    entry = b'{"title":"x","summary":"","createdAt":"2026-01-01T00:00:00.000000Z","updatedAt":"2026-01-01T00:00:00.000000Z","turns":1}'
    keys = (b"../../../../bob/agents/other/sessions/chat", b"..", b"/etc/passwd", b"", b"\\u0000", b"gone", b"chat")
    index.write_bytes(b'{"version":1,"sessions":{' + b",".join(b'"%b":%b' % (key, entry) for key in keys) + b"}}")
    before = listing(tmp_path)
    async with agent_in(workspace) as agent:
        assert [info.id for info in await agent.sessions("alice").list()] == ["s"]
        assert await agent.sessions("alice").search("here") == []
    assert changed_outside(before, listing(tmp_path), "workspace/tenants/alice/agents/agent/sessions/") == []


async def test_files_stand_under_the_id_and_nothing_under_the_name(tmp_path: Path, restart) -> None:
    ctx = RuntimeContext(session_id="s", user_id="alice")
    async with agent_in(tmp_path, "127", "Miss Marple") as agent:
        await agent.call("hello", ctx)
        await agent.call("hello again", ctx)
        assert (agent.name, agent.agent_id) == ("Miss Marple", "127")
        assert await agent.sessions("alice").compact("s") is True
        assert [info.id for info in await agent.sessions("alice").list()] == ["s"]
        assert len(await agent.sessions("alice").search("hello")) >= 2
    assert [path.name for path in (tmp_path / "tenants/alice/agents").iterdir()] == ["127"]
    assert [key for key in listing(tmp_path) if "marple" in key.lower()] == []


async def test_renaming_an_agent_changes_no_path_and_loses_no_session(tmp_path: Path, restart) -> None:
    ctx = RuntimeContext(session_id="s", user_id="alice")
    async with agent_in(tmp_path, "127", "Miss Marple") as agent:
        await agent.call("hello", ctx)
    before = set(listing(tmp_path))
    restart()
    async with agent_in(tmp_path, "127", "Jane") as renamed:
        await renamed.call("again", ctx)
        assert (await renamed.sessions("alice").history("s"))[0].text == "hello"
    assert set(listing(tmp_path)) == before


async def test_two_agents_of_one_name_with_different_ids_are_apart(tmp_path: Path) -> None:
    ctx = RuntimeContext(session_id="s", user_id="alice")
    async with agent_in(tmp_path, "1", "Twin") as one, agent_in(tmp_path, "2", "Twin") as two:
        await one.call("to the first", ctx)
        await two.call("to the second", ctx)
        assert (await one.sessions("alice").history("s"))[0].text == "to the first"
        assert (await two.sessions("alice").history("s"))[0].text == "to the second"
        assert await one.sessions("alice").search("second") == []


async def test_a_name_with_a_slash_is_one_folder(tmp_path: Path) -> None:
    agent = HarnessAgent.builder().name("sales/../north").model("offline").workspace(tmp_path).build()
    async with agent:
        await agent.call("hello", RuntimeContext(session_id="s", user_id="alice"))
    [folder] = (tmp_path / "tenants/alice/agents").iterdir()
    assert folder.name == "sales%2f%2e%2e%2fnorth"
