"""A removed user does not come back from what the Java harness left, and nobody else loses what it left of them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, shown
from javakit import Java, text, tree_bytes

from harness.agent import UserRemoval
from harness.testing import ScriptedModel

HERS = [text(1, "USER", "My name is Ada.", "user"), text(2, "ASSISTANT", "Hello Ada.", "bot")]
BOBS = [text(1, "USER", "My name is Bob.", "user"), text(2, "ASSISTANT", "Hello Bob.", "bot")]


async def removed(workspace: Path, user: str | None = "alice") -> UserRemoval:
    async with agent_of(workspace, ScriptedModel()) as agent:
        return await agent.delete_user(user, whole_tenant=user is None)


async def seen(workspace: Path, session: str = "s1", user: str | None = "alice") -> list[str]:
    model = ScriptedModel(["ok"])
    async with agent_of(workspace, model) as agent:
        await agent.call("new", ALICE.with_changes(session_id=session, user_id=user))
    return [words for _, words in shown(model.requests[0])]


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def left(workspace: Path, words: str = "Ada") -> list[str]:
    return [name for name, raw in tree_bytes(workspace).items() if words.encode() in raw]


@pytest.mark.parametrize("taken_over", [False, True])
@pytest.mark.parametrize("agent", ["notes", "another agent"])
async def test_sessions_and_memory_of_the_user_go_whether_or_not_they_were_taken_over(
    workspace: Path, taken_over: bool, agent: str
) -> None:
    java = Java(workspace, agent=agent, user="alice")
    for session in ("s1", "s2.log"):
        java.offload(session, HERS)
        java.remember(session, HERS)
    (java.sessions / "sessions.json").write_text('{"sessions":{"s1":{"summary":"Ada"}},"version":1}')
    (workspace / "alice/MEMORY.md").write_text("Ada")
    (workspace / "alice/memory").mkdir()
    (workspace / "alice/memory/2026-01-02.md").write_text("Ada")
    if taken_over:
        await seen(workspace)
    removal = await removed(workspace)
    assert removal.java_files >= 10
    assert left(workspace) == []
    assert removal.unreached == ()
    assert not (workspace / "alice").exists()
    assert await seen(workspace) == ["new"]
    assert await seen(workspace, user=None) == ["new"]


async def test_what_a_transcript_alone_would_bring_back_goes_too(workspace: Path) -> None:
    java = Java(workspace, user="alice")
    java.offload("s1", HERS)
    (java.sessions / "s1.log.jsonl").unlink()
    assert (await removed(workspace)).java_files == 1
    assert left(workspace) == []


async def test_what_the_java_harness_left_of_others_stays(workspace: Path) -> None:
    for user, said in (("alice", HERS), ("bob", BOBS), (None, BOBS)):
        java = Java(workspace, user=user)
        java.offload("s1" if user else "nobodys", said)
        java.remember("s1" if user == "alice" else f"of-{user}", said)
    before = {name: raw for name, raw in tree_bytes(workspace).items() if b"Bob" in raw}
    await removed(workspace)
    after = tree_bytes(workspace)
    assert {name: after.get(name) for name in before} == before
    assert left(workspace) == []
    assert "My name is Bob." in await seen(workspace, user="bob")


async def test_a_memory_in_the_place_of_all_that_may_be_anothers_is_named_and_stays(workspace: Path) -> None:
    java = Java(workspace, user="alice")
    java.offload("s1", HERS)
    java.remember("s1", BOBS)
    removal = await removed(workspace)
    assert removal.unreached == (
        "agents/notes/context/s1 in the workspace, which may be of the Java harness and of this user; look at it",
    )
    assert left(workspace, "Bob") != []
    assert left(workspace) == []


async def test_what_else_lies_in_the_folder_of_the_users_name_is_named_and_stays(workspace: Path) -> None:
    Java(workspace, user="alice").offload("s1", HERS)
    (workspace / "alice/report.md").write_text("mine")
    assert (await removed(workspace)).unreached == (
        "alice in the workspace, which may be of the Java harness and of this user; look at it",
    )
    assert tree_bytes(workspace) == {str(workspace / "alice/report.md"): b"mine"}


async def test_a_link_where_the_java_harness_has_a_folder_keeps_nothing_else_back(workspace: Path) -> None:
    java = Java(workspace, user="alice")
    java.offload("s1", HERS)
    Java(workspace.parent / "other").offload("s1", BOBS)
    (workspace / "alice/memory").symlink_to(workspace.parent / "other")
    (java.sessions / "s2.log.jsonl").symlink_to(java.sessions / "s1.log.jsonl")
    assert (await removed(workspace)).java_files == 2
    assert left(workspace) == []
    assert left(workspace.parent / "other", "Bob") != []


@pytest.mark.parametrize("user", ["src", "tenants", "agents", "knowledge", "memory"])
async def test_a_folder_that_only_has_the_users_name_is_left_alone(workspace: Path, user: str) -> None:
    for place in ("agents/notes/main.py", "MEMORY.md", "memory/2026-01-02.md", "agents/main.py"):
        (workspace / user / place).parent.mkdir(parents=True, exist_ok=True)
        (workspace / user / place).write_text("code")
    before = files_in(workspace)
    assert (await removed(workspace, user)).unreached == ()
    assert files_in(workspace) == before


async def test_what_nobody_said_goes_with_the_tenant_of_nobody_and_no_users_session(workspace: Path) -> None:
    nobody, alice = Java(workspace), Java(workspace, user="alice")
    nobody.offload("s1", BOBS)
    nobody.remember("s1", BOBS)
    alice.offload("hers", HERS)
    alice.remember("hers", HERS)
    removal = await removed(workspace, None)
    assert removal.java_files >= 4
    assert left(workspace, "Bob") == []
    assert "My name is Ada." in await seen(workspace, "hers")


async def test_no_link_in_a_users_folder_leads_a_removal_elsewhere(workspace: Path) -> None:
    other = workspace.parent / "other"
    Java(other, user="alice").offload("s1", HERS)
    Java(workspace, user="bob").offload("s1", BOBS)
    (workspace / "alice").symlink_to(other / "alice")
    await removed(workspace)
    assert left(other) != []
