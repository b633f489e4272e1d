"""A session leaves in one file byte for byte, and comes in whole and checked, or not at all."""

import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, BOB, Held, agent_of, call_of, ledger, of_kind, sessions_folder, shown

from harness.agent import open_session
from harness.context import RuntimeContext
from harness.errors import (
    ConfigError,
    FileExists,
    FileMissing,
    InvalidId,
    SessionDamaged,
    SessionExists,
    SessionNotFound,
)
from harness.hooks import CompactionConfig
from harness.messages import Media, MediaBlock, Msg
from harness.sessions.moving import importing
from harness.testing import ScriptedModel
from harness.tools import tool

PICTURE = bytes(range(256)) * 40


@tool
async def report() -> str:
    """A long one."""
    return "line\n" * 45_000


def picture() -> Msg:
    return Msg.user("What is this?", MediaBlock(type="image", media=Media.from_bytes(PICTURE, "image/png")))


async def conversation(workspace: Path, ctx: RuntimeContext = ALICE, **options: Any) -> None:
    """Three turns with a picture, a large result and, where the options say so, a compaction."""
    model = ScriptedModel(["A picture.", [call_of("report")], "Long.", "Bye."])
    async with agent_of(workspace, model, report, **options) as agent:
        await agent.call(picture(), ctx)
        await agent.call("And the report?", ctx)
        if "compaction" in options:
            assert await agent.sessions(ctx).compact("s1")
        await agent.call("Bye.", ctx)


async def exported(workspace: Path, target: Path, user: str = "alice", **options: Any) -> Path:
    await conversation(workspace, RuntimeContext(session_id="s1", user_id=user), **options)
    async with agent_of(workspace, ScriptedModel()) as agent:
        await agent.sessions(user).export("s1", target)
    return target


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but locks and the list."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not name.endswith(".lock") and name != "sessions.json"}


