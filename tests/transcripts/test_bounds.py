"""What keeps a long session from costing memory or the event loop: limits that are said, and rows read when shown."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TranscriptRefused
from harness.transcripts import database, document, join, page, read, rows, standing, summary, turns, windows
from harness.transcripts import reader as reading
from harness.transcripts.opening import open_session


def session(path: Path, prompts: int) -> Path:
    lines = (
        {"type": "user", "uuid": f"u{n}", "sessionId": "s", "message": {"content": f"q{n}"}} for n in range(prompts)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def opencode(path: Path, messages: int) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(
        "create table session(id text, title text, directory text, time_created integer, time_updated integer);"
        "create table message(id text, session_id text, data text);"
        "create table part(id text, message_id text, session_id text, data text);"
        "insert into session values('s1', 'First', '/srv', 1796061672684, 1796061692519);"
    )
    info = json.dumps({"role": "user", "time": {"created": 1796061672684}})
    for number in range(messages):
        connection.execute("insert into message values(?, 's1', ?)", (f"m{number:05}", info))
        part = json.dumps({"type": "text", "text": f"say {number}"})
        connection.execute("insert into part values(?, ?, 's1', ?)", (f"p{number:05}", f"m{number:05}", part))
    connection.commit()
    connection.close()
    return path


def hermes(path: Path, messages: int) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(
        "create table sessions(id text, started_at real, title text);"
        "create table messages(id integer primary key, session_id text, role text, content text, tool_calls text,"
        " timestamp real, active integer);"
        "insert into sessions values('s1', 1796061672.5, 'First');"
    )
    sql = "insert into messages values(?, 's1', 'user', ?, null, 1796061672.5, 1)"
    connection.executemany(sql, [(number + 1, f"say {number}") for number in range(messages)])
    connection.commit()
    connection.close()
    return path


def gemini(path: Path, messages: int) -> Path:
    said = [
        {"id": f"m{number}", "type": "user", "timestamp": "2026-11-30T10:00:00.000Z", "content": f"say {number}"}
        for number in range(messages)
    ]
    lines: list[dict[str, Any]] = [
        {"sessionId": "s1", "projectHash": "p", "kind": "main"},
        {"$set": {"messages": said[:9]}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *said[9:]]))
    return path


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of records that are read each time a source is asked for some."""
    read: list[int] = []
    begin = rows.RowSource.__init__

    def counted(self: rows.RowSource, fetch: rows.ReadRows, names: Any) -> None:
        def noted(first: int, stop: int) -> Any:
            read.append(stop - first)
            return fetch(first, stop)

        begin(self, noted, names)

    monkeypatch.setattr(rows.RowSource, "__init__", counted)
    return read


@pytest.mark.parametrize("make", [opencode, hermes, gemini])
def test_of_a_long_session_of_rows_only_those_of_the_window_are_read(
    make: Callable[[Path, int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_rows = count_reads(monkeypatch)
    path = make(tmp_path / "session.db", 1000)

    shown = page(path, window=40 * 1024)

    assert [turn.text for turn in shown.turns] == [f"say {n}" for n in range(990, 1000)]
    # Those that are shown, the first ones, which tell how the others are to be read, and for a file's own name
    # and title those of a listing: its head and its tail.
    assert sum(read_rows) <= 250


@pytest.mark.parametrize("make", [opencode, hermes, gemini])
def test_the_pages_of_a_long_session_of_rows_are_all_of_it(make: Callable[[Path, int], Path], tmp_path: Path) -> None:
    path = make(tmp_path / "session.db", 300)
    pages = [page(path, where="head", window=100 * 1024)]
    while not pages[-1].at_end:
        pages.append(page(path, where="after", cursor=pages[-1].after, window=100 * 1024))

    assert len(pages) > 10
    assert join(pages) == read(path, cap=20_000).turns
    assert summary(path).stats["prompts"] == 300


def test_a_row_that_went_while_its_session_was_open_is_left_out(tmp_path: Path) -> None:
    path = opencode(tmp_path / "opencode.db", 3)
    source = open_session(path).opened.source
    connection = sqlite3.connect(path)
    for change in ("delete from message where id = 'm00001'", "update message set id = 'other' where id = 'm00001'"):
        connection.execute(change)
        connection.commit()
        assert [(line.number, line.offset) for line in source.lines()] == [(1, 0), (3, 8192)]
        connection.execute("insert or ignore into message(rowid, id, session_id, data) values(2, 'm00001', 's1', '{}')")
    connection.close()


def test_a_database_whose_log_a_crash_left_is_refused_where_it_is_too_large_for_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = opencode(tmp_path / "opencode.db", 1)
    (tmp_path / "opencode.db-wal").write_bytes(b"\0" * 64)
    monkeypatch.setattr(standing, "MAX_MERGED", 1000)

    with pytest.raises(TranscriptRefused, match=r"a crash left a log beside it.*more than the 1,000") as refused:
        database.read_database(path, lambda connection: None)
    assert refused.value.code == "unreadable"


def test_a_document_too_large_for_the_memory_is_refused_by_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "MAX_DOCUMENT", 100)
    path = tmp_path / "export.json"
    path.write_text(json.dumps({"info": {"id": "s"}, "messages": []}, indent=40))

    with pytest.raises(TranscriptRefused, match="one JSON document of 241 bytes; at most 100 are read") as refused:
        read(path)
    assert refused.value.code == "unreadable"


def test_of_more_turns_than_are_kept_the_newest_are_and_the_others_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_TURNS", 20)
    path = session(tmp_path / "s.jsonl", 50)

    shown = read(path, cap=100)

    assert [turn.text for turn in shown.turns] == [f"q{n}" for n in range(30, 50)]
    assert (shown.truncated, shown.to_dict()["truncated"]) == (30, 30)
    assert (shown.stats()["prompts"], len(shown.head.prompts), shown.head.title) == (50, 50, "q0")
    assert [w.text for w in shown.warnings if w.kind == "truncated"] == [
        "the 30 oldest of 50 turns were left out; they are in the pages of the session"
    ]
    assert len(read(path).turns) == 50
    assert turns.MAX_TURNS == 20_000


def test_a_page_has_no_more_turns_than_are_kept_and_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MAX_TURNS", 60)
    path = session(tmp_path / "s.jsonl", 300)

    newest = page(path, window=1024 * 1024)
    pages = [page(path, where="head", window=1024 * 1024)]
    while not pages[-1].at_end:
        pages.append(page(path, where="after", cursor=pages[-1].after, window=1024 * 1024))

    assert 2 <= len(newest.turns) <= 60
    assert newest.turns[-1].text == "q299"
    assert max(len(one.turns) for one in pages) <= 60
    assert join(pages) == read(path).turns
