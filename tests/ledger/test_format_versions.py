"""A file whose format this version does not know is refused by name, or made anew where it can be; never written to."""

import json
import shutil
import sys
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder

from harness.agent import HarnessAgent, open_session
from harness.errors import NewerFormat, SessionDamaged
from harness.filesystem.archives import Member
from harness.messages import Media, MediaBlock, Msg
from harness.sessions import verify_session
from harness.sessions.lines.entries import digest
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.sealed import seal, unseal
from harness.testing import ScriptedModel
from harness.text import dumps, loads

FIXTURE = Path(__file__).parents[1] / "data/formats/1"
LATER = [2, 99, 10**30, "1", "2", 1.5, True, None, [1], {"is": 1}]
LATER_SAID = r"s1\.log\.jsonl has format .*use the version of dualtrack-harness that wrote it"
NEVER = [0, -1]


def rewritten(ledger: Path, **header: Any) -> None:
    """Another header, and all links made to fit it."""
    first, *rest = ledger.read_bytes().removesuffix(b"\n").split(b"\n")
    fields = {**json.loads(first), **header}
    lines = [
        json.dumps({key: value for key, value in fields.items() if value != "gone"}, separators=(",", ":")).encode()
    ]
    for line in rest:
        lines.append(dumps({**loads(line), "prevHash": digest(lines[-1])}))
    ledger.write_bytes(b"".join(line + b"\n" for line in lines))


def files_of(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not name.endswith((".lock", "sessions.json"))}


@pytest.fixture
def folder(workspace: Path) -> Path:
    shutil.copytree(FIXTURE, folder := sessions_folder(workspace))
    return folder


@pytest.fixture
async def agent(workspace: Path) -> AsyncIterator[HarnessAgent]:
    open_session._cache._open.clear()
    async with agent_of(workspace, ScriptedModel(["Yes."] * 9)) as agent:
        yield agent


async def each_refused(folder: Path, agent: HarnessAgent, error: type[Exception], match: str) -> None:
    """Everything that builds on a session says why it does not, and writes nothing; others are not kept back."""
    sessions, before = agent.sessions("alice"), files_of(folder)
    target = folder / "s1.zip"
    for asked in (
        lambda: agent.call("Still there?", ALICE),
        lambda: sessions.history("s1"),
        lambda: sessions.tree("s1"),
        lambda: sessions.repair("s1"),
        lambda: sessions.branch("s1", "x"),
        lambda: sessions.branches("s1"),
        lambda: sessions.fork("s1"),
        lambda: sessions.label("s1", "x", "name"),
        lambda: sessions.labels("s1"),
        lambda: sessions.rename("s1", "Title"),
        lambda: sessions.compact("s1"),
        lambda: sessions.switch_model("s1", ScriptedModel(name="other")),
        lambda: sessions.handoff("s1"),
        lambda: sessions.export("s1", target),
        lambda: sessions.search("picture", session_id="s1"),
    ):
        with pytest.raises(error, match=match):
            await asked()
    assert [info.id for info in await sessions.list()] == ["s1"]
    assert files_of(folder) == before
    await agent.call("Another picture?", ALICE.with_changes(session_id="s2"))
    assert [hit.session_id for hit in await sessions.search("picture")] == ["s2"]
    await sessions.usage()


@pytest.mark.parametrize("number", LATER, ids=repr)
async def test_a_ledger_of_a_later_format_is_refused_everywhere_and_nothing_is_written(
    folder: Path, agent: HarnessAgent, number: object
) -> None:
    rewritten(folder / "s1.log.jsonl", format=number)
    await each_refused(folder, agent, NewerFormat, LATER_SAID)
    with pytest.raises(NewerFormat, match=LATER_SAID):
        await agent.sessions("alice").verify("s1")
    with pytest.raises(NewerFormat, match=LATER_SAID):
        await agent.sessions("alice").usage("s1")


