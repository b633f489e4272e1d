"""Workspaces of the Java harness are taken over by a call, each message once, and are never changed."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import (
    ALICE,
    BOB,
    agent_of,
    assert_pair_complete,
    inexact,
    ledger,
    logged,
    of_kind,
    sessions_folder,
    shown,
)
from javakit import Java, lines, message, rendered, summary, text, tool_call, tool_result, tree_bytes

from harness import RuntimeContext
from harness.agent import open_session
from harness.models import ModelRequest
from harness.testing import ScriptedModel

NOBODY = RuntimeContext(session_id="s1")
ONE = [text(1, "USER", "My name is Ada.", "user"), text(2, "ASSISTANT", "Hello Ada.", "bot")]
TWO = [
    text(3, "USER", "Read A.md", "user"),
    tool_call(4, "call_1", "read_file", {"path": "A.md"}, "let me"),
    tool_result(5, "call_1", "read_file", "data"),
    text(6, "ASSISTANT", "It says: data", "bot"),
]
THREE = [text(7, "USER", "Bye", "user"), text(8, "ASSISTANT", "Bye Ada", "bot")]
SEEN = [
    ("user", "My name is Ada."), ("assistant", "Hello Ada."), ("user", "Read A.md"),
    ("assistant", 'let me read_file({"path": "A.md"})'), ("tool", "data"), ("assistant", "It says: data"),
]  # fmt: skip
# Reasoning that nobody has signed is kept and not sent.
KEPT = [*SEEN[:3], ("assistant", f"hm {SEEN[3][1]}"), *SEEN[4:]]


async def call(workspace: Path, ctx: RuntimeContext = ALICE, words: str = "Go on.") -> ModelRequest:
    open_session._cache._open.clear()
    model = ScriptedModel(["Yes."])
    async with agent_of(workspace, model) as agent:
        await agent.call(words, ctx)
        assert (await agent.sessions(ctx).verify(ctx.session_id)).ok
        assert await inexact(agent, ctx) == []
    assert_pair_complete(model.requests[0])
    return model.requests[0]


def spoken(workspace: Path, user: str = "alice", session: str = "s1") -> list[tuple[str, str]]:
    return [(role, words) for _, role, words in logged(workspace, session, user)][:-2]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def java(workspace: Path) -> Java:
    """Two calls of nobody's in the session s1."""
    made = Java(workspace)
    made.offload("s1", ONE)
    made.offload("s1", [*ONE, *TWO])
    made.remember("s1", [*ONE, *TWO])
    return made


async def test_a_call_goes_on_where_the_java_session_ended(workspace: Path, java: Java) -> None:
    before = tree_bytes(workspace)
    request = await call(workspace, NOBODY)
    assert shown(request) == [*SEEN, ("user", "Go on.")]
    assert spoken(workspace, "_") == KEPT
    assert tree_bytes(workspace) == before
    source = ledger(workspace, user="_")[0]["importedFrom"]
    assert (source["type"], sorted(item["path"] for item in source["files"])) == (
        "java",
        ["agents/notes/context/s1/memory_messages.jsonl", "agents/notes/sessions/s1.jsonl", "agents/notes/sessions/s1.log.jsonl"],
    )  # fmt: skip


async def test_it_is_taken_over_once(workspace: Path, java: Java) -> None:
    await call(workspace, NOBODY)
    java.offload("s1", [*ONE, *TWO, *THREE])
    java.remember("s1", [*ONE, *TWO, *THREE])
    request = await call(workspace, NOBODY, "And on.")
    assert [words for _, words in shown(request)][-3:] == ["Go on.", "Yes.", "And on."]
    assert len(shown(request)) == len(SEEN) + 3


async def test_what_was_taken_over_and_deleted_does_not_come_back(workspace: Path, java: Java) -> None:
    await call(workspace, NOBODY)
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert await agent.sessions(None).delete("s1") is True
    assert shown(await call(workspace, NOBODY)) == [("user", "Go on.")]


