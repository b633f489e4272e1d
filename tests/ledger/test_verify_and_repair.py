"""What verify says of a session's files, and what repair makes anew (cases B14, B55)."""

import hashlib
import json
import logging
import shutil
from pathlib import Path

import pytest
from mutations import sessions_of

from harness.errors import SessionNotFound


@pytest.fixture
def workspace(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "w"))


@pytest.fixture
def agent(conversation, workspace, new_process):
    new_process()
    return conversation.build(workspace)


def kinds(report, *, errors: bool = True) -> list[str]:
    return [found.kind for found in report.findings if found.error == errors]


def edit(path: Path, change) -> None:
    path.write_bytes(change(path.read_bytes()))


async def test_an_untouched_session_has_no_findings_and_is_anchored_to_its_end(agent, workspace, ledger):
    report = await agent.sessions("alice").verify("s")
    assert (report.ok, report.findings) == (True, ())
    assert report.anchored == report.lines == len(ledger[0])
    assert report.bytes == (sessions_of(workspace) / "s.log.jsonl").stat().st_size
    assert report.files == 2
    assert report.ledger_id == json.loads(ledger[0][0])["ledgerId"]


def drop(first, last):
    return lambda data: b"\n".join(data.split(b"\n")[:first] + data.split(b"\n")[last:])


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda data: b"\n".join(data.split(b"\n")[:-4]) + b"\n", "truncated"),
        (lambda data: data[:-97], "truncated"),
        (drop(0, 3), "gap"),
        (drop(10, 12), "gap"),
        (lambda data: data.replace(b"turn 3 media", b"turn 3 MEDIA"), "edited"),
        (lambda data: b"\n".join([*data.split(b"\n")[:9], data.split(b"\n")[4], *data.split(b"\n")[9:]]), "doubled"),
        (lambda data: b"", "truncated"),
    ],
    ids=["last lines", "a torn end", "first lines", "two lines", "an edit", "repeated", "emptied"],
)
async def test_each_kind_of_damage_is_named_as_what_it_is(agent, workspace, change, kind):
    edit(sessions_of(workspace) / "s.log.jsonl", change)
    report = await agent.sessions("alice").verify("s")
    assert not report.ok
    assert kind in kinds(report)
    assert all(found.text for found in report.findings)


async def test_two_swapped_lines_are_reordered(agent, workspace):
    def swap(data: bytes) -> bytes:
        lines = data.split(b"\n")
        lines[8], lines[9] = lines[9], lines[8]
        return b"\n".join(lines)

    edit(sessions_of(workspace) / "s.log.jsonl", swap)
    assert kinds(await agent.sessions("alice").verify("s")) == ["reordered"]


async def test_the_ledger_of_another_session_in_its_place_is_foreign(conversation, agent, workspace):
    await agent.call("turn 1 plain", conversation.context_of("other"))
    folder = sessions_of(workspace)
    shutil.copy(folder / "other.log.jsonl", folder / "s.log.jsonl")
    report = await agent.sessions("alice").verify("s")
    assert kinds(report)[:2] == ["foreign", "foreign"]
    assert "belongs to" in report.findings[0].text


async def test_a_chain_that_was_computed_anew_does_not_fit_its_anchor(agent, workspace, ledger):
    lines = []
    for raw in ledger[0]:
        entry = json.loads(raw.replace(b"turn 3 media", b"turn 3 never"))
        if lines:
            entry["prevHash"] = hashlib.sha256(lines[-1]).hexdigest()
        lines.append(json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode())
    (sessions_of(workspace) / "s.log.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    assert kinds(await agent.sessions("alice").verify("s")) == ["edited"]


async def test_a_missing_and_a_changed_file_are_named_with_the_line_that_names_them(agent, workspace):
    one, two = sorted(path for path in sessions_of(workspace).glob("files/*/*") if len(path.name) == 64)
    one.unlink()
    edit(two, lambda data: data[:-1])
    report = await agent.sessions("alice").verify("s")
    assert sorted(kinds(report)) == ["edited", "missing_file"]
    assert all(found.line > 1 for found in report.findings)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"x" * 512)], ids=["gone", "damaged"])
async def test_without_an_anchor_the_end_is_not_proved_until_a_writer_notes_it(conversation, agent, workspace, spoil):
    spoil(sessions_of(workspace) / "s.head.json")
    before = await agent.sessions("alice").verify("s")
    assert (kinds(before), before.anchored) == (["unanchored"], 0)
    await agent.call("turn 8 plain", conversation.context_of("s"))
    after = await agent.sessions("alice").verify("s")
    assert after.ok
    assert kinds(after, errors=False) == ["unanchored"]
    assert "found and noted by the writer of this line" in after.findings[0].text


async def test_a_cut_end_stays_noted_after_the_next_call_and_the_one_after_it_notes_nothing(
    conversation, agent, workspace, ledger, caplog
):
    caplog.set_level(logging.CRITICAL)
    edit(sessions_of(workspace) / "s.log.jsonl", lambda data: b"\n".join(data.split(b"\n")[:-4]) + b"\n")
    shutil.rmtree(workspace / "tenants/alice/agents/crash/context")
    for number in (8, 9):
        await agent.call(f"turn {number} plain", conversation.context_of("s"))
    report = await agent.sessions("alice").verify("s")
    assert report.ok
    (note,) = report.findings
    assert (note.kind, note.severity, note.line) == ("truncated", "note", len(ledger[0]) - 2)
    assert f"the anchor named {len(ledger[0])} lines" in note.text
    assert report.noted == (note.line,)