@pytest.mark.parametrize("number", NEVER, ids=repr)
async def test_a_format_that_there_never_was_is_damage_and_nothing_is_written(
    folder: Path, agent: HarnessAgent, number: object
) -> None:
    rewritten(folder / "s1.log.jsonl", format=number)
    await each_refused(folder, agent, SessionDamaged, r"s1\.log\.jsonl has format .*restore it")
    assert not (await agent.sessions("alice").verify("s1")).ok


@pytest.mark.parametrize("number", NEVER, ids=repr)
async def test_a_number_that_rotted_to_one_that_there_never_was_is_a_damaged_header(
    folder: Path, agent: HarnessAgent, number: object
) -> None:
    ledger = folder / "s1.log.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"format":1', b'"format":%s' % json.dumps(number).encode(), 1))
    before = ledger.read_bytes()
    await agent.call("Still there?", ALICE)
    assert ledger.read_bytes().startswith(before)
    assert "edited" in [finding.kind for finding in (await agent.sessions("alice").verify("s1")).findings]


async def test_a_ledger_that_does_not_say_its_format_is_of_the_first(folder: Path, agent: HarnessAgent) -> None:
    rewritten(folder / "s1.log.jsonl", format="gone")
    (folder / "s1.head.json").unlink()
    assert len(await agent.sessions("alice").history("s1")) == 8
    await agent.call("Still there?", ALICE)


async def test_a_content_that_a_ledger_of_a_later_format_mentions_anywhere_stays(
    folder: Path, agent: HarnessAgent
) -> None:
    """Who went back to an older version must not lose what the newer one has put somewhere else."""
    picture = Msg.user("look", MediaBlock(type="image", media=Media.from_bytes(b"pixels", "image/png")))
    for session in ("s2", "s3"):
        await agent.call(picture, ALICE.with_changes(session_id=session))
    ledger = folder / "s3.log.jsonl"
    moved = ledger.read_bytes().replace(b'"media":{', b'"seenIn":{')
    ledger.write_bytes(moved.replace(b'"format":1', b'"format":2', 1))
    contents = {path for path in (folder / "files").glob("*/*") if path.read_bytes() == b"pixels"}
    assert len(contents) == 1
    await agent.sessions("alice").delete("s2")
    assert all(path.exists() for path in contents)


@pytest.mark.parametrize("v", [0, 2, 99, "1", None, True, "gone"], ids=repr)
async def test_an_anchor_of_another_version_counts_as_absent(folder: Path, agent: HarnessAgent, v: object) -> None:
    """All that it says stands in the ledger too."""
    path = folder / "s1.head.json"
    fields = {**(unseal(path.read_bytes()) or {}), "v": v}
    path.write_bytes(seal({key: value for key, value in fields.items() if value != "gone"}))
    report = verify_session(SessionFiles(folder, "s1"), Owner("s1", "notes", ("alice",)))
    assert [finding.kind for finding in report.findings] == ["unanchored"]
    before = files_of(folder)
    assert len(await agent.sessions("alice").history("s1")) == 8
    assert files_of(folder) == before, "reading writes nothing"
    await agent.call("Still there?", ALICE)
    assert (folder / "s1.log.jsonl").read_bytes().startswith(before["s1.log.jsonl"])
    assert (await agent.sessions("alice").verify("s1")).ok


@pytest.mark.parametrize("changes", [{"version": 2}, {"type": "context/2"}, {"type": None}, {"ledgerId": 5}])
async def test_a_context_file_of_another_kind_is_made_anew(
    folder: Path, agent: HarnessAgent, changes: dict[str, Any]
) -> None:
    path = folder / "s1.jsonl"
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(dumps({**loads(first), **changes}) + b"\n" + rest)
    await agent.call("Still there?", ALICE)
    assert (await agent.sessions("alice").verify("s1")).findings == ()


@pytest.mark.parametrize("version", [0, 2, "1", None], ids=repr)
async def test_a_list_of_another_version_loses_no_session(folder: Path, agent: HarnessAgent, version: object) -> None:
    path = folder / "sessions.json"
    path.write_bytes(dumps({**loads(path.read_bytes()), "version": version}))
    assert [info.id for info in await agent.sessions("alice").list()] == ["s1"]
    await agent.call("Still there?", ALICE)
    assert [(info.id, info.turns) for info in await agent.sessions("alice").list()] == [("s1", 4)]


