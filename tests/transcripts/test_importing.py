"""Transcripts become sessions of this library: verified, with nothing lost, ready to go on."""

import csv
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import PICTURE, SEALED, SESSION, answered, call, lines_of, said, sample

from harness.errors import SessionExists, TranscriptRefused
from harness.filesystem import disk
from harness.sessions import SessionTree
from harness.sessions.checking.verify import verify_session
from harness.sessions.lines.layout import Owner
from harness.sessions.tree import session_tree as tree_module
from harness.transcripts import Transcript, read
from harness.transcripts.importing import Imported, import_transcript


async def imported(transcript: Transcript, folder: Path) -> tuple[SessionTree, Imported]:
    tree = SessionTree(folder, "new", agent="a", namespace=())
    made = await import_transcript(transcript, tree)
    fresh = SessionTree(folder, "new", agent="a", namespace=())
    await fresh.load()
    return fresh, made


def texts(tree: SessionTree) -> list[tuple[str, str]]:
    return [
        (message["role"], "|".join(block["text"] for block in message["content"] if block["type"] == "text"))
        for message in tree.messages()
    ]


async def test_the_report_counts_what_came_and_what_did_not(tmp_path: Path) -> None:
    _, made = await imported(sample(tmp_path), tmp_path / "s")
    assert made.to_dict() == {
        "sessionId": "new",
        "messages": 7,
        "prompts": 3,
        "harnessTexts": 1,
        "openCalls": 1,
        "compactions": 1,
        "leftOut": {"sidechain": 2, "queued marks": 1},
    }


async def test_the_header_says_where_it_came_from(tmp_path: Path) -> None:
    tree, _ = await imported(sample(tmp_path), tmp_path / "s")
    source = dict(tree.header["importedFrom"])
    assert len(source.pop("sha256")) == 64
    assert source == {"format": "claude", "session": SESSION, "file": f"{SESSION}.jsonl"}


async def test_the_model_sees_the_summary_and_what_came_after_it(tmp_path: Path) -> None:
    tree, _ = await imported(sample(tmp_path), tmp_path / "s")
    assert texts(tree) == [
        ("user", "<context_summary>\nThey looked at the shop.\n</context_summary>"),
        ("user", "Open it."),
        ("assistant", ""),
    ]
    assert [call.id for call in tree.view().open_calls] == ["c3"]


async def test_what_was_summarised_is_still_in_the_ledger(tmp_path: Path) -> None:
    tree, _ = await imported(sample(tmp_path), tmp_path / "s")
    said_there = [line["message"] for line in lines_of(tree.files.ledger) if line["type"] == "message"]
    assert [(m["role"], m["content"][0]["type"]) for m in said_there][:5] == [
        ("user", "text"),
        ("user", "text"),
        ("assistant", "thinking"),
        ("tool", "toolResult"),
        ("user", "text"),
    ]


async def test_a_summary_in_the_middle_of_a_turn_keeps_its_prompt(tmp_path: Path) -> None:
    lines = [
        said(1, "First."),
        answered(2, "m1", {"type": "text", "text": "Done."}),
        said(3, "Second."),
        answered(4, "m2", {"type": "text", "text": "Working."}),
        said(5, "So far so good.", isCompactSummary=True),
        answered(6, "m3", {"type": "text", "text": "Ready."}),
    ]
    tree, _ = await imported(sample(tmp_path, lines), tmp_path / "s")
    assert texts(tree) == [
        ("user", "<context_summary>\nSo far so good.\n</context_summary>"),
        ("user", "Second."),
        ("assistant", "Ready."),
    ]


async def test_reasoning_keeps_its_seal_byte_for_byte(tmp_path: Path) -> None:
    lines = [said(1, "go"), answered(2, "m1", SEALED, {"type": "text", "text": "gone"})]
    tree, _ = await imported(sample(tmp_path, lines), tmp_path / "s")
    opaque = tree.messages()[1]["content"][0]["opaque"]
    assert opaque == {"provider": "anthropic", "model": "claude-x", "data": SEALED}
    assert list(opaque["data"]) == list(SEALED)


async def test_pictures_come_along(tmp_path: Path) -> None:
    tree, _ = await imported(sample(tmp_path), tmp_path / "s")
    media = next(
        block["media"]
        for line in lines_of(tree.files.ledger)
        if line["type"] == "message"
        for block in line["message"]["content"]
        if block["type"] == "image"
    )
    assert await tree.load_media(media["sha256"]) == PICTURE