async def test_transcripts_that_repeat_tell_each_message_once(workspace: Path) -> None:
    java = Java(workspace)
    said: list[dict[str, Any]] = []
    for n in range(20):
        said += [text(2 * n, "USER", "go on", "user"), text(2 * n + 1, "ASSISTANT", "going" if n % 3 else f"at {n}")]
        java.offload("s1", said)
    request = await call(workspace, NOBODY)
    assert shown(request)[:-1] == [(m["role"].lower(), rendered(m)) for m in said]


async def test_a_transcript_alone_brings_calls_and_results_back_as_far_as_it_has_them(workspace: Path) -> None:
    Java(workspace).offload("s1", [*ONE, *TWO])
    request = await call(workspace, NOBODY)
    assert shown(request)[:-1] == SEEN
    assert request.messages[3].tool_uses[0].id == "call_1"


async def test_a_memory_alone_is_enough(workspace: Path) -> None:
    Java(workspace).remember("s1", [*ONE, *TWO])
    assert shown(await call(workspace, NOBODY))[:-1] == SEEN


async def test_a_compacted_memory_is_seen_as_it_was_and_nothing_is_lost(workspace: Path) -> None:
    java = Java(workspace)
    whole = [*ONE, *TWO]
    java.offload("s1", ONE)
    java.offload("s1", whole)
    compacted = [summary(90, "Ada said hello."), *TWO]
    java.offload("s1", [*compacted, *THREE])
    java.remember("s1", [*compacted, *THREE])
    request = await call(workspace, NOBODY)
    assert shown(request) == [
        ("user", "<context_summary>\nAda said hello.\n</context_summary>"),
        *SEEN[2:], ("user", "Bye"), ("assistant", "Bye Ada"), ("user", "Go on."),
    ]  # fmt: skip
    assert spoken(workspace, "_") == [*KEPT, ("user", "Bye"), ("assistant", "Bye Ada")]
    assert len(of_kind(ledger(workspace, user="_"), "compaction")) == 1


async def test_a_memory_that_begins_within_a_turn_is_shown_from_the_turns_start(workspace: Path) -> None:
    java = Java(workspace)
    java.offload("s1", [*ONE, *TWO])
    java.remember("s1", [summary(90, "Ada wants A.md read."), TWO[3]])
    request = await call(workspace, NOBODY)
    assert [words for _, words in shown(request)][:2] == [
        "<context_summary>\nAda wants A.md read.\n</context_summary>", "Read A.md",
    ]  # fmt: skip


async def test_a_summary_without_what_it_sums_up_is_still_seen(workspace: Path) -> None:
    Java(workspace).remember("s1", [summary(90, "Ada said hello."), *TWO])
    request = await call(workspace, NOBODY)
    assert shown(request)[0] == ("user", "<context_summary>\nAda said hello.\n</context_summary>")
    assert len(shown(request)) == 1 + len(SEEN[2:]) + 1


async def test_old_entry_types_are_understood(workspace: Path) -> None:
    java = Java(workspace)
    java.offload("s1", [*ONE, *TWO[:1]])
    java.add_line("s1", b'{"type":"compaction","id":"c","parentId":"e-s1-3","timestamp":1767323047.100000000,"firstKeptEntryId":"e-s1-3","summaryEntryId":"s"}\n')  # fmt: skip
    java.add_line("s1", b'{"type":"summary","id":"s","timestamp":"2026-01-02T03:04:05Z","summary":"Ada said hello.","format":"structured"}\n')  # fmt: skip
    java.add_line("s1", b'{"type":"weather","id":"w","sun":true}\n')
    request = await call(workspace, NOBODY)
    assert [words for _, words in shown(request)][:2] == [
        "<context_summary>\nAda said hello.\n</context_summary>", "Read A.md",
    ]  # fmt: skip
    assert [entry["data"] for entry in of_kind(ledger(workspace, user="_"), "custom")] == [
        {"type": "weather", "id": "w", "sun": True}
    ]


