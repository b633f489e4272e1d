"""Whatever stands in a folder: it costs itself, and never the sessions beside it."""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import HarnessError, TranscriptRefused
from harness.transcripts import candidates, join, page, read, stitched, summary
from harness.transcripts.formats.claude import ClaudeReader
from harness.transcripts.listing import listing


def line(text: str = "hello", **more: object) -> bytes:
    message = {"role": "user", "content": text}
    told = {"type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-01-01T00:00:00.000Z", **more}
    return json.dumps({**told, "message": message}).encode() + b"\n"


def answer(**usage: int) -> bytes:
    content = [{"type": "text", "text": "yes"}]
    key = f"m{usage['output_tokens']}-{usage['input_tokens']}"
    message = {"id": key, "role": "assistant", "model": "claude-x", "content": content, "usage": usage}
    told = {"type": "assistant", "uuid": key, "sessionId": "s1", "timestamp": "2026-01-01T00:00:01.000Z"}
    return json.dumps({**told, "message": message}).encode() + b"\n"


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe.jsonl")


def link_to_a_device(folder: Path) -> None:
    (folder / "zero.jsonl").symlink_to("/dev/zero")


def manifest_that_is_a_pipe(folder: Path) -> None:
    (folder / "meta").mkdir()
    os.mkfifo(folder / "meta/manifest.json")


def odd_key(folder: Path) -> None:
    (folder / "template.json").write_text('{{"a": 1}: 2, ')


def file_beside(folder: Path) -> None:
    (folder / "ok").write_text("notes")


STRAYS = [pipe, link_to_a_device, manifest_that_is_a_pipe, odd_key, file_beside]


@pytest.mark.parametrize("put", STRAYS)
def test_a_stray_file_takes_no_session_away(tmp_path: Path, put: Callable[[Path], None]) -> None:
    (tmp_path / "ok.jsonl").write_bytes(line())
    put(tmp_path)

    assert [one.session_id for one in candidates(tmp_path)] == ["ok"]
    assert summary(tmp_path / "ok.jsonl").stats["prompts"] == 1


def test_what_a_reader_raises_refuses_the_file_alone_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "ok.jsonl").write_bytes(line())
    (tmp_path / "odd.jsonl").write_bytes(line("boom"))
    known = ClaudeReader.record

    def failing(self: ClaudeReader, record: dict[str, object]) -> None:
        if "boom" in json.dumps(record):
            raise KeyError("boom")
        known(self, record)

    monkeypatch.setattr(ClaudeReader, "record", failing)

    with caplog.at_level(logging.WARNING, logger="harness.transcripts"):
        assert [one.session_id for one in candidates(tmp_path)] == ["ok"]
    assert "odd.jsonl: KeyError: 'boom'" in caplog.text
    for reading in (read, page, summary, candidates):
        with pytest.raises(TranscriptRefused, match=r"odd.jsonl cannot be read: KeyError") as refusal:
            reading(tmp_path / "odd.jsonl")
        assert refusal.value.code == "unreadable"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(HarnessError, match=r"pipe.jsonl"):
        read(tmp_path / "pipe.jsonl")


def test_no_link_is_followed_to_a_session_or_a_part_of_one(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret.jsonl").write_bytes(line("secret"))
    shard = {
        "timestamp": "2026-01-01T00:00:00Z",
        "type": "session_meta",
        "payload": {"session_id": "p", "model_id": "m"},
    }
    said = {"timestamp": "2026-01-01T00:00:00Z", "type": "model_msg"}
    for folder, name, text in ((inside, "p_000.jsonl", "open"), (outside, "p_001.jsonl", "secret")):
        talk = {**said, "payload": {"type": "text", "role": "user", "text": text}}
        (folder / name).write_bytes(json.dumps(shard).encode() + b"\n" + json.dumps(talk).encode() + b"\n")
    (inside / "p_001.jsonl").symlink_to(outside / "p_001.jsonl")
    (inside / "linked.jsonl").symlink_to(outside / "secret.jsonl")
    (inside / "ok.jsonl").write_bytes(line("open"))
    (outside / "subagents").mkdir()
    (outside / "subagents/agent-a.jsonl").write_bytes(line("secret"))
    (inside / "ok").symlink_to(outside)

    assert sorted(one.path.name for one in candidates(inside)) == ["ok.jsonl", "p_000.jsonl"]
    assert [turn.text for turn in read(inside / "p_000.jsonl").turns] == ["open"]
    assert read(inside / "ok.jsonl").head.subagents == ()


def test_a_link_that_a_person_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_bytes(line())
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "session.jsonl")
    assert [turn.text for turn in read(tmp_path / "link.jsonl").turns] == ["hello"]