def leftovers(folder: Path) -> list[Path]:
    return list(folder.rglob(".tmp-*"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rewritten(bundle: Path, **changes: bytes | None) -> Path:
    """A copy of a bundle with other members, and a manifest that fits them."""
    with zipfile.ZipFile(bundle) as archive:
        members: dict[str, bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json") or b"")
    members = {name: data for name, data in {**members, **changes}.items() if data is not None}
    files = [
        {"path": name, "bytes": len(data or b""), "sha256": hashlib.sha256(data or b"").hexdigest()}
        for name, data in members.items()
    ]
    target = bundle.with_name("changed.zip")
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data or b"")
        archive.writestr("manifest.json", json.dumps({**manifest, "files": files}))
    return target


async def refused(
    workspace: Path, bundle: Path, match: str, kind: type[Exception] = SessionDamaged, **options: Any
) -> None:
    """An import that fails and leaves nothing behind but locks."""
    before = files_of(workspace)
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(kind, match=match):
            await agent.sessions("alice").import_session(bundle, **options)
    after = files_of(workspace)
    assert {name: data for name, data in after.items() if not name.endswith("tenant.json")} == {
        name: data for name, data in before.items() if not name.endswith("tenant.json")
    }
    assert leftovers(workspace) == []


async def test_an_export_holds_every_file_byte_for_byte(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    folder = files_of(sessions_folder(workspace))
    with zipfile.ZipFile(bundle) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(held.pop("manifest.json"))
    assert held == {name.replace("s1.", "session."): data for name, data in folder.items()}
    assert {item["path"]: (item["bytes"], item["sha256"]) for item in manifest["files"]} == {
        name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in held.items()
    }
    assert {key: manifest[key] for key in ("format", "session", "agent", "tenant")} == {
        "format": 1, "session": "s1", "agent": "notes", "tenant": ["alice"],
    }  # fmt: skip
    assert len([name for name in held if name.startswith("files/")]) == 2


async def test_the_same_session_gives_the_same_bytes_and_is_not_touched(workspace: Path, tmp_path: Path) -> None:
    first = await exported(workspace, tmp_path / "1.zip")
    before = files_of(workspace)
    async with agent_of(workspace, ScriptedModel()) as agent:
        await agent.sessions("alice").export("s1", tmp_path / "2.zip")
    assert (tmp_path / "2.zip").read_bytes() == first.read_bytes()
    assert files_of(workspace) == before


async def test_exporting_waits_for_no_call(workspace: Path, tmp_path: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel(["one", held])) as agent:
        await agent.call("hi", ALICE)
        async with agent.call("more", ALICE) as call:
            call.start()
            await held.asked.wait()
            await agent.sessions("alice").export("s1", tmp_path / "s1.zip")
            held.let_go.set()
            await call
        (other := tmp_path / "other").mkdir()
    async with agent_of(other, ScriptedModel()) as agent:
        await agent.sessions("alice").import_session(tmp_path / "s1.zip")
        assert [m.text for m in await agent.sessions("alice").history("s1")] == ["hi", "one", "more"]


async def test_an_existing_file_is_not_overwritten(workspace: Path, tmp_path: Path) -> None:
    target = tmp_path / "s1.zip"
    target.write_bytes(b"mine")
    with pytest.raises(FileExists, match=r"s1\.zip"):
        await exported(workspace, target)
    assert target.read_bytes() == b"mine"


async def test_a_session_that_is_not_there_cannot_be_exported(workspace: Path, tmp_path: Path) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(SessionNotFound, match="s1"):
            await agent.sessions("alice").export("s1", tmp_path / "s1.zip")
    assert names(tmp_path) == []


@pytest.mark.parametrize("compacted", [False, True])
async def test_an_imported_session_is_the_same_verifies_and_goes_on(
    workspace: Path, tmp_path: Path, compacted: bool
) -> None:
    options = {"compaction": CompactionConfig(keep_messages=4, model=ScriptedModel(["SUMMARY"]))} if compacted else {}
    bundle = await exported(workspace, tmp_path / "s1.zip", **options)
    other = tmp_path / "other"
    model = ScriptedModel(["Yes."])
    async with agent_of(other, model, report) as agent:
        sessions = agent.sessions("alice")
        assert await sessions.import_session(bundle) == "s1"
        assert files_of(sessions_folder(other)) == files_of(sessions_folder(workspace))
        assert (await sessions.verify("s1")).findings == ()
        assert [(info.id, info.turns) for info in await sessions.list()] == [("s1", 3)]
        await agent.call("Still there?", ALICE)
        assert (await sessions.verify("s1")).ok
    texts = [text for _, text in shown(model.requests[0])]
    assert texts[-3:] == ["Bye.", "Bye.", "Still there?"]
    assert ("SUMMARY" in texts[0]) is compacted
    assert len(ledger(other)) > len(ledger(workspace))


async def test_a_session_of_that_id_is_not_replaced(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    await refused(workspace, bundle, "s1", SessionExists)


async def test_of_two_imports_at_once_one_wins_and_the_session_is_whole(workspace: Path, tmp_path: Path) -> None:
    import asyncio

    bundle = await exported(workspace, tmp_path / "s1.zip")
    async with agent_of(tmp_path / "a", ScriptedModel()) as one, agent_of(tmp_path / "a", ScriptedModel()) as two:
        done = await asyncio.gather(
            *(agent.sessions("alice").import_session(bundle) for agent in (one, two)), return_exceptions=True
        )
        assert (await one.sessions("alice").verify("s1")).ok
    assert sorted(str(type(result).__name__) for result in done) == ["SessionExists", "str"]


async def test_somebody_elses_session_is_not_taken_silently(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip", "bob")
    await refused(tmp_path / "other", bundle, "session 's1' of agent 'notes' and tenant 'bob', and was", ConfigError)


@pytest.mark.parametrize("compacted", [False, True])
async def test_a_session_that_is_taken_over_says_where_it_came_from_verifies_and_goes_on(
    workspace: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, compacted: bool
) -> None:
    options = {"compaction": CompactionConfig(keep_messages=4, model=ScriptedModel(["SUMMARY"]))} if compacted else {}
    bundle = await exported(workspace, tmp_path / "s1.zip", "bob", **options)
    other, model = tmp_path / "other", ScriptedModel(["Yes."])
    caplog.clear()
    async with agent_of(other, model, report) as agent:
        sessions = agent.sessions("alice")
        assert await sessions.import_session(bundle, session_id="copy", take_over=True) == "copy"
        assert (await sessions.verify("copy")).findings == ()
        assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []
        await agent.call("Still there?", RuntimeContext(session_id="copy", user_id="alice"))
        assert (await sessions.verify("copy")).ok
    source, copy = ledger(workspace, user="bob"), ledger(other, "copy")
    raw = (sessions_folder(workspace, "bob") / "s1.log.jsonl").read_bytes()
    assert copy[0]["importedFrom"] == {
        "session": "s1", "agent": "notes", "tenant": ["bob"], "ledgerId": source[0]["ledgerId"],
        "sha256": hashlib.sha256(raw).hexdigest(),
    }  # fmt: skip
    assert copy[0]["ledgerId"] != source[0]["ledgerId"]
    assert [entry["id"] for entry in copy[: len(source)]] == [entry["id"] for entry in source]
    assert ("SUMMARY" in shown(model.requests[0])[0][1]) is compacted


async def test_a_deleted_session_can_be_imported_again(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    async with agent_of(workspace, ScriptedModel(["Yes."])) as agent:
        await agent.sessions("alice").delete("s1")
        await agent.sessions("alice").import_session(bundle)
        await agent.call("Still there?", ALICE)
    assert [entry["message"]["role"] for entry in of_kind(ledger(workspace), "message")][-2:] == ["user", "assistant"]


async def test_every_flipped_byte_of_a_ledger_is_noticed(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    raw = bytearray((sessions_folder(workspace) / "s1.log.jsonl").read_bytes())
    for place in range(40, len(raw), len(raw) // 12):
        changed = bytes(raw[:place]) + bytes([raw[place] ^ 1]) + bytes(raw[place + 1 :])
        await refused(tmp_path / "other", rewritten(bundle, **{"session.log.jsonl": changed}), ".")


async def test_a_ledger_cut_at_a_lines_end_is_noticed(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    raw = (sessions_folder(workspace) / "s1.log.jsonl").read_bytes()
    cut = raw[: raw.rindex(b"\n", 0, -1) + 1]
    await refused(tmp_path / "other", rewritten(bundle, **{"session.log.jsonl": cut}), "does not verify")


async def test_a_member_that_is_not_the_one_of_the_manifest_is_noticed(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = next(name for name in members if name.startswith("files/"))
    members[content] = members[content][:-1] + b"?"
    target = tmp_path / "changed.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    await refused(tmp_path / "other", target, "is not the file that was exported")


async def test_a_bundle_without_a_content_that_the_ledger_names_is_refused(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    with zipfile.ZipFile(bundle) as archive:
        content = next(name for name in archive.namelist() if name.startswith("files/"))
    await refused(tmp_path / "other", rewritten(bundle, **{content: None}), "missing_file")


async def test_a_bundle_without_an_anchor_is_refused_since_its_end_proves_nothing(
    workspace: Path, tmp_path: Path
) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    await refused(tmp_path / "other", rewritten(bundle, **{"session.head.json": None}), "unanchored")


@pytest.mark.parametrize(
    "name",
    [
        "../up",
        "/abs",
        "files/../../x",
        "files/ab/abc",
        "s1.log.jsonl",
        "files/ab/" + "cd" * 32,
        "C:\\x",
        "session.lock",
    ],
)
async def test_a_member_with_any_other_name_is_refused(workspace: Path, tmp_path: Path, name: str) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    around = names(tmp_path)
    await refused(tmp_path / "other", rewritten(bundle, **{name: b"x"}), "cannot hold")
    assert names(tmp_path) == sorted([*around, "changed.zip"])


async def test_a_member_that_is_not_listed_or_twice_there_is_refused(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("session.txt", b"x")
    await refused(tmp_path / "other", bundle, "does not hold the files")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("session.txt", b"x")
    await refused(tmp_path / "other", bundle, "twice")


async def test_a_bundle_that_unpacks_to_more_than_is_allowed_is_refused(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    await refused(tmp_path / "other", bundle, "allowed are 1000", max_bytes=1000)


async def test_a_bundle_that_lies_about_its_size_is_stopped_on_the_way(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    manifest["files"][0]["bytes"] = 10
    target = tmp_path / "liar.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, json.dumps(manifest) if name == "manifest.json" else data)
    await refused(tmp_path / "other", target, "more than 10 bytes")


@pytest.mark.parametrize(
    "raw", [b"", b"no zip", b"PK\x03\x04" + b"\0" * 40, b'{"type":"header"}\n'], ids=["empty", "text", "cut", "ledger"]
)
async def test_what_is_no_bundle_is_said_to_be_none(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(raw)
    await refused(tmp_path / "other", tmp_path / "x.zip", "x.zip")


@pytest.mark.parametrize(
    "manifest",
    [
        b"{}", b"[]", b"nonsense", b'{"format":1,"type":"session"}',
        b'{"format":1,"type":"session","session":1,"agent":"a","tenant":[],"ledgerId":"x","files":[]}',
        b'{"format":1,"type":"session","session":"s","agent":"a","tenant":[],"ledgerId":"x","files":[{"path":"a","bytes":-1,"sha256":""}]}',
    ],
)  # fmt: skip
async def test_a_manifest_that_says_nothing_is_refused(tmp_path: Path, manifest: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("manifest.json", manifest)
    (tmp_path / "x.zip").write_bytes(buffer.getvalue())
    await refused(tmp_path / "other", tmp_path / "x.zip", "x.zip")


async def test_a_content_that_older_versions_took_along_since_somebody_named_it_is_taken_in(tmp_path: Path) -> None:
    """A bundle of 0.1.0 holds what the input of a tool names, if there was such a file."""
    name = hashlib.sha256(b"of another session").hexdigest()
    async with agent_of(tmp_path / "a", ScriptedModel([[call_of("t", media={"sha256": name})], "ok"])) as agent:
        await agent.call("hi", ALICE)
        await agent.sessions("alice").export("s1", tmp_path / "s1.zip")
    bundle = rewritten(tmp_path / "s1.zip", **{f"files/{name[:2]}/{name}": b"of another session"})
    async with agent_of(tmp_path / "b", ScriptedModel()) as agent:
        await agent.sessions("alice").import_session(bundle)
        assert (await agent.sessions("alice").verify("s1")).findings == ()


async def test_a_missing_bundle_is_missing(workspace: Path, tmp_path: Path) -> None:
    await refused(workspace, tmp_path / "nothing.zip", "nothing.zip", FileMissing)


async def test_the_id_in_a_bundle_is_no_path(workspace: Path, tmp_path: Path) -> None:
    """A hostile id is stored under an encoded name, or refused."""
    bundle = await exported(workspace, tmp_path / "s1.zip")
    other = tmp_path / "deep" / "other"
    async with agent_of(other, ScriptedModel()) as agent:
        assert await agent.sessions("alice").import_session(bundle, session_id="../../up", take_over=True) == "../../up"
        with pytest.raises(InvalidId):
            await agent.sessions("alice").import_session(bundle, session_id="a\0b", take_over=True)
    assert (sessions_folder(other) / "%2e%2e%2f%2e%2e%2fup.log.jsonl").is_file()
    assert names(tmp_path / "deep") == ["other"]


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("step", range(1, 6))
async def test_an_import_cut_off_at_any_point_leaves_no_session_and_can_be_repeated(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, killed: bool
) -> None:
    """Of two contents, context file, anchor and ledger; a process that is killed tidies nothing up."""
    bundle = await exported(workspace, tmp_path / "s1.zip")
    other = tmp_path / "other"
    real, count = importing.move_into_place, 0

    def stops(source: Path, target: Path) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise KeyboardInterrupt
        real(source, target)

    async with agent_of(other, ScriptedModel(["Yes."]), report) as agent:
        sessions = agent.sessions("alice")
        with monkeypatch.context() as patch:
            patch.setattr(importing, "move_into_place", stops)
            if killed:
                patch.setattr(importing.Unpacked, "discard", lambda self: None)
            with pytest.raises(KeyboardInterrupt):
                await sessions.import_session(bundle)
            assert await sessions.list() == []
        open_session._cache._open.clear()  # whoever tries again is another process
        assert await sessions.import_session(bundle) == "s1"
        assert (await sessions.verify("s1")).ok
        assert (await agent.call("Still there?", ALICE)).text == "Yes."


async def test_bob_does_not_see_what_was_imported_for_alice(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    other, model = tmp_path / "other", ScriptedModel(["Hello."])
    async with agent_of(other, model) as agent:
        await agent.sessions("alice").import_session(bundle)
        await agent.call("hi", BOB)
        assert len(await agent.sessions("bob").history("s1")) == 2
    assert shown(model.requests[0]) == [("user", "hi")]


async def test_after_an_import_that_was_killed_a_call_begins_a_conversation_of_its_own(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    real = importing.move_into_place

    def stops(source: Path, target: Path) -> None:
        if target.name == "s1.log.jsonl":
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(importing, "move_into_place", stops)
    monkeypatch.setattr(importing.Unpacked, "discard", lambda self: None)
    model = ScriptedModel(["Hello.", "Again."])
    async with agent_of(tmp_path / "other", model) as agent:
        with pytest.raises(KeyboardInterrupt):
            await agent.sessions("alice").import_session(bundle)
        await agent.call("hi", ALICE)
        await agent.call("hi again", ALICE)
        assert (await agent.sessions("alice").verify("s1")).ok
    assert shown(model.requests[1]) == [("user", "hi"), ("assistant", "Hello."), ("user", "hi again")]


async def test_a_bundle_with_a_flipped_bit_is_refused_or_means_the_same(workspace: Path, tmp_path: Path) -> None:
    bundle = await exported(workspace, tmp_path / "s1.zip")
    raw, same, refusals = bundle.read_bytes(), (sessions_folder(workspace) / "s1.log.jsonl").read_bytes(), 0
    directory = int.from_bytes(raw[-6:-2], "little")
    offsets = [*range(directory + 42, directory + 46), *range(len(raw) - 6, len(raw) - 2)]
    flips = [(place, n % 8) for n, place in enumerate(range(0, len(raw), len(raw) // 100))]
    flips += [(place, bit) for place in offsets for bit in range(8)]
    for n, (place, bit) in enumerate(flips):
        changed, other = tmp_path / "changed.zip", tmp_path / f"other{n}"
        changed.write_bytes(raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :])
        async with agent_of(other, ScriptedModel()) as agent:
            try:
                await agent.sessions("alice").import_session(changed)
            except SessionDamaged:
                refusals += 1
                assert leftovers(other) == []
            else:
                assert (sessions_folder(other) / "s1.log.jsonl").read_bytes() == same
    assert refusals > 130


@pytest.mark.parametrize("elsewhere", [False, True], ids=["as it was", "under another id"])
@pytest.mark.parametrize("half", [b'{"type":"mess', b"\xff", b"["])
async def test_half_a_line_that_a_crash_left_is_taken_in_as_what_it_is(
    workspace: Path, tmp_path: Path, half: bytes, elsewhere: bool
) -> None:
    await exported(workspace, tmp_path / "whole.zip")
    ledger = sessions_folder(workspace) / "s1.log.jsonl"
    ledger.write_bytes(ledger.read_bytes() + half)
    async with agent_of(workspace, ScriptedModel()) as agent:
        await agent.sessions("alice").export("s1", tmp_path / "s1.zip")
    name = "s2" if elsewhere else "s1"
    async with agent_of(tmp_path / "other", ScriptedModel(["Yes."])) as agent:
        sessions = agent.sessions("alice")
        await sessions.import_session(tmp_path / "s1.zip", session_id=name, take_over=elsewhere)
        assert [found.kind for found in (await sessions.verify(name)).findings] == ["torn", "unanchored"]
        await agent.call("Still there?", ALICE.with_changes(session_id=name))
        assert [(found.kind, found.error) for found in (await sessions.verify(name)).findings] == [("torn", False)]