@pytest.mark.parametrize("end", [b"\r\n", b"\n\n \n", b"\n"])
async def test_line_ends_blank_lines_marks_and_torn_lines_do_not_matter(workspace: Path, end: bytes) -> None:
    java = Java(workspace)
    java.remember("s1", ONE)
    raw = b"\xef\xbb\xbf" + end.join(lines(ONE).split(b"\n")) + b'{"id":"m-3","role":"US'
    (java.context / "s1/memory_messages.jsonl").write_bytes(raw)
    open_session._cache._open.clear()
    model = ScriptedModel(["Yes."])
    async with agent_of(workspace, model) as agent:
        await (asked := agent.call("Go on.", NOBODY))
    assert shown(model.requests[0])[:-1] == SEEN[:2]
    assert [warning for warning in asked.warnings if "1 lines could not be read" in warning]


async def test_a_session_id_that_was_encoded_is_found(workspace: Path) -> None:
    ctx = RuntimeContext(session_id="alice/1")
    Java(workspace).remember("YWxpY2UvMQ", ONE)
    assert shown(await call(workspace, ctx))[:-1] == SEEN[:2]


async def test_a_user_has_transcripts_apart_and_memory_with_the_rest(workspace: Path) -> None:
    java = Java(workspace, user="alice")
    java.offload("s1", [*ONE, *TWO])
    java.remember("s1", [*ONE, *TWO])
    assert shown(await call(workspace, ALICE))[:-1] == SEEN
    assert shown(await call(workspace, BOB)) == [("user", "Go on.")]


async def test_a_memory_that_another_user_overwrote_is_not_shown(workspace: Path) -> None:
    """Both users had a session s1; the one memory there is holds what bob said last."""
    Java(workspace, user="alice").offload("s1", ONE)
    bob = Java(workspace, user="bob")
    secret = [text(30, "USER", "I am Bob, code red-owl.", "user"), text(31, "ASSISTANT", "Hello Bob.", "bot")]
    bob.offload("s1", secret)
    bob.remember("s1", secret)
    alice = await call(workspace, ALICE)
    assert shown(alice)[:-1] == SEEN[:2]
    assert "red-owl" not in str(ledger(workspace))
    assert [words for _, words in shown(await call(workspace, BOB))][:2] == ["I am Bob, code red-owl.", "Hello Bob."]


async def test_what_is_some_users_is_not_given_to_nobody(workspace: Path) -> None:
    java = Java(workspace, user="alice")
    java.offload("s1", ONE)
    java.remember("s1", ONE)
    assert shown(await call(workspace, NOBODY)) == [("user", "Go on.")]


@pytest.mark.parametrize("user", ["..", ".", "agents", "tenants", "TENANTS", "a/../alice", "ALICE", "/", ".hidden"])
async def test_no_user_id_leads_to_another_place(workspace: Path, user: str) -> None:
    for place in (workspace, workspace / "agents", workspace / "tenants", workspace.parent, workspace / ".hidden"):
        java = Java(workspace, user=None)
        java.context = place / "agents" / "notes" / "context"
        java.sessions = place / "agents" / "notes" / "sessions"
        java.remember("s1", ONE)
        java.offload("s1", ONE)
    Java(workspace, user="alice").offload("s1", ONE)
    assert shown(await call(workspace, RuntimeContext(session_id="s1", user_id=user))) == [("user", "Go on.")]


@pytest.mark.parametrize("session", ["../s1", "..", "x/../s1", "S1", "s1.log", "s1/"])
async def test_no_session_id_leads_to_another_one(workspace: Path, java: Java, session: str) -> None:
    assert shown(await call(workspace, RuntimeContext(session_id=session))) == [("user", "Go on.")]


async def test_links_are_not_followed(workspace: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "s1.log.jsonl").write_bytes(lines([{"type": "message", "id": "x", "role": "USER", "content": "stolen"}]))
    sessions = workspace / "alice" / "agents" / "notes" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "s1.log.jsonl").symlink_to(secret / "s1.log.jsonl")
    (workspace / "bob" / "agents" / "notes").mkdir(parents=True)
    (workspace / "bob" / "agents" / "notes" / "sessions").symlink_to(secret)
    (workspace / "carol").symlink_to(workspace / "alice")
    for user in ("alice", "bob", "carol"):
        ctx = RuntimeContext(session_id="s1", user_id=user)
        assert shown(await call(workspace, ctx)) == [("user", "Go on.")]


