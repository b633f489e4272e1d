"""Databases with a rollback journal: what is read is what was committed, and nothing is changed."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import TranscriptRefused
from harness.transcripts import candidates, read, standing
from harness.transcripts.database import first_column, read_database
from harness.transcripts.journal import HEAD, hot_head, rolled_back
from harness.transcripts.standing import database_marks

_AT = 1796061672


def hermes(path: Path, count: int = 50) -> sqlite3.Connection:
    """A database with a session of so many messages, in journal mode; it stays open, and keeps few pages in memory."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "create table sessions(id text primary key, started_at real, title text);"
        "create table messages(id integer primary key autoincrement, session_id text, role text, content text,"
        " tool_calls text, timestamp real);"
        f"insert into sessions values('s1', {_AT}, 'T');"
    )
    say(connection, "kept", count)
    connection.execute("pragma cache_size=5")
    return connection


def say(connection: sqlite3.Connection, word: str, count: int) -> None:
    rows = [("s1", "user", f"{word} {number} " + "x" * 2000, _AT + number) for number in range(count)]
    sql = "insert into messages(session_id, role, content, timestamp) values(?, ?, ?, ?)"
    if connection.in_transaction:
        connection.executemany(sql, rows)
        return
    connection.execute("begin")
    connection.executemany(sql, rows)
    connection.execute("commit")


def spill(connection: sqlite3.Connection) -> None:
    """A change that is not committed, and of which most stands in the file already."""
    connection.execute("begin")
    connection.execute("delete from messages where id <= 40")
    say(connection, "never", 200)


def taken(folder: Path, name: str) -> Path:
    """The files of a folder as a crash would leave them now."""
    left = folder.parent / name
    shutil.copytree(folder, left)
    return left / "state.db"


def words(path: Path) -> list[str]:
    return [turn.text.split()[0] for turn in read(path, "s1").turns]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def live(tmp_path: Path) -> Path:
    (tmp_path / "live").mkdir()
    return tmp_path / "live" / "state.db"


def test_a_change_that_a_crash_left_is_taken_back_in_memory_alone(live: Path) -> None:
    writer = hermes(live)
    spill(writer)
    path = taken(live.parent, "left")
    writer.rollback()
    writer.close()
    before = files(path.parent)
    assert set(before) == {"state.db", "state.db-journal"}

    assert words(path) == ["kept"] * 50
    assert [one.session_id for one in candidates(path)] == ["s1"]

    assert files(path.parent) == before


def test_while_a_change_is_written_what_was_committed_is_read(live: Path) -> None:
    writer = hermes(live)
    spill(writer)
    assert words(live) == ["kept"] * 50
    say(writer, "never", 100)
    assert words(live) == ["kept"] * 50
    writer.execute("commit")
    assert words(live) == ["kept"] * 10 + ["never"] * 300
    writer.close()


def test_what_was_taken_back_is_what_sqlite_takes_back(live: Path) -> None:
    for size in (512, 1024, 65536):
        live.unlink(missing_ok=True)
        first = sqlite3.connect(live)
        first.execute(f"pragma page_size={size}")
        first.execute("vacuum")
        first.close()
        writer = hermes(live)
        spill(writer)
        left = taken(live.parent, f"left-{size}")
        writer.rollback()
        writer.close()
        mine = standing.copied(left)
        other = sqlite3.connect(left)
        rows = other.execute("select * from messages").fetchall()
        other.close()
        assert len(rows) == 50
        assert mine == left.read_bytes()


@pytest.mark.parametrize("mode", ["persist", "truncate"])
def test_a_journal_at_rest_is_no_change(live: Path, mode: str) -> None:
    writer = hermes(live)
    writer.execute(f"pragma journal_mode={mode}")
    say(writer, "more", 1)
    assert live.with_name("state.db-journal").exists()
    assert words(live) == ["kept"] * 50 + ["more"]
    assert database_marks(live).change == b""
    writer.close()


def test_a_journal_that_is_no_journal_changes_nothing(live: Path) -> None:
    hermes(live).close()
    image = live.read_bytes()
    for junk in (b"x", b"x" * 4096, bytes(4096)):
        live.with_name("state.db-journal").write_bytes(junk)
        assert words(live) == ["kept"] * 50
        assert rolled_back(image, junk, standing.MAX_MERGED) == image


