"""Databases that other programs own: read with their log, never written, no file left beside them."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from harness.errors import TranscriptRefused
from harness.transcripts import candidates, read
from harness.transcripts.database import query, read_database


def make(path: Path) -> sqlite3.Connection:
    """A database of opencode whose newest rows are in its log only."""
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma wal_autocheckpoint=0")
    connection.executescript(
        "create table session(id text, title text, directory text, time_created integer, time_updated integer);"
        "create table message(id text, session_id text, data text);"
        "create table part(id text, message_id text, session_id text, data text);"
        "create table account(id text, secret text); insert into account values('a', 'sk-secret');"
        "insert into session values('s1', 'First', '/srv', 1796061672684, 1796061692519);"
    )
    say(connection, "s1", 1, "hello")
    return connection


def say(connection: sqlite3.Connection, session: str, number: int, text: str) -> None:
    info = json.dumps({"role": "user", "time": {"created": 1796061672684 + number}})
    connection.execute("insert into message values(?, ?, ?)", (f"m{number}", session, info))
    part = json.dumps({"type": "text", "text": text})
    connection.execute("insert into part values(?, ?, ?, ?)", (f"p{number}", f"m{number}", session, part))
    connection.commit()


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


def test_rows_that_only_the_log_has_are_read_while_the_program_runs(tmp_path: Path) -> None:
    writer = make(tmp_path / "opencode.db")
    before = files(tmp_path)

    assert [turn.text for turn in read(tmp_path / "opencode.db").turns] == ["hello"]
    say(writer, "s1", 2, "again")
    assert [turn.text for turn in read(tmp_path / "opencode.db").turns] == ["hello", "again"]

    assert before["opencode.db"] == files(tmp_path)["opencode.db"]
    writer.close()


def test_what_a_running_program_commits_between_two_queries_is_not_seen_by_the_second(tmp_path: Path) -> None:
    writer = make(tmp_path / "opencode.db")

    def counted(connection: sqlite3.Connection) -> list[int]:
        before = len(query(connection, "select id from message"))
        say(writer, "s1", before + 1, "meanwhile")
        return [before, len(query(connection, "select id from message")), len(query(connection, "select id from part"))]

    assert read_database(tmp_path / "opencode.db", counted) == [1, 1, 1]
    assert read_database(tmp_path / "opencode.db", counted) == [2, 2, 2]
    writer.close()


def test_a_log_that_a_crash_left_is_read_and_nothing_appears_beside_it(tmp_path: Path) -> None:
    live, left = tmp_path / "live", tmp_path / "left"
    live.mkdir()
    left.mkdir()
    writer = make(live / "opencode.db")
    say(writer, "s1", 2, "not lost")
    for name in ("opencode.db", "opencode.db-wal"):
        shutil.copy(live / name, left / name)
    writer.close()
    before = files(left)

    texts = [turn.text for turn in read(left / "opencode.db").turns]

    assert texts == ["hello", "not lost"]
    assert {path.name for path in left.iterdir()} == {"opencode.db", "opencode.db-wal"}
    assert files(left) == before


def test_a_torn_end_of_a_log_costs_its_transaction_only(tmp_path: Path) -> None:
    live, left = tmp_path / "live", tmp_path / "left"
    live.mkdir()
    left.mkdir()
    writer = make(live / "opencode.db")
    size = (live / "opencode.db-wal").stat().st_size
    say(writer, "s1", 2, "torn")
    shutil.copy(live / "opencode.db", left / "opencode.db")
    (left / "opencode.db-wal").write_bytes((live / "opencode.db-wal").read_bytes()[: size + 5000])
    writer.close()

    assert [turn.text for turn in read(left / "opencode.db").turns] == ["hello"]


def test_a_database_at_rest_is_read_without_a_file_appearing(tmp_path: Path) -> None:
    make(tmp_path / "opencode.db").close()

    assert [turn.text for turn in read(tmp_path / "opencode.db").turns] == ["hello"]
    assert [path.name for path in tmp_path.iterdir()] == ["opencode.db"]


def test_credentials_are_never_among_what_is_given(tmp_path: Path) -> None:
    make(tmp_path / "opencode.db").close()

    transcript = read(tmp_path / "opencode.db", cap=1000)

    assert "sk-secret" not in json.dumps(transcript.to_dict())
    assert "sk-secret" not in str(candidates(tmp_path / "opencode.db"))


def test_several_sessions_and_no_id_is_an_error_that_lists_them(tmp_path: Path) -> None:
    writer = make(tmp_path / "opencode.db")
    writer.execute("insert into session values('s2', 'Second', '/srv', 1796061672685, 1796061692520)")
    writer.commit()
    writer.close()

    with pytest.raises(TranscriptRefused, match=r"holds 2 sessions(.|\n)*s2.*Second") as refused:
        read(tmp_path / "opencode.db")
    assert [one.session_id for one in refused.value.candidates] == ["s1", "s2"]


def test_a_damaged_database_is_refused_by_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    make(path).close()
    path.write_bytes(path.read_bytes()[:4096] + b"\0" * 8192)

    with pytest.raises(TranscriptRefused) as refused:
        read(path)
    assert refused.value.code in ("unreadable", "unknown_format")


def test_a_database_that_a_crash_left_in_the_middle_of_a_change_says_what_to_do(tmp_path: Path) -> None:
    writer = make(tmp_path / "opencode.db")
    writer.execute("pragma wal_checkpoint(truncate)")
    writer.execute("pragma journal_mode=delete")
    writer.execute("pragma cache_size=1")
    for number in range(2, 600):
        writer.execute("insert into message values(?, 's1', ?)", (f"m{number}", "x" * 200))
    (tmp_path / "left").mkdir()
    for name in ("opencode.db", "opencode.db-journal"):
        shutil.copy(tmp_path / name, tmp_path / "left" / name)
    writer.rollback()
    writer.close()
    raw = bytearray((tmp_path / "left/opencode.db").read_bytes())
    raw[4096:] = b"\0" * (len(raw) - 4096)
    (tmp_path / "left/opencode.db").write_bytes(raw)

    with pytest.raises(TranscriptRefused, match=r"in the middle of a change.*open it with its program once"):
        read(tmp_path / "left/opencode.db")