async def test_the_note_about_an_edited_last_line_says_what_differs(conversation, agent, workspace, ledger):
    last = ledger[0][-1]
    edited = last.replace(b'"timestamp":"20', b'"timestamp":"19')
    edit(sessions_of(workspace) / "s.log.jsonl", lambda data: data.replace(last, edited))
    shutil.rmtree(workspace / "tenants/alice/agents/crash/context")
    await agent.call("turn 8 plain", conversation.context_of("s"))
    texts = [note.text for note in (await agent.sessions("alice").verify("s")).findings if note.noted]
    was, found = (hashlib.sha256(line).hexdigest() for line in (last, edited))
    assert len(texts) == 1
    assert f"line {len(ledger[0])} has the SHA-256 {found}, where the anchor named {was}" in texts[0]


async def test_a_context_file_that_says_something_else_is_a_note(agent, workspace):
    edit(sessions_of(workspace) / "s.jsonl", lambda data: data.replace(b"turn 7", b"turn X"))
    report = await agent.sessions("alice").verify("s")
    assert (report.ok, kinds(report, errors=False)) == (True, ["context"])


async def test_verify_of_an_unknown_session_is_an_error(agent):
    with pytest.raises(SessionNotFound):
        await agent.sessions("alice").verify("unknown")
    with pytest.raises(SessionNotFound):
        await agent.sessions("alice").repair("unknown")
    with pytest.raises(SessionNotFound):
        await agent.sessions("bob").verify("s")


async def test_repair_makes_copies_anew_and_leaves_the_ledger_as_it_is(agent, workspace, caplog):
    caplog.set_level(logging.CRITICAL)
    folder = sessions_of(workspace)
    ledger, context = (folder / "s.log.jsonl").read_bytes(), (folder / "s.jsonl").read_bytes()
    edit(folder / "s.jsonl", lambda data: data.replace(b"turn 7", b"turn X"))
    (folder / "s.head.json").write_bytes(b"damaged")
    (folder / "sessions.json").write_bytes(b'{"version":1,"sessions":{}}')
    report = await agent.sessions("alice").repair("s")
    assert (report.before.ok, report.ok) == (False, True)
    assert (folder / "s.log.jsonl").read_bytes().startswith(ledger)
    assert (folder / "s.jsonl").read_bytes().split(b"\n")[1:] == context.split(b"\n")[1:]
    kept = sorted(path.name.partition(".damaged-")[0] for path in folder.glob("*.damaged-*"))
    assert kept == ["s.head.json", "s.jsonl"]
    assert [line.partition(";")[0] for line in report.done if "; kept as" in line] == [
        "s.jsonl differs from the ledger",
        "s.head.json could not be read",
    ]
    assert any("of the ledger notes what was wrong with its end" in line for line in report.done)
    assert report.done[-1] == "the entry in the list was made anew"
    assert [info.turns for info in await agent.sessions("alice").list()] == [8]


async def test_repair_of_a_whole_session_adds_no_line(agent, workspace):
    folder = sessions_of(workspace)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name in ("s.log.jsonl", "s.head.json")}
    report = await agent.sessions("alice").repair("s")
    assert report.ok
    assert report.done == ("nothing wrong was found; the copies were made anew",)
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert list(folder.glob("*.damaged-*")) == []


@pytest.mark.parametrize("fragment", [b'{"type":"mess', b"\xff\0"], ids=["torn", "garbage"])
async def test_repair_ends_an_unfinished_line_before_it_anchors_the_end(agent, workspace, fragment):
    path = sessions_of(workspace) / "s.log.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + fragment)
    report = await agent.sessions("alice").repair("s")
    assert report.ok
    assert [found.kind for found in report.after.findings] == ["torn"]
    assert path.read_bytes().startswith(before + fragment + b"\n{")


async def test_repair_ends_a_last_line_that_only_lacks_its_end(agent, workspace):
    path = sessions_of(workspace) / "s.log.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    assert (await agent.sessions("alice").repair("s")).ok
    assert kinds(await agent.sessions("alice").verify("s")) == []


@pytest.mark.parametrize("garbage", [b"", b"garbage\nmore\n", b"\xff\xfe"], ids=["empty", "lines", "bytes"])
async def test_a_context_file_that_cannot_be_read_is_noted_and_kept_aside(agent, workspace, garbage):
    path = sessions_of(workspace) / "s.jsonl"
    path.write_bytes(garbage)
    assert [(found.kind, found.error) for found in (await agent.sessions("alice").verify("s")).findings] == [
        ("context", False)
    ]
    report = await agent.sessions("alice").repair("s")
    assert report.done[0].startswith("s.jsonl differs from the ledger; kept as s.jsonl.damaged-")
    assert kinds(report.after) == []
    (aside,) = path.parent.glob("s.jsonl.damaged-*")
    assert aside.read_bytes() == garbage


async def test_repair_does_not_make_an_edit_look_right(agent, workspace):
    edit(sessions_of(workspace) / "s.log.jsonl", lambda data: data.replace(b"turn 3 media", b"turn 3 MEDIA"))
    report = await agent.sessions("alice").repair("s")
    assert not report.ok
    assert set(kinds(report.after)) == {"edited"}


async def test_the_reports_are_json(agent):
    report = await agent.sessions("alice").repair("s")
    known = json.loads(json.dumps(report.to_dict()))
    assert (known["ok"], known["after"]["findings"]) == (True, [])
    assert set(known["before"]) == {"session", "ok", "ledgerId", "lines", "bytes", "anchored", "files", "findings"}