def test_a_torn_end_of_a_journal_and_one_that_claims_too_much_raise_nothing(live: Path) -> None:
    writer = hermes(live)
    spill(writer)
    left = taken(live.parent, "left")
    writer.rollback()
    writer.close()
    image, journal = left.read_bytes(), left.with_name("state.db-journal").read_bytes()
    for end in range(0, len(journal), 509):
        assert rolled_back(image, journal[:end], standing.MAX_MERGED) is not None
    short = rolled_back(image[:8192], journal, standing.MAX_MERGED)
    assert short is not None
    assert len(short) == int.from_bytes(journal[16:20], "big") * 4096
    head = bytearray(journal)
    head[16:20] = b"\xff" * 4
    assert rolled_back(image, bytes(head), standing.MAX_MERGED) is None
    head[24:28] = b"\0" * 4
    assert hot_head(bytes(head[:HEAD])) == b""


def test_a_change_of_several_databases_is_refused_with_what_to_do(live: Path) -> None:
    writer = hermes(live)
    spill(writer)
    left = taken(live.parent, "left")
    writer.rollback()
    writer.close()
    other = left.with_name("precious")
    other.write_bytes(b"mine")
    name = bytes(other)
    end = name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    with left.with_name("state.db-journal").open("ab") as journal:
        journal.write(b"\xff\xff\xff\xff" + end)

    with pytest.raises(TranscriptRefused, match="open it with its program once"):
        read(left, "s1")
    assert other.read_bytes() == b"mine"


def test_an_unfinished_change_of_a_database_too_large_for_the_memory_is_refused(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = hermes(live)
    spill(writer)
    monkeypatch.setattr(standing, "MAX_MERGED", 1000)
    with pytest.raises(
        TranscriptRefused, match=r"a change is not finished.*more than the 1,000.*open it with"
    ) as refused:
        read(live, "s1")
    assert refused.value.code == "unreadable"
    writer.rollback()
    writer.close()


def rewriting(path: Path, times: int) -> tuple[Callable[[sqlite3.Connection], tuple[str, str]], list[int]]:
    """A look at the first and the last message, between which another program writes both anew, so many times."""
    calls = [0]

    def look(connection: sqlite3.Connection) -> tuple[str, str]:
        calls[0] += 1
        sql = "select content from messages where id = ?"
        first = first_column(connection, sql, 1)[0]
        if calls[0] <= times:
            writer = sqlite3.connect(path)
            # No other size, and no other time: as two changes within one tick of the clock.
            found = path.stat()
            writer.execute("update messages set content = ? || substr(content, 5)", (f"gen{calls[0]}",))
            writer.commit()
            writer.close()
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        return str(first)[:4], str(first_column(connection, sql, 50)[0])[:4]

    return look, calls


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_is_read_is_of_one_moment(live: Path, times: int) -> None:
    hermes(live).close()
    look, calls = rewriting(live, times)
    assert read_database(live, look) == (f"gen{times}",) * 2
    assert calls == [times + 1]


def test_a_database_that_never_keeps_still_is_read_from_a_copy(live: Path) -> None:
    hermes(live).close()
    look, calls = rewriting(live, 10)
    assert read_database(live, look) == ("gen3", "gen3")
    assert calls == [4]


def test_a_database_that_changes_while_it_is_copied_is_refused_as_busy(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hermes(live).close()
    look, _ = rewriting(live, 10)
    monkeypatch.setattr(standing, "MAX_MERGED", 1000)
    with pytest.raises(TranscriptRefused, match=r"is being written all the time.*read it again in a moment"):
        read_database(live, look)


def test_a_database_whose_log_went_away_has_another_format(live: Path) -> None:
    writer = hermes(live)
    writer.execute("pragma journal_mode=wal")
    writer.execute("pragma wal_autocheckpoint=0")
    writer.execute("drop table messages")
    left = taken(live.parent, "left")
    left.with_name("state.db-shm").unlink()
    with pytest.raises(TranscriptRefused, match="is no transcript"):
        candidates(left)
    left.with_name("state.db-wal").unlink()
    assert words(left) == ["kept"] * 50
    writer.close()


def test_a_database_that_had_its_tables_in_the_log_alone_is_refused_when_that_is_gone(live: Path) -> None:
    empty = sqlite3.connect(live)
    empty.executescript("create table other(id); pragma journal_mode=wal; pragma wal_autocheckpoint=0;")
    writer = hermes(live, 1)
    left = taken(live.parent, "left")
    writer.close()
    empty.close()
    left.with_name("state.db-shm").unlink()
    assert words(left) == ["kept"]
    left.with_name("state.db-wal").unlink()
    for look in (candidates, read):
        with pytest.raises(TranscriptRefused, match="is no transcript of a format"):
            look(left)
