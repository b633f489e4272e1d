"""Removing a user leaves no byte of the user, and not one byte less of anybody else."""

import asyncio
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, call_of, shown, until
from removalkit import CANARY, bytes_of, settled, talkative, talked, traces

from harness import HarnessAgent, RuntimeContext
from harness.agent import UserRemoval, open_session
from harness.agent.gate import process_gate
from harness.errors import ConfigError, InvalidId, PersistenceError, SessionBusy, SessionDamaged
from harness.filesystem import AbstractFilesystem, FsspecFilesystem, LocalFilesystem
from harness.filesystem.locks import FileLock
from harness.sessions import InMemorySession, JsonSession, SessionCache, SessionKey
from harness.testing import ScriptedModel

# Ids that a file system, a prefix of a key, or a hasty comparison could take for "a".
LOOK_ALIKES = [
    "A",
    "a/b",
    "a:b",
    "a+b",
    "a ",
    "aa",
    "a.removed",
    "_",
    "á",
    unicodedata.normalize("NFD", "á"),
    "á" * 300,
]


async def test_no_byte_and_no_name_of_a_removed_user_is_left(workspace: Path) -> None:
    async with talkative(workspace) as agent:
        await talked(agent, f"user-{CANARY}", CANARY)
        await talked(agent, "bob", "bobs")
        await agent.sessions(f"user-{CANARY}").delete("s1")  # its tombstone goes, too
        before = {name: raw for name, raw in (await settled(agent, workspace)).items() if "/bob/" in name}
        removal = await agent.delete_user(f"user-{CANARY}")
        assert traces(CANARY, workspace) == []
        assert [path.name for path in (workspace / "tenants").iterdir()] == ["bob"]
        assert bytes_of(workspace) == before
    assert removal
    counted = (removal.sessions, removal.ledgers, removal.memory_files, removal.index_rows, removal.snapshot_keys)
    assert counted == (1, 1, 2, 1, 1)
    assert removal.contents == 1
    assert removal.bytes > 50_000
    assert removal.unreached == ()


async def test_every_agent_of_the_user_is_removed_with_it(workspace: Path) -> None:
    store = JsonSession(workspace.parent / "store")
    for name in ("one", "two", "T" * 200):
        agent = HarnessAgent.builder().name(name).model("offline").workspace(workspace).session(store).build()
        async with agent:
            await agent.call(CANARY, ALICE)
    async with talkative(workspace, session=store) as agent:
        removal = await agent.delete_user("alice")
    assert traces(CANARY, workspace, workspace.parent / "store") == []
    assert traces("alice", workspace, workspace.parent / "store") == []
    assert (removal.sessions, removal.snapshot_keys) == (3, 3)


@pytest.mark.parametrize("user", ["a", *LOOK_ALIKES])
async def test_users_with_ids_that_look_alike_are_not_touched(workspace: Path, user: str) -> None:
    given, own, others = JsonSession(workspace.parent / "store"), InMemorySession(), {"a", *LOOK_ALIKES} - {user}
    async with talkative(workspace, session=own) as agent:
        for each in (user, *others):
            for session, store in (("s1", None), ("s2", given)):
                await agent.call("hello", RuntimeContext(session_id=session, user_id=each, session=store))
        folders = (workspace, workspace.parent / "store")
        gone = agent.sessions(user)._binding("s1").tenant_root
        there = await settled(agent, *folders)
        before = {name: raw for name, raw in there.items() if gone.name not in Path(name).parts}
        await agent.delete_user(RuntimeContext(user_id=user, session=given))
        assert bytes_of(*folders) == before
        for each in others:
            assert [info.id for info in await agent.sessions(each).list()] == ["s1", "s2"]
            assert await own.exists(SessionKey((each,), "notes", "s1"))
        assert not await own.exists(SessionKey((user,), "notes", "s1"))


async def test_a_call_that_begins_later_is_one_of_a_new_user(workspace: Path) -> None:
    model = ScriptedModel(["ok", "ok", "hello"])
    async with agent_of(workspace, model) as agent:
        await agent.call(CANARY, ALICE)
        await agent.call("more", ALICE)
        await agent.delete_user("alice")
        await agent.call("new", ALICE)
        assert shown(model.requests[-1]) == [("user", "new")]
        assert (await agent.sessions("alice").verify("s1")).ok
        assert traces(CANARY, workspace) == []


