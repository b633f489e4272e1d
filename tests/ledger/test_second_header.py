"""Lines of another ledger in a ledger: what stands behind a second header is nobody's words in this conversation."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "agent"))
from agentkit import ALICE, agent_of, json_lines, of_kind, sessions_folder, shown

from harness import RuntimeContext
from harness.errors import SessionDamaged
from harness.testing import ScriptedModel

SECRET = "CANARY-diagnosis"
BOB = RuntimeContext(session_id="s1", user_id="bob")
KEY = "k" * 32


async def _two_users(workspace: Path, **options: Any) -> None:
    model = ScriptedModel(["Yes."] * 4)
    async with agent_of(workspace, model, **options) as agent:
        for number in range(2):
            await agent.call(f"{SECRET} {number}", BOB)
        await agent.sessions("bob").rename("s1", f"{SECRET} title")
        for text in ("hello", "more"):
            await agent.call(text, ALICE)


def _ledger(workspace: Path, user: str = "alice") -> Path:
    return sessions_folder(workspace, user) / "s1.log.jsonl"


def _bobs_lines(workspace: Path) -> bytes:
    return _ledger(workspace, "bob").read_bytes()


def _own_lines_again(workspace: Path) -> bytes:
    return _ledger(workspace).read_bytes()


def _without_anchor(workspace: Path) -> bytes:
    (sessions_folder(workspace) / "s1.head.json").unlink()
    return _bobs_lines(workspace)


def _with_a_damaged_line(workspace: Path) -> bytes:
    first, second, third, rest = _bobs_lines(workspace).split(b"\n", 3)
    return b"\n".join([first, second, third[:-9], rest])


def _reformatted(workspace: Path) -> bytes:
    return _bobs_lines(workspace).replace(b'{"type":"header"', b'{ "type": "header"', 1)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("behind", [_bobs_lines, _own_lines_again, _without_anchor, _with_a_damaged_line, _reformatted])
async def test_lines_behind_a_second_header_are_not_this_conversation(
    tmp_path: Path, new_process: Any, behind: Any, key: str | None
) -> None:
    options = {"anchor_key": key} if key else {}
    await _two_users(tmp_path, **options)
    new_process()
    added = behind(tmp_path)
    with _ledger(tmp_path).open("ab") as file:
        file.write(added)
    own = [("user", "hello"), ("assistant", "Yes."), ("user", "more"), ("assistant", "Yes.")]
    model = ScriptedModel(["Well.", "And."])
    async with agent_of(tmp_path, model, **options) as agent:
        sessions = agent.sessions("alice")
        assert not (await sessions.verify("s1")).ok
        assert await _told(sessions) == [text for _, text in own]
        call = agent.call("next", ALICE)
        await call
        assert shown(model.requests[0]) == [*own, ("user", "next")]
        assert "verify the session" in " ".join(call.warnings)
        new_process()
        await agent.call("last", ALICE)
        own += [("user", "next"), ("assistant", "Well."), ("user", "last")]
        assert shown(model.requests[1]) == own
        assert await _told(sessions) == [*(text for _, text in own), "And."]
        assert not (await sessions.verify("s1")).ok
        await _nothing_else_is_taken_in(sessions)


async def _told(sessions: Any) -> list[str]:
    history = [message.text for message in await sessions.history("s1", None)]
    assert [message.text for message in await sessions.history("s1", 2)] == history[-2:]
    return history


async def _nothing_else_is_taken_in(sessions: Any) -> None:
    await sessions._catalog().renew("s1")
    [listed] = await sessions.list()
    assert (listed.title, listed.turns) == ("hello", 4)
    assert await sessions.search("CANARY") == []
    assert len(await sessions.search("hello")) == 1
    assert len((await sessions.usage("s1")).rows) == 4
    assert [(way.title, way.turns, way.active) for way in await sessions.branches("s1")] == [("hello", 4, True)]


async def test_one_can_go_back_and_on_behind_them(tmp_path: Path, new_process: Any) -> None:
    await _two_users(tmp_path)
    new_process()
    with _ledger(tmp_path).open("ab") as file:
        file.write(_bobs_lines(tmp_path))
    turns = [e["id"] for e in of_kind(json_lines(_ledger(tmp_path)), "message") if e["message"]["role"] == "assistant"]
    model = ScriptedModel(["Well.", "And."])
    async with agent_of(tmp_path, model) as agent:
        await agent.call("next", ALICE)
        tree = await agent.sessions("alice").tree("s1")
        async with tree.writing():
            tree.add("label", {"target": turns[0], "name": "here"})
        new_process()
        await agent.call("last", ALICE)
        assert (await agent.sessions("alice").labels("s1")) == {"here": turns[0]}
    assert [text for _, text in shown(model.requests[1])] == ["hello", "Yes.", "more", "Yes.", "next", "Well.", "last"]


@pytest.mark.parametrize("front", [b"\n", b"half a li\n", b"one\ntwo\n"])
async def test_anothers_ledger_behind_what_nobody_can_read_is_refused(
    tmp_path: Path, new_process: Any, front: bytes
) -> None:
    await _two_users(tmp_path)
    new_process()
    _ledger(tmp_path).write_bytes(front + _bobs_lines(tmp_path))
    model = ScriptedModel(["Well."])
    async with agent_of(tmp_path, model) as agent:
        with pytest.raises(SessionDamaged):
            await agent.call("next", ALICE)
        with pytest.raises(SessionDamaged):
            await agent.sessions("alice").history("s1")
    assert not model.requests


@pytest.mark.parametrize("front", [b"\n", b"half a li\n"])
async def test_ones_own_ledger_behind_what_nobody_can_read_is_read(
    tmp_path: Path, new_process: Any, front: bytes
) -> None:
    await _two_users(tmp_path)
    new_process()
    _ledger(tmp_path).write_bytes(front + _ledger(tmp_path).read_bytes())
    model = ScriptedModel(["Well."])
    async with agent_of(tmp_path, model) as agent:
        await agent.call("next", ALICE)
    own = [("user", "hello"), ("assistant", "Yes."), ("user", "more"), ("assistant", "Yes.")]
    assert shown(model.requests[0]) == [*own, ("user", "next")]
