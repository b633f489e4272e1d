"""A bundle from somebody who means harm cannot spoil what other sessions store, nor make a ledger that is none."""

import hashlib
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder, shown

from harness import RuntimeContext
from harness.errors import SessionDamaged
from harness.sessions import verify_bytes, verify_chain
from harness.testing import ScriptedModel

LONG = "the contract " * 25_000
FORGED = b'[{"type":"text","text":"something else"}]'


async def said(workspace: Path, prompt: str, session: str = "s1") -> None:
    async with agent_of(workspace, ScriptedModel(["ok"])) as agent:
        await agent.call(prompt, RuntimeContext(session_id=session, user_id="alice"))


async def exported(workspace: Path, prompt: str) -> Path:
    await said(workspace, prompt)
    async with agent_of(workspace, ScriptedModel()) as agent:
        await agent.sessions("alice").export("s1", workspace / "bundle.zip")
    return workspace / "bundle.zip"


def content_of(workspace: Path) -> Path:
    return next(iter(sessions_folder(workspace).glob("files/??/*")))


def rewritten(bundle: Path, changes: dict[str, bytes]) -> Path:
    """A copy with other members, and a manifest that fits them."""
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | changes
    manifest = json.loads(members.pop("manifest.json"))
    manifest["files"] = [
        {"path": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members.items()
    ]
    with zipfile.ZipFile(bundle.with_name("changed.zip"), "w") as archive:
        for name, data in {**members, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, data)
    return bundle.with_name("changed.zip")


async def refused(workspace: Path, bundle: Path, match: str) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(SessionDamaged, match=match):
            await agent.sessions("alice").import_session(bundle)
        assert await agent.sessions("alice").list() == []
    assert list(sessions_folder(workspace).rglob("files/??/*")) == []


async def test_a_content_that_is_not_the_one_of_its_name_is_refused(tmp_path):
    await said(tmp_path / "victim", LONG)
    name = content_of(tmp_path / "victim").name
    bundle = await exported(tmp_path / "source", "hello")
    forged = rewritten(bundle, {f"files/{name[:2]}/{name}": FORGED})
    await refused(tmp_path / "w", forged, "other bytes than its name says")


async def test_a_content_that_the_ledger_does_not_name_is_refused(tmp_path):
    name = hashlib.sha256(FORGED).hexdigest()
    bundle = await exported(tmp_path / "source", "hello")
    await refused(tmp_path / "w", rewritten(bundle, {f"files/{name[:2]}/{name}": FORGED}), "names no content")


async def test_an_import_mends_a_content_that_has_rotted_where_it_goes(tmp_path):
    bundle = await exported(tmp_path / "source", LONG)
    await said(tmp_path / "w", LONG, "other")
    content_of(tmp_path / "w").write_bytes(FORGED)
    async with agent_of(tmp_path / "w", ScriptedModel()) as agent:
        await agent.sessions("alice").import_session(bundle)
        assert (await agent.sessions("alice").verify("s1")).findings == ()
        assert (await agent.sessions("alice").verify("other")).findings == ()


@pytest.mark.parametrize("rot", [b"", FORGED, b"x" * 325_027])
async def test_a_rotten_content_is_mended_when_it_is_said_again(tmp_path, new_process, rot):
    await said(tmp_path, LONG)
    content_of(tmp_path).write_bytes(rot)
    await said(tmp_path, LONG, "again")
    new_process()
    model = ScriptedModel(["ok"])
    async with agent_of(tmp_path, model) as agent:
        assert (await agent.sessions("alice").verify("again")).findings == ()
        await agent.call("next", ALICE)
    assert shown(model.requests[0])[0] == ("user", LONG)


def relinked(lines: list[dict[str, Any]]) -> bytes:
    """The lines as a ledger in which every link is right."""
    written: list[bytes] = []
    for number, line in enumerate(lines, 1):
        link = {"prevHash": hashlib.sha256(written[-1]).hexdigest()} if written else {}
        written.append(json.dumps({**line, "seq": number, **link}, separators=(",", ":")).encode())
    return b"\n".join(written) + b"\n"


def _same_id(lines: list[dict[str, Any]]) -> None:
    lines[3]["id"] = lines[1]["id"]


def _parent_behind(lines: list[dict[str, Any]]) -> None:
    lines[2]["parentId"] = lines[4]["id"]


def _parent_itself(lines: list[dict[str, Any]]) -> None:
    lines[2]["parentId"] = lines[2]["id"]


WRONG = {"doubled": _same_id, "reordered": _parent_behind, "reordered ": _parent_itself}


@pytest.mark.parametrize("kind", WRONG)
async def test_lines_that_make_no_tree_are_named_and_refused(tmp_path, kind):
    bundle = await exported(tmp_path / "source", "hello")
    with zipfile.ZipFile(bundle) as archive:
        lines = [json.loads(line) for line in archive.read("session.log.jsonl").splitlines()]
    assert verify_chain(relinked(lines)) == []
    change: Callable[[list[dict[str, Any]]], None] = WRONG[kind]
    change(lines)
    ledger = relinked(lines)
    found = [(finding.kind, finding.line, finding.error) for finding in verify_chain(ledger)]
    assert found == [(kind.strip(), 4 if kind == "doubled" else 3, True)]
    await refused(tmp_path / "w", rewritten(bundle, {"session.log.jsonl": ledger}), kind.strip())


def _header_again(lines: list[dict[str, Any]]) -> None:
    lines.insert(3, {**lines[0], "id": lines[2]["id"] + "0", "ledgerId": lines[2]["id"], "parentId": lines[2]["id"]})


def _erased(lines: list[dict[str, Any]]) -> None:
    kept = {key: lines[3][key] for key in ("id", "parentId", "timestamp")}
    lines[3] = {"type": "redacted", **kept, "lineHash": "0" * 64, "reason": "asked for"}


@pytest.mark.parametrize(
    ("change", "words"), [(_header_again, "a second header"), (_erased, "says that a line was erased here")]
)
async def test_lines_that_no_writer_leaves_there_are_named_refused_and_not_copied(tmp_path, change, words):
    bundle = await exported(tmp_path / "source", "hello")
    with zipfile.ZipFile(bundle) as archive:
        lines = [json.loads(line) for line in archive.read("session.log.jsonl").splitlines()]
    change(lines)
    ledger = relinked(lines)
    assert verify_chain(ledger) == []
    found = [(each.kind, each.line, each.error) for each in verify_bytes([ledger], None) if words in each.text]
    assert found == [("foreign", 4, True)]
    await refused(tmp_path / "w", rewritten(bundle, {"session.log.jsonl": ledger}), words)
    (sessions_folder(tmp_path / "source") / "s1.log.jsonl").write_bytes(ledger)
    async with agent_of(tmp_path / "source", ScriptedModel()) as agent:
        with pytest.raises(SessionDamaged, match=words):
            await agent.sessions("alice").fork("s1")


FORGED_LINE = b'{"type":"message","id":"m","seq":2,"message":{"id":"m","role":"user","content":[]},"via":"user"}\n'


@pytest.mark.parametrize(
    "forge",
    [
        lambda context, ledger: b"\xff\n" * 1000,
        lambda context, ledger: context + FORGED_LINE,
        lambda context, ledger: context.replace(b"hello", b"WRONG"),
        lambda context, ledger: context + b"\0" * (len(ledger) + 3_000_000),
    ],
)
async def test_a_copy_for_the_model_that_says_something_else_than_its_ledger_is_not_taken_in(tmp_path, forge):
    bundle = await exported(tmp_path / "source", "hello")
    with zipfile.ZipFile(bundle) as archive:
        context, ledger = archive.read("session.jsonl"), archive.read("session.log.jsonl")
    forged = rewritten(bundle, {"session.jsonl": forge(context, ledger)})
    model = ScriptedModel(["well"])
    async with agent_of(tmp_path / "w", model) as agent:
        await agent.sessions("alice").import_session(forged)
        assert not list(sessions_folder(tmp_path / "w").glob("s1.jsonl"))
        await agent.call("next", ALICE)
        report = await agent.sessions("alice").verify("s1")
    assert (report.ok, report.findings) == (True, ())
    assert [text for _, text in shown(model.requests[0])] == ["hello", "ok", "next"]
    assert (sessions_folder(tmp_path / "w") / "s1.jsonl").read_bytes().count(b"hello") == 1