async def test_a_process_that_knows_a_session_of_a_removed_user_begins_anew_as_well(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, store = ScriptedModel(["ok", "hello"]), InMemorySession()
    async with agent_of(workspace, model, session=store) as agent, talkative(workspace, session=store) as other:
        await agent.call(CANARY, ALICE)
        with monkeypatch.context() as patched:
            patched.setattr(open_session, "_cache", SessionCache())  # as in another process
            await other.delete_user("alice")
        await agent.call("new", ALICE)
        assert shown(model.requests[-1]) == [("user", "new")]
        assert (workspace / "tenants/alice/tenant.json").read_bytes() == b'{"namespace":["alice"]}\n'
        assert traces(CANARY, workspace) == []


async def test_a_second_removal_says_that_nothing_was_there_and_makes_nothing(workspace: Path) -> None:
    async with talkative(workspace) as agent:
        await agent.call("hello", ALICE)
        assert await agent.delete_user("alice")
        for user in ("alice", "nobody ever"):
            assert await agent.delete_user(user) == UserRemoval((user,))
            assert not await agent.delete_user(user)
    assert [*(workspace / "tenants").iterdir()] == []


async def test_while_a_call_of_the_user_runs_nothing_is_removed(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel(["ok", held, "ok"])) as agent:
        await agent.call("before", ALICE.with_changes(session_id="s2"))
        call = agent.call("hello", ALICE)
        async with call:
            async for _ in call:
                break
            await held.asked.wait()
            with pytest.raises(SessionBusy, match="session 's1' of this user has a call in progress; nothing was"):
                await agent.delete_user("alice")
            held.let_go.set()
            await call
        assert len(await agent.sessions("alice").list()) == 2
        assert await agent.delete_user("alice")


async def test_a_tool_cannot_remove_the_user_it_works_for(workspace: Path) -> None:
    agents: list[HarnessAgent] = []

    async def suicide() -> str:
        """Removes the user."""
        await agents[0].delete_user("alice")
        return "done"

    async with agent_of(workspace, ScriptedModel([call_of("suicide"), "well"]), suicide) as agent:
        agents.append(agent)
        await agent.call("go", ALICE)
        assert "has a call in progress" in str([m.to_dict() for m in await agent.sessions("alice").history("s1")])


@pytest.mark.parametrize("name", ["agents/notes/sessions/s1.lock", "agents/notes/sessions/sessions.json.lock", "agents/edit.lock", "agents/notes/sessions/files/files.lock"])  # fmt: skip
async def test_while_another_process_holds_a_lock_of_the_user_nothing_is_removed(workspace: Path, name: str) -> None:
    async with talkative(workspace) as agent:
        await talked(agent, "alice", CANARY)
        before = await settled(agent, workspace)
        lock = FileLock(workspace / "tenants/alice" / name)
        await lock.acquire(1)
        try:
            with pytest.raises(
                SessionBusy, match=f"holds the lock .*{Path(name).name}; nothing of this user was removed"
            ):
                await agent.delete_user("alice")
        finally:
            lock.release()
        assert bytes_of(workspace) == before
        await agent.call("goes on", ALICE)


async def test_two_removals_at_once_remove_the_user_once(workspace: Path) -> None:
    async with talkative(workspace) as one, talkative(workspace) as two:
        await talked(one, "alice", CANARY)
        done = await asyncio.gather(*(each.delete_user("alice") for each in (one, two)), return_exceptions=True)
        assert all(isinstance(each, UserRemoval | SessionBusy) for each in done)
        assert sum(bool(each) for each in done if isinstance(each, UserRemoval)) == 1
        assert traces(CANARY, workspace) == []


async def test_who_may_be_several_people_is_removed_only_if_that_is_said(workspace: Path) -> None:
    places: dict[str, Any] = {
        "a team": lambda ctx: ("team",),
        "case": lambda ctx: (str(ctx.user_id).lower(),),
        "form": lambda ctx: (unicodedata.normalize("NFC", str(ctx.user_id)),),
        "always her": lambda ctx: ("alice",),
    }
    for namespace in places.values():
        async with talkative(workspace, namespace=namespace) as agent:
            await agent.call("hello", ALICE)
            before = await settled(agent, workspace)
            user = "é" if namespace is places["form"] else "alice"
            with pytest.raises(ConfigError, match="several people's"):
                await agent.delete_user(user)
            assert bytes_of(workspace) == before
            assert await agent.delete_user("alice", whole_tenant=True)


async def test_the_tenant_of_calls_without_a_user_is_removed_only_if_that_is_said(workspace: Path) -> None:
    async with talkative(workspace) as agent:
        await agent.call(CANARY, RuntimeContext(session_id="s1"))
        await agent.call("hello", ALICE)
        with pytest.raises(ConfigError, match="all calls without a user"):
            await agent.delete_user(None)
        assert (await agent.delete_user(None, whole_tenant=True)).namespace == ()
        assert traces(CANARY, workspace) == []
        assert len(await agent.sessions("alice").list()) == 1
    async with talkative(workspace, require_user=()) as agent:
        with pytest.raises(InvalidId):
            await agent.delete_user(None, whole_tenant=True)


async def test_a_namespace_that_names_the_user_among_others_is_one_users(workspace: Path) -> None:
    def known(ctx: RuntimeContext) -> tuple[str, ...]:
        return ({"alice": "acme", "bob": "acme"}[str(ctx.user_id)], str(ctx.user_id))

    async with talkative(workspace, namespace=known) as agent:
        for user in ("alice", "bob"):
            await agent.call(f"{user}-{CANARY}", RuntimeContext(session_id="s1", user_id=user))
        assert (await agent.delete_user("alice")).namespace == ("acme", "alice")
        assert traces(f"alice-{CANARY}", workspace) == []
        assert len(await agent.sessions("bob").list()) == 1


async def test_other_tenants_that_name_the_user_are_named_and_stay(workspace: Path) -> None:
    async with talkative(workspace, namespace=lambda ctx: (str(ctx.user_id), str(ctx.get("project")))) as agent:
        for user, project in (("alice", "one"), ("alice", "two/x"), ("bob", "one"), ("alice2", "one")):
            await agent.call(CANARY, RuntimeContext(session_id="s1", user_id=user, extra={"project": project}))
        removal = await agent.delete_user(RuntimeContext(user_id="alice", extra={"project": "one"}))
    assert removal.unreached == (
        "the tenant alice+two%2fx, whose name has this user in it too; delete the user there, too",
    )
    assert sorted(path.name for path in (workspace / "tenants").iterdir()) == ["alice+two%2fx", "alice2+one", "bob+one"]


async def test_a_folder_that_says_it_is_somebody_elses_is_not_removed(workspace: Path) -> None:
    async with talkative(workspace) as agent:
        await agent.call("hello", ALICE)
        (workspace / "tenants/alice/tenant.json").write_text('{"namespace":["bob"]}')
        before = await settled(agent, workspace)
        with pytest.raises(SessionDamaged, match="belongs to"):
            await agent.delete_user("alice")
        assert bytes_of(workspace) == before


@pytest.mark.parametrize("kind", ["local", "memory", "the workspace by another name"])
async def test_the_files_of_a_user_that_lie_elsewhere_are_removed(workspace: Path, kind: str) -> None:
    elsewhere = workspace.parent / "elsewhere"
    places: dict[str, Any] = {
        "local": lambda: LocalFilesystem(elsewhere),
        "memory": lambda: FsspecFilesystem("memory://delete-user"),
        "the workspace by another name": lambda: FsspecFilesystem(f"file://{workspace}"),
    }
    place = places[kind]()
    async with talkative(workspace, filesystem=place) as agent:
        await talked(agent, "alice", CANARY)
        await talked(agent, "bob", "bobs")
        assert (await agent.delete_user("alice")).memory_files == 2
        assert not (await place.for_namespace(("alice",)).ls()).items
        assert await place.for_namespace(("bob",)).exists("MEMORY.md")
        assert traces(CANARY, workspace, workspace.parent) == []


async def test_a_link_of_a_user_is_removed_and_what_it_leads_to_is_named(workspace: Path) -> None:
    other = workspace.parent / "other"
    other.write_text("mine")
    async with talkative(workspace) as agent:
        await agent.call("hello", ALICE)
        (workspace / "tenants/alice/link.md").symlink_to(other)
        removal = await agent.delete_user("alice")
    assert removal.unreached == ("what the link link.md of this user led to; the link is removed",)
    assert other.read_text() == "mine"


@pytest.mark.parametrize("place", ["tenants/alice", "tenants/alice/agents"])
async def test_a_user_whose_folder_is_a_link_is_not_removed_in_part(workspace: Path, place: str) -> None:
    async with talkative(workspace) as agent:
        await agent.call("hello", ALICE)
        (workspace / place).rename(workspace.parent / "moved")
        (workspace / place).symlink_to(workspace.parent / "moved")
        before = await settled(agent, workspace.parent)
        with pytest.raises(PersistenceError, match="is a link"):
            await agent.delete_user("alice")
        assert bytes_of(workspace.parent) == before


async def test_what_was_to_be_remembered_is_waited_for_and_removed(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["ok", f"- {CANARY}"]), memory_flush=()) as agent:
        await agent.call(CANARY, ALICE)
        await agent.delete_user("alice")
        assert traces(CANARY, workspace) == []
    assert traces(CANARY, workspace) == []