def test_a_name_that_is_no_utf8_is_shown_escaped_and_can_be_opened(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/\xff\xfe.jsonl"
    try:
        Path(os.fsdecode(raw)).write_bytes(line())
    except OSError:
        pytest.skip("this file system takes no such names")

    [found] = candidates(tmp_path)
    told = read(found.path, found.session_id, cap=100).to_dict()

    assert (found.session_id, found.to_dict()["path"]) == (r"\xff\xfe", rf"{tmp_path}/\xff\xfe.jsonl")
    assert (told["sessionId"], told["source"]) == (r"\xff\xfe", rf"{tmp_path}/\xff\xfe.jsonl")


def test_of_too_many_files_the_newest_are_listed_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.transcripts.listing._MAX_FILES", 2)
    for age, name in enumerate(("d", "a", "c", "b")):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(line())
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))

    found = listing(tmp_path)

    assert (sorted(one.session_id for one in found.sessions), found.left_out) == (["a", "d"], 2)
    assert found.note == "2 older files were not looked at, only the newest 2; name a folder with fewer"
    assert listing(tmp_path / "a.jsonl").note is None


def test_a_file_that_became_one_of_another_format_is_seen_as_that(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("x" * 200))
    size = path.stat().st_size
    assert read(path).format == "claude"

    head = b'{"type":"session","harness":"x","id":"q"}\n{"type":"message","message":{"role":"user","content":"'
    path.write_bytes(head + b"z" * (size - len(head) - 4) + b'"}}\n')
    os.utime(path, (1_700_000_000, 1_700_000_000))

    assert (path.stat().st_size, read(path).format) == (size, "sts")


def test_sums_of_numbers_stay_within_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    path.write_bytes(line() + b"".join(answer(input_tokens=n, output_tokens=2**63) for n in range(3)))

    assert summary(path).stats["tok_out"] == 3 * (2**53 - 1)


def test_a_medium_whose_size_is_no_number_is_shown_without(tmp_path: Path) -> None:
    media = {"sha256": "/etc/passwd", "bytes": "z"}
    turn = {"role": "user", "content": [{"type": "image", "media": media}]}
    lines = [
        {"type": "transcript", "version": 1, "sessionId": "b", "format": "y"},
        {"type": "turn", "kind": "prompt", "key": "k", "message": turn},
    ]
    path = tmp_path / "b.jsonl"
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in lines))

    [shown] = stitched(read(path).turns)

    assert shown["content"][0]["media"] == {"sha256": "/etc/passwd", "ref": f"{shown['key']}.0"}


@pytest.mark.parametrize("where", ["before", "after", "around"])
@pytest.mark.parametrize("digits", [18, 400, 5000])
def test_a_cursor_of_many_digits_leads_to_a_page_or_is_refused(tmp_path: Path, where: str, digits: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line())
    kind = "a" if where == "after" else "b"
    if digits > 18:
        with pytest.raises(HarnessError, match="is no"):
            page(path, where=where, cursor=kind + "9" * digits)  # type: ignore[arg-type]
    else:
        assert page(path, where=where, cursor=kind + "9" * digits).end == path.stat().st_size  # type: ignore[arg-type]


def test_blank_lines_are_counted_and_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("one") + b"\n" * 300_000 + line("two"))

    assert [(turn.text, turn.line) for turn in read(path).turns] == [("one", 1), ("two", 300_002)]
    pages = [page(path)]
    while (cursor := pages[0].before) is not None:
        pages.insert(0, page(path, where="before", cursor=cursor, window=1024 * 1024))
    assert [turn.text for turn in join(pages)] == ["one", "two"]
    assert sum(one.lines for one in pages) == 300_002


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_in_two_bytes_a_sign_is_told_from_damage(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes((line() * 3).decode().encode(encoding))

    with pytest.raises(TranscriptRefused, match="not UTF-8 but UTF-16") as refused:
        read(path)
    assert refused.value.code == "not_utf8"