async def test_pictures_usage_and_unknown_blocks_come_along(workspace: Path) -> None:
    pixels = base64.b64encode(b"pixels" * 100).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixels}, "minPixels": 3}
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/y.png"}}
    asked = message(
        1, "USER", [{"type": "text", "text": "What is it?"}, picture, linked, {"type": "smell", "of": "tea"}]
    )
    answer = {**text(2, "ASSISTANT", "A picture."), "metadata": {"_chat_usage": {"inputTokens": 7, "outputTokens": 3}}}
    Java(workspace).remember("s1", [asked, answer])
    request = await call(workspace, NOBODY)
    media = request.messages[0].blocks[1].media
    assert (media.media_type, media.bytes) == ("image/png", 600)
    assert await request.load_media(media.sha256) == b"pixels" * 100
    assert [block.type for block in request.messages[0].blocks] == ["text", "image", "image", "smell"]
    stored = of_kind(ledger(workspace, user="_"), "message")[1]["message"]
    assert stored["usage"] == {"input": 7, "output": 3}
    assert pixels not in str(ledger(workspace, user="_"))


async def test_states_come_along(workspace: Path, java: Java) -> None:
    java.state("s1", "toolkit_activeGroups", {"activeGroups": ["web", "fs"]})
    java.state("s1", "planNotebook_state", {"currentPlan": {"name": "P", "subtasks": []}})
    java.state("s1", "_sandbox_state", {"json": "{}", "deleted": False})
    await call(workspace, NOBODY)
    states = {entry["module"]: entry["value"] for entry in of_kind(ledger(workspace, user="_"), "state")}
    assert states["planNotebook_state"] == {"currentPlan": {"name": "P", "subtasks": []}}
    assert "_sandbox_state" not in states
    assert json.dumps(states["active_tool_groups"]) == '{"on": ["fs", "web"], "off": []}'


async def test_long_term_memory_comes_along_unless_there_is_one(workspace: Path) -> None:
    for user in ("alice", "bob"):
        Java(workspace, user=user).offload("s1", ONE)
        (workspace / user / "memory").mkdir()
        (workspace / user / "MEMORY.md").write_text(f"{user} likes tea")
        (workspace / user / "memory" / "2026-01-02.md").write_text(f"{user} was here")
        (workspace / user / "memory" / ".consolidation_state").write_text("2026-01-02T00:00:00Z")
    (workspace / "MEMORY.md").write_text("of nobody")
    mine = workspace / "tenants" / "bob" / "MEMORY.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("ours")
    for ctx in (ALICE, BOB, ALICE):
        await call(workspace, ctx)
    tenants = workspace / "tenants"
    assert memory_of(tenants / "alice") == {"MEMORY.md": "alice likes tea", "memory/2026-01-02.md": "alice was here"}
    assert memory_of(tenants / "bob") == {"MEMORY.md": "ours"}


def memory_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.md")}


async def test_all_sessions_of_a_user_can_be_taken_over_at_once(workspace: Path) -> None:
    java = Java(workspace, user="alice")
    for session in ("s1", "s2", "with blank"):
        java.offload(session, ONE)
    Java(workspace, user="bob").offload("s3", ONE)
    async with agent_of(workspace, ScriptedModel()) as agent:
        sessions = agent.sessions("alice")
        assert await sessions.import_java() == ["s1", "s2", "with blank"]
        assert await sessions.import_java() == []
        assert [(info.id, info.title) for info in await sessions.list()] == [
            ("s1", "My name is Ada."), ("s2", "My name is Ada."), ("with blank", "My name is Ada."),
        ]  # fmt: skip
        assert await agent.sessions("bob").list() == []


async def test_a_workspace_without_java_is_asked_nothing_twice(workspace: Path) -> None:
    await call(workspace, ALICE)
    assert names(workspace) == ["tenants"]
    assert "importedFrom" not in ledger(workspace)[0]
    assert sessions_folder(workspace).is_dir()


async def test_a_session_of_ours_is_never_mixed_with_a_java_one(workspace: Path) -> None:
    await call(workspace, NOBODY, "Ours.")
    java = Java(workspace)
    java.offload("s1", ONE)
    assert [words for _, words in shown(await call(workspace, NOBODY))] == ["Ours.", "Yes.", "Go on."]