async def test_what_another_agent_is_about_to_remember_is_not_written_for_a_removed_user(workspace: Path) -> None:
    held = Held(f"- {CANARY}")
    async with agent_of(workspace, ScriptedModel(["ok", held]), memory_flush=()) as one, talkative(workspace) as two:
        await one.call(CANARY, ALICE)
        await held.asked.wait()
        await until(lambda: not _busy(workspace))
        await two.delete_user("alice")
        await two.call("new", ALICE)
        held.let_go.set()
    assert traces(CANARY, workspace) == []


def _busy(workspace: Path) -> bool:
    return bool(process_gate().held_below(str(workspace)))


class _Foreign(AbstractFilesystem):
    """A place of the user's own, of which only its name matters here."""

    def for_namespace(self, namespace: tuple[str, ...]) -> AbstractFilesystem:
        return self

    ls = read = write = edit = append = grep = glob = read_bytes = write_bytes = delete = move = exists = None  # type: ignore[assignment]  # not called


async def test_a_place_of_files_that_cannot_remove_a_tenant_is_named(workspace: Path) -> None:
    async with talkative(workspace, filesystem=_Foreign()) as agent:
        await agent.call("hello", ALICE)
        [sentence] = (await agent.delete_user("alice")).unreached
    assert sentence == "the files of this user in _Foreign, which cannot remove a tenant; remove them there"