async def test_a_session_that_is_there_is_not_touched(tmp_path: Path) -> None:
    tree, _ = await imported(sample(tmp_path), tmp_path / "s")
    before = tree.files.ledger.read_bytes()
    with pytest.raises(SessionExists, match="there is a session 'new' already"):
        await imported(sample(tmp_path), tmp_path / "s")
    assert tree.files.ledger.read_bytes() == before


async def test_text_of_a_harness_is_logged_and_not_shown_to_the_model(tmp_path: Path) -> None:
    lines = [
        said(1, "<system-reminder>Be kind.</system-reminder>"),
        said(2, "Hi."),
        answered(3, "m", {"type": "text", "text": "Hello."}),
    ]
    tree, _ = await imported(sample(tmp_path, lines), tmp_path / "s")
    assert texts(tree) == [("user", "Hi."), ("assistant", "Hello.")]
    assert [line["via"] for line in lines_of(tree.files.ledger) if line["type"] == "message"] == [
        "user",
        "hook",
        "model",
    ]


async def test_a_result_without_a_call_is_left_out_and_counted(tmp_path: Path) -> None:
    orphan = said(1, [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}])
    _, made = await imported(sample(tmp_path, [orphan, said(2, "Hi.")]), tmp_path / "s")
    assert (made.messages, made.left_out) == (1, {"results without a call": 1})


async def test_every_real_session_verifies_and_is_read_again_as_it_was_written(shared: Path, tmp_path: Path) -> None:
    manifest = (shared / "traces" / "MANIFEST.tsv").read_text(encoding="utf-8")
    names = [row["file"] for row in csv.DictReader(manifest.splitlines(), delimiter="\t")]
    wrong = []
    for number, name in enumerate(names):
        path, _, session = name.partition("#")
        transcript = read(shared / "traces" / path, session or None)
        tree = SessionTree(tmp_path / str(number), "new", agent="a", namespace=())
        made = await import_transcript(transcript, tree)
        fresh = SessionTree(tmp_path / str(number), "new", agent="a", namespace=())
        await fresh.load()
        report = verify_session(tree.files, Owner("new", "a", ()))
        after, told = read(tree.files.ledger).stats(), [t for t in transcript.turns if t.aside is None]
        calls = sum(1 for turn in told for _ in turn.of_type("toolUse"))
        if report.findings or fresh.messages() != tree.messages() or after["tool_calls"] != calls:
            wrong.append(name)
        if made.prompts != sum(turn.kind in ("prompt", "queued") for turn in told) or made.prompts != after["prompts"]:
            wrong.append(f"{name}: prompts")
    assert wrong == []


async def test_a_long_session_is_written_in_batches(tmp_path: Path) -> None:
    turns = [
        each
        for number in range(400)
        for each in (said(1, f"q{number}"), answered(2, f"m{number}", call(f"c{number}", n=number)))
    ]
    named = [{**each, "uuid": f"u{number}"} for number, each in enumerate(turns)]
    tree, made = await imported(sample(tmp_path, named), tmp_path / "s")
    assert (made.prompts, made.open_calls) == (400, 400)
    assert verify_session(tree.files, Owner("new", "a", ())).findings == ()


async def test_an_import_that_is_cut_off_leaves_no_session_and_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    transcript, folder = sample(tmp_path), tmp_path / "s"
    tree = SessionTree(folder, "new", agent="a", namespace=())
    with monkeypatch.context() as broken:
        broken.setattr(tree_module, "settle", killed)
        broken.setattr(disk, "remove_tree", lambda _: None)  # as if the process had ended at that moment
        with pytest.raises(KeyboardInterrupt):
            await import_transcript(transcript, tree)
    assert not tree.files.ledger.exists()
    assert [path.name for path in folder.glob("*/*.log.jsonl")] == ["new.log.jsonl"]

    fresh, made = await imported(transcript, folder)
    assert (made.messages, len(fresh.messages())) == (7, 3)
    assert verify_session(fresh.files, Owner("new", "a", ())).ok


async def test_a_session_without_a_message_is_not_imported_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text('{"type":"session","version":3,"id":"s","timestamp":"2026-03-02T09:00:00.000Z","cwd":"/srv"}\n')
    tree = SessionTree(tmp_path / "s", "new", agent="a", namespace=())
    with pytest.raises(TranscriptRefused, match=r"'s' in empty.jsonl has no message to import") as refused:
        await import_transcript(read(path), tree)
    assert refused.value.code == "no_transcript"
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["new.lock"]


async def test_an_import_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken(done: int, of: int) -> None:
        raise OSError("no")

    lines = [said(number, "again") for number in range(1, 600)]
    tree = SessionTree(tmp_path / "s", "new", agent="a", namespace=())
    with pytest.raises(OSError, match="no"):
        await import_transcript(sample(tmp_path, lines), tree, broken)
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["new.lock"]
