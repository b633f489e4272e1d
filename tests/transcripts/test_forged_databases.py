"""Databases that somebody made to be endless: they give no more than their files can hold, or are refused."""

import os
import sqlite3
import struct
from pathlib import Path

import pytest

from harness.errors import TranscriptRefused
from harness.transcripts import candidates, read
from harness.transcripts.database import first_column, query, read_database
from harness.transcripts.wal import merged

_ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
_MESSAGES = (
    "CREATE TABLE message(id TEXT, session_id TEXT, data TEXT); CREATE TABLE part(id, message_id, session_id, data)"
)
_PAGE = 4096


def made(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(f"{_MESSAGES};" + ";".join(statements))
    connection.close()
    return path


def healthy(path: Path) -> Path:
    table = "CREATE TABLE session(id TEXT, title TEXT, directory TEXT, time_created INT, time_updated INT)"
    return made(path, table, "INSERT INTO session VALUES ('ses_1', 'One', '/w', 1, 1)")


def summed(data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    for first, second in struct.iter_unpack(">2I", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def log_of(page_size: int, number: int, page: bytes) -> bytes:
    """A log with one committed frame, whose sums are right."""
    head = struct.pack(">6I", 0x377F0683, 3007000, page_size, 0, 1, 2)
    sums = summed(head, (0, 0))
    frame = struct.pack(">2I", number, 1)
    last = summed(frame + page, sums) if len(page) % 8 == 0 else (0, 0)
    return head + struct.pack(">2I", *sums) + frame + struct.pack(">4I", 1, 2, *last) + page


def test_a_view_in_the_place_of_a_table_is_not_looked_into(tmp_path: Path) -> None:
    columns = "'t' title, '/w' directory, 1 time_created, 1 time_updated"
    path = made(tmp_path / "a.db", f"CREATE VIEW session AS {_ENDLESS} SELECT 'ses_' || x id, {columns} FROM c")

    with pytest.raises(TranscriptRefused) as refusal:
        candidates(path)

    assert refusal.value.code == "unknown_format"


def test_a_query_without_an_end_is_broken_off(tmp_path: Path) -> None:
    path = healthy(tmp_path / "a.db")
    with pytest.raises(TranscriptRefused, match="interrupted"):
        read_database(path, lambda found: first_column(found, f"{_ENDLESS} SELECT count(*) FROM c"))


def test_rows_that_say_more_than_the_file_holds_are_refused(tmp_path: Path) -> None:
    path = healthy(tmp_path / "a.db")
    sql = f"{_ENDLESS} SELECT hex(zeroblob(100000)) title FROM c"
    for rows in (query, first_column):
        with pytest.raises(TranscriptRefused, match="more than the file has bytes"):
            read_database(path, lambda found, rows=rows: rows(found, sql))
    with pytest.raises(TranscriptRefused, match="too big"):
        read_database(path, lambda found: first_column(found, "SELECT hex(zeroblob(200000000))"))


@pytest.mark.parametrize(
    ("page_size", "number", "page"),
    [(3, 1, b"abc"), (1024 * 1024, 1, bytes(1024 * 1024)), (_PAGE, 2**32 - 1, bytes(_PAGE)), (_PAGE, 0, bytes(_PAGE))],
)
def test_a_log_whose_pages_no_database_has_changes_nothing(
    tmp_path: Path, page_size: int, number: int, page: bytes
) -> None:
    path = healthy(tmp_path / "a.db")
    (tmp_path / "a.db-wal").write_bytes(log_of(page_size, number, page))

    assert [one.session_id for one in candidates(path)] == ["ses_1"]
    assert read(path).session_id == "ses_1"


def test_a_page_of_a_log_is_put_in_its_place() -> None:
    image = merged(bytes(2 * _PAGE), log_of(_PAGE, 2, b"x" * _PAGE), 2 * _PAGE)
    assert (image[18:20], image[_PAGE:]) == (b"\x01\x01", b"x" * _PAGE)
    assert merged(bytes(_PAGE), log_of(_PAGE, 2, b"x" * _PAGE), 2 * _PAGE - 1)[20:] == bytes(_PAGE - 20)


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_that_is_no_file_refuses_the_database(tmp_path: Path, suffix: str) -> None:
    path = healthy(tmp_path / "a.db")
    (tmp_path / "other").write_bytes(b"x" * 100)
    (tmp_path / f"a.db{suffix}").symlink_to(tmp_path / "other")
    with pytest.raises(TranscriptRefused):
        candidates(path)
    (tmp_path / f"a.db{suffix}").unlink()
    os.mkfifo(tmp_path / f"a.db{suffix}")
    with pytest.raises(TranscriptRefused):
        candidates(path)


def test_a_database_of_more_bytes_than_a_c_int_counts_is_read(tmp_path: Path) -> None:
    path = healthy(tmp_path / "a.db")
    os.truncate(path, 2**31)  # a hole: it takes no room on the disk
    assert [found.title for found in candidates(path)] == ["One"]