def with_manifest(bundle: Path, target: Path, header: object = "same", **changes: Any) -> Path:
    """A copy of a bundle with another manifest, and another format in the header of its ledger."""
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = {**json.loads(members.pop("manifest.json")), **changes}
    log = "session.log.jsonl"
    if header != "same":
        (target.parent / log).write_bytes(members[log])
        rewritten(target.parent / log, format=header)
        members[log] = (target.parent / log).read_bytes()
        listed = [Member(name, len(data), digest(data)) for name, data in members.items()]
        manifest["files"] = [{"path": each.path, "bytes": each.bytes, "sha256": each.sha256} for each in listed]
    members["manifest.json"] = json.dumps({key: value for key, value in manifest.items() if value != "gone"}).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target


async def refused_bundle(agent: HarnessAgent, folder: Path, tmp_path: Path, error: type[Exception], **how: Any) -> str:
    sessions = agent.sessions("alice")
    await sessions.export("s1", tmp_path / "s.zip")
    bundle = with_manifest(tmp_path / "s.zip", tmp_path / "other.zip", **how)
    before = files_of(folder)
    with pytest.raises(error, match=r"other\.zip") as caught:
        await sessions.import_session(bundle, session_id="s9", take_over=True)
    assert files_of(folder) == before
    return str(caught.value)


@pytest.mark.parametrize("number", LATER, ids=repr)
async def test_a_bundle_of_a_later_format_is_refused_by_name(
    folder: Path, agent: HarnessAgent, tmp_path: Path, number: object
) -> None:
    said = await refused_bundle(agent, folder, tmp_path, NewerFormat, format=number)
    assert "use the version of dualtrack-harness that wrote it" in said


@pytest.mark.parametrize("number", LATER, ids=repr)
async def test_a_ledger_of_a_later_format_in_a_bundle_is_refused_by_name(
    folder: Path, agent: HarnessAgent, tmp_path: Path, number: object
) -> None:
    said = await refused_bundle(agent, folder, tmp_path, NewerFormat, header=number)
    assert "use the version of dualtrack-harness that wrote it" in said


@pytest.mark.parametrize("changes", [{"format": 0}, {"format": "gone"}, {"type": "other"}])
async def test_a_bundle_of_no_format_that_there_was_is_damaged(
    folder: Path, agent: HarnessAgent, tmp_path: Path, changes: dict[str, Any]
) -> None:
    await refused_bundle(agent, folder, tmp_path, SessionDamaged, **changes)


@pytest.mark.parametrize("number", NEVER, ids=repr)
async def test_a_ledger_of_no_format_that_there_was_in_a_bundle_is_damaged(
    folder: Path, agent: HarnessAgent, tmp_path: Path, number: object
) -> None:
    await refused_bundle(agent, folder, tmp_path, SessionDamaged, header=number)


@pytest.mark.parametrize("changes", [{"version": 2}, {"hash": 5}, {"seq": "6"}, {"ledgerId": None}, {"count": -1}])
async def test_a_snapshot_that_says_what_this_version_does_not_know_stops_no_call(
    folder: Path, agent: HarnessAgent, changes: dict[str, Any]
) -> None:
    await agent.call("Still there?", ALICE)
    path = folder.parent / "context/s1/memory.json"
    path.write_bytes(seal({**(unseal(path.read_bytes()) or {}), **changes}))
    before = (folder / "s1.log.jsonl").read_bytes()
    open_session._cache._open.clear()
    await agent.call("And now?", ALICE)
    ledger = (folder / "s1.log.jsonl").read_bytes()
    assert ledger.startswith(before)
    assert (await agent.sessions("alice").verify("s1")).ok
    assert [message.text for message in await agent.sessions("alice").history("s1", 4)] == [
        "Still there?", "Yes.", "And now?", "Yes.",
    ]  # fmt: skip
