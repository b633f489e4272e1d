"""With a key, a ledger that was written anew together with its anchor shows; without one, everything reads as before."""

import asyncio
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder
from typer.testing import CliRunner

from harness.agent import open_session
from harness.cli.app import app
from harness.errors import ConfigError, SessionDamaged
from harness.sessions import SessionCache
from harness.sessions.lines.anchor import Anchor, encode_anchor, parse_anchor
from harness.sessions.lines.entries import Position, digest
from harness.testing import ScriptedModel

KEY = "0123456789abcdef"


def agent(workspace: Path, key: str | bytes | None = KEY):
    return agent_of(workspace, ScriptedModel(["one", "two"]), **({"anchor_key": key} if key else {}))


async def talk(workspace: Path, key: str | bytes | None = KEY) -> Path:
    async with agent(workspace, key) as made:
        await made.call("hi", ALICE)
    return sessions_folder(workspace)


async def found(workspace: Path, key: str | bytes | None = KEY) -> list[tuple[str, bool]]:
    async with agent(workspace, key) as made:
        return [(item.kind, item.error) for item in (await made.sessions("alice").verify("s1")).findings]


def write_anew(folder: Path, *, mac: bool) -> None:
    """What somebody does who knows the format and can write the files, but has no key."""
    lines: list[bytes] = []
    for raw in (folder / "s1.log.jsonl").read_bytes().split(b"\n")[:-1]:
        entry = json.loads(raw.replace(b'"hi"', b'"no"'))
        if lines:
            entry["prevHash"] = digest(lines[-1])
        lines.append(json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode())
    (folder / "s1.log.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    old = parse_anchor((folder / "s1.head.json").read_bytes())
    assert old is not None
    size = sum(len(line) + 1 for line in lines)
    new = Anchor(
        old.ledger_id, old.session, len(lines), size, digest(lines[-1]), old.leaf, mac=old.mac if mac else None
    )
    (folder / "s1.head.json").write_bytes(encode_anchor(new))
    (folder / "s1.jsonl").unlink()


@pytest.mark.parametrize("mac", [True, False], ids=["the old mac", "no mac"])
async def test_a_ledger_written_anew_with_its_anchor_shows_to_who_has_the_key(workspace: Path, mac: bool) -> None:
    folder = await talk(workspace)
    assert await found(workspace) == []
    write_anew(folder, mac=mac)
    assert await found(workspace) == [("edited", True)]
    assert await found(workspace, None) == []


async def test_who_has_no_key_reads_goes_on_and_verifies_as_before(workspace: Path) -> None:
    folder = await talk(workspace)
    assert b'"mac":"' in (folder / "s1.head.json").read_bytes()
    assert await found(workspace, None) == []
    await talk(workspace, None)
    assert await found(workspace, None) == []


@pytest.mark.parametrize("before", [None, "another key, as long"], ids=["no key", "another key"])
async def test_a_session_from_before_the_key_is_reported_until_its_next_call_which_notes_it(
    workspace: Path, before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(workspace, before)
    assert await found(workspace) == [("edited", True)]
    monkeypatch.setattr(open_session, "_cache", SessionCache())
    await talk(workspace)
    assert await found(workspace) == [("unanchored", False)]
    await talk(workspace)
    assert await found(workspace) == [("unanchored", False)]


async def test_copies_and_sessions_taken_over_are_signed(workspace: Path, tmp_path: Path) -> None:
    await talk(workspace)
    async with agent(workspace) as made:
        sessions = made.sessions("alice")
        await sessions.fork("s1", to="copy")
        await sessions.export("s1", tmp_path / "s1.zip")
        await sessions.import_session(tmp_path / "s1.zip", session_id="taken", take_over=True)
        await made.sessions("bob").import_session(tmp_path / "s1.zip", take_over=True)
        assert (await sessions.repair("s1")).done[-1].endswith("made anew")
        for session in ("s1", "copy", "taken"):
            assert (await sessions.verify(session)).findings == ()
        assert (await made.sessions("bob").verify("s1")).findings == ()


def test_the_command_line_takes_the_key_from_the_environment(workspace: Path) -> None:
    folder = asyncio.run(talk(workspace))
    write_anew(folder, mac=True)
    asked = ["sessions", "verify", "s1", "--workspace", str(workspace), "--agent", "notes", "--user", "alice"]
    runner = CliRunner()
    assert runner.invoke(app, asked, env={"HARNESS_ANCHOR_KEY": ""}).exit_code == 0
    assert runner.invoke(app, asked, env={"HARNESS_ANCHOR_KEY": KEY}).exit_code == 1
    assert runner.invoke(app, asked, env={"HARNESS_ANCHOR_KEY": "short"}).exit_code == 2


@pytest.mark.parametrize("key", ["", "fifteen bytes..", b"short", 16, None])
def test_a_key_that_could_be_guessed_is_refused(workspace: Path, key: object) -> None:
    with pytest.raises(ConfigError, match="anchor_key is text or bytes, at least 16"):
        agent_of(workspace, ScriptedModel(), anchor_key=(key,))


def test_the_key_stands_in_no_file_and_in_no_text_of_the_agent(workspace: Path) -> None:
    asyncio.run(talk(workspace))
    assert all(KEY.encode() not in path.read_bytes() for path in workspace.rglob("*") if path.is_file())
    assert KEY not in repr(agent(workspace)._config)


def test_an_anchor_with_everything_in_it_still_fits_its_block() -> None:
    uuid = "019caa11-0000-7000-8000-000000000000"
    for session in ("s" * 64, "s" * 4000):
        full = Anchor(uuid, session, 10**9, 10**12, "a" * 64, uuid, Position(10**9, 10**12), (uuid,) * 9)
        block = encode_anchor(full, KEY.encode())
        assert len(block) == 512
        read = parse_anchor(block)
        assert read is not None
        assert read.signed_with(KEY.encode())
        assert not read.signed_with(b"another key, as long")


async def test_a_workspace_copied_without_its_key_is_a_workspace(workspace: Path, tmp_path: Path) -> None:
    await talk(workspace)
    shutil.copytree(workspace, tmp_path / "copy")
    assert await found(tmp_path / "copy", None) == []


def add_a_turn(folder: Path) -> None:
    """Lines behind the signed end, linked as they should be, by somebody without the key."""
    path = folder / "s1.log.jsonl"
    for role, via in (("user", "user"), ("assistant", "model")):
        *_, last = path.read_bytes().split(b"\n")[:-1]
        entry = json.loads(last)
        line = {
            "type": "message",
            "id": f"forged-{role}",
            "parentId": entry["id"],
            "seq": entry["seq"] + 1,
            "prevHash": digest(last),
            "timestamp": entry["timestamp"],
            "message": {"id": f"m-{role}", "role": role, "content": [{"type": "text", "text": "forged"}]},
            "via": via,
        }
        path.write_bytes(path.read_bytes() + json.dumps(line, separators=(",", ":")).encode() + b"\n")


async def test_lines_behind_the_signed_end_are_taken_in_with_a_warning_and_named_from_then_on(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_a_turn(await talk(workspace))
    monkeypatch.setattr(open_session, "_cache", SessionCache())
    async with agent(workspace) as made:
        call = made.call("go on", ALICE)
        await call
        assert [text for text in call.warnings if "behind the signed end" in text]
        later = made.call("and on", ALICE)
        await later
        assert later.warnings == []
        findings = (await made.sessions("alice").verify("s1")).findings
    assert [(item.kind, item.error) for item in findings] == [("unanchored", False)]
    assert "behind the signed end" in findings[0].text


async def test_without_a_key_lines_behind_the_end_are_the_rest_of_a_killed_call_and_no_warning(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_a_turn(await talk(workspace, None))
    monkeypatch.setattr(open_session, "_cache", SessionCache())
    async with agent(workspace, None) as made:
        call = made.call("go on", ALICE)
        await call
    assert call.warnings == []


@pytest.mark.parametrize("mac", ["kept", "none"])
async def test_an_anchor_that_the_key_did_not_sign_never_says_where_the_view_begins(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, mac: str
) -> None:
    folder = await talk(workspace)
    monkeypatch.setattr(open_session, "_cache", SessionCache())
    async with agent(workspace) as made:
        await made.call("more", ALICE)
    path, raw = folder / "s1.head.json", (folder / "s1.log.jsonl").read_bytes()
    anchor = parse_anchor(path.read_bytes())
    assert anchor is not None
    place = raw.rindex(b"\n", 0, raw.index(b'"text":"more')) + 1
    later = Position(raw.count(b"\n", 0, place) + 1, place)
    path.write_bytes(encode_anchor(replace(anchor, boundary=later, mac=anchor.mac if mac == "kept" else None)))
    monkeypatch.setattr(open_session, "_cache", SessionCache())
    async with agent(workspace) as made:
        assert [item.error for item in (await made.sessions("alice").verify("s1")).findings] == [True, True]
        call = made.call("go on", ALICE)
        await call
        assert any("not signed with the key" in text for text in call.warnings)
        tree = await made.sessions("alice").tree("s1")
        assert [message["content"][0]["text"] for message in tree.messages()[:2]] == ["hi", "one"]


@pytest.mark.parametrize("before", [None, "another key, as long"], ids=["no key", "another key"])
async def test_a_bundle_that_the_key_did_not_sign_is_refused_or_taken_over_with_a_note(
    workspace: Path, tmp_path: Path, before: str | None
) -> None:
    await talk(workspace, before)
    async with agent(workspace, before) as made:
        await made.sessions("alice").export("s1", tmp_path / "s1.zip")
    async with agent(tmp_path / "elsewhere") as made:
        sessions = made.sessions("alice")
        with pytest.raises(SessionDamaged, match="was not signed with the anchor key"):
            await sessions.import_session(tmp_path / "s1.zip")
        assert await sessions.list() == []
        await sessions.import_session(tmp_path / "s1.zip", take_over=True)
        findings = (await sessions.verify("s1")).findings
    assert [(item.kind, item.line, item.error) for item in findings] == [("unanchored", 1, False)]
    assert "did not vouch" in findings[0].text


async def test_a_bundle_with_lines_behind_the_signed_end_is_refused(workspace: Path, tmp_path: Path) -> None:
    add_a_turn(await talk(workspace))
    async with agent(workspace) as made:
        await made.sessions("alice").export("s1", tmp_path / "s1.zip")
    async with agent(tmp_path / "elsewhere") as made:
        with pytest.raises(SessionDamaged, match="or not to its end"):
            await made.sessions("alice").import_session(tmp_path / "s1.zip")
