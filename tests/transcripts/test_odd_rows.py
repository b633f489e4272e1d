"""Rows of databases whose cells are of another type than they should be: all that can be read is, the rest is told."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TranscriptRefused
from harness.transcripts import candidates, database, page, read, summary

_AT = 1796061672
_NO_UTF8 = b"s\xff1"


def hermes(
    path: Path, sessions: Iterable[tuple[Any, ...]], messages: Iterable[tuple[Any, ...]], kind: str = ""
) -> Path:
    """A database whose columns have a type, or none: then what is put into them stays of its own."""
    connection = sqlite3.connect(path)
    connection.execute(f"create table sessions(id {kind}, started_at, title)")
    connection.execute(f"create table messages(id {kind}, session_id {kind}, role, content, tool_calls, timestamp)")
    connection.executemany("insert into sessions values(?, ?, ?)", sessions)
    connection.executemany(f"insert into messages values(?, ?, ?, ?, ?, {_AT})", messages)
    connection.commit()
    connection.close()
    return path


def opencode(path: Path, key: str = "text") -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.executescript(
        f"create table session(id {key}, parent_id {key}, title, directory, time_created);"
        f"create table message(id {key}, session_id {key}, data);"
        f"create table part(id {key}, message_id {key}, session_id {key}, data);"
    )
    return connection


def say(connection: sqlite3.Connection, session: object, message: object, *texts: str, info: object = None) -> None:
    told = json.dumps({"role": "user", "time": {"created": _AT * 1000}}) if info is None else info
    connection.execute("insert into message values(?, ?, ?)", (message, session, told))
    for number, text in enumerate(texts):
        part = json.dumps({"type": "text", "text": text})
        connection.execute("insert into part values(?, ?, ?, ?)", (f"p{message!r}{number}", message, session, part))


def texts(path: Path, session: str | None = None) -> list[str]:
    return [turn.text for turn in read(path, session).turns]


def bad_rows(path: Path, session: str | None = None) -> list[tuple[int, str]]:
    return [(found.line, found.text) for found in read(path, session).warnings if found.kind == "bad_line"]


@pytest.mark.parametrize("odd", [5, 2.5, None, b"bytes", _NO_UTF8, "", "s\ufffd1"])
@pytest.mark.parametrize("make", ["hermes", "opencode"])
def test_a_session_whatever_its_id_is_can_be_opened_by_what_it_is_listed_as(
    make: str, odd: object, tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    if make == "hermes":
        hermes(
            path,
            [("s", _AT, "t"), (odd, _AT + 1, "u")],
            [(1, "s", "user", "plain", None), (2, odd, "user", "odd", None)],
        )
    else:
        connection = opencode(path, "")
        for session in ("s", odd):
            connection.execute("insert into session values(?, null, 't', '/w', ?)", (session, _AT * 1000))
            say(connection, session, f"m{session!r}", "plain" if session == "s" else "odd")
        connection.commit()
        connection.close()

    found = {one.session_id: texts(path, one.session_id) for one in candidates(path)}

    assert sorted(found.values()) == [["odd"], ["plain"]]
    assert "" not in found
    for name, said in found.items():
        assert [turn.text for turn in page(path, name).turns] == said
        assert summary(path, name).session_id == name


def test_text_that_is_no_utf8_is_an_id_as_well(tmp_path: Path) -> None:
    path = hermes(tmp_path / "a.db", [("x", _AT, "t")], [(1, "x", "user", "said", None)])
    connection = sqlite3.connect(path)
    connection.executescript(
        "update sessions set id = cast(x'73ff31' as text); update messages set session_id = cast(x'73ff31' as text);"
    )
    connection.close()
    assert texts(path, candidates(path)[0].session_id) == ["said"]


def test_sessions_of_one_id_are_listed_under_names_of_their_own(tmp_path: Path) -> None:
    ids = [b"s", "s", 5, "s", b"s\xff", b"s\xfe", "5"]
    path = hermes(tmp_path / "a.db", [(one, _AT, "t") for one in ids], [(1, "s", "user", "text", None)])

    names = [one.session_id for one in candidates(path)]

    assert sorted(names) == ["5", "5~row-3", "s", "s~row-1", "s~row-4", "s\ufffd", "s\ufffd~row-6"]
    assert [texts(path, name) for name in ("s", "s~row-4", "s~row-1")] == [["text"], ["text"], []]
    with pytest.raises(TranscriptRefused, match="holds no session 's~row-9'; name one of those it holds:\n"):
        read(path, "s~row-9")


def test_bytes_where_text_belongs_are_read_as_text(tmp_path: Path) -> None:
    calls = json.dumps([{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]).encode()
    rows = [(1, "s", "user", b"asked", None), (2, "s", b"assistant", b"answered", calls), (3, "s", "user", 12345, None)]
    path = hermes(tmp_path / "a.db", [("s", _AT, b"title")], rows)
    assert texts(path) == ["asked", "answered", "12345"]
    assert [call["name"] for call in read(path).turns[1].blocks if call["type"] == "toolUse"] == ["look"]
    assert (candidates(path)[0].title, bad_rows(path)) == ("title", [])


def test_what_cannot_be_read_of_a_row_is_told_with_table_and_row(tmp_path: Path) -> None:
    rows = [
        (None, "s", "user", "no id", None),
        (7, "s", "user", b"half \xff text", None),
        (8, "s", "assistant", "calls", '[{"id": "c'),
    ]
    path = hermes(tmp_path / "a.db", [("s", _AT, "t")], rows)
    assert texts(path) == ["no id", "half \ufffd text", "calls"]
    assert bad_rows(path) == [
        (1, "messages, row 1: it has no id, by which it would be put in order"),
        (2, "messages, row 2: its content is no UTF-8, and what is none was replaced"),
        (3, "messages, row 3: its tool_calls are no list in JSON"),
    ]
    assert summary(path).stats["bad_lines"] == 3
    assert len(page(path).warnings) == 3


def test_messages_of_one_id_are_all_read(tmp_path: Path) -> None:
    path = hermes(tmp_path / "a.db", [("s", _AT, "t")], [(1, "s", "user", word, None) for word in ("one", "two")])
    assert texts(path) == ["one", "two"]

    connection = opencode(tmp_path / "b.db")
    connection.execute("insert into session values('s', null, 't', '/w', 1)")
    say(connection, "s", "m1", "one", "two")
    say(connection, "s", "m1")
    say(connection, "s", "m2", "last")
    connection.commit()
    connection.close()
    assert texts(tmp_path / "b.db") == ["one\ntwo", "last"]


@pytest.mark.parametrize("data", ["{torn", None, "[1]", 5, b"\xff\xfe", "", '"text"', "NaN"])
def test_of_a_message_whose_row_says_nothing_the_parts_are_read(data: object, tmp_path: Path) -> None:
    connection = opencode(tmp_path / "a.db", "")
    connection.execute("insert into session values('s', null, 't', '/w', 1)")
    say(connection, "s", "m1", "first")
    say(connection, "s", "m2", "of somebody", info="")
    say(connection, "s", "m3", "of the model", info="")
    connection.execute("update message set data = ? where id <> 'm1'", (data,))
    connection.execute("insert into part values('p', 'm3', 's', ?)", (json.dumps({"type": "step-start"}),))
    connection.execute("insert into part values('q', 'm1', 's', ?)", (data,))
    connection.commit()
    connection.close()

    found = read(tmp_path / "a.db")

    told = [(turn.kind, turn.text) for turn in found.turns]
    assert ("context", "of somebody") in told
    assert ("answer", "of the model") in told
    assert any(kind == "prompt" and text.startswith("first") for kind, text in told)
    assert [(warning.kind, warning.line, warning.text) for warning in found.warnings] == [
        ("bad_line", 1, "part, row 5: its data is no object in JSON"),
        ("bad_line", 2, "message, row 2: its data is no object in JSON"),
        ("bad_line", 3, "message, row 3: its data is no object in JSON"),
    ]


@pytest.mark.parametrize("odd", [None, b"bytes", _NO_UTF8, 5, ""])
def test_a_message_whatever_its_id_is_has_its_parts(odd: object, tmp_path: Path) -> None:
    connection = opencode(tmp_path / "a.db", "")
    connection.execute("insert into session values('s', null, 't', '/w', 1)")
    connection.execute("insert into session values('other', null, 't', '/w', 1)")
    say(connection, "s", "m1", "first")
    say(connection, "s", odd, "odd")
    say(connection, "other", None, "of another session")
    connection.commit()
    connection.close()

    assert sorted(texts(tmp_path / "a.db", "s")) == ["first", "odd"]
    wrong = [(1, "message, row 2: it has no id, by which it would be put in order")]
    assert bad_rows(tmp_path / "a.db", "s") == (wrong if odd is None else [])


def test_tables_without_rowids_are_read_by_their_ids(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.executescript(
        "create table session(id text primary key, parent_id, title, directory, time_created) without rowid;"
        "create table message(id text primary key, session_id, data) without rowid;"
        "create table part(id text primary key, message_id, session_id, data) without rowid;"
        "insert into session values('s', null, 't', '/w', 1), ('child', 's', 'c', '/w', 2);"
    )
    say(connection, "s", "m1", "first", "second")
    connection.commit()
    connection.close()
    found = read(tmp_path / "a.db", "s")
    assert [turn.text for turn in found.turns] == ["first\nsecond"]
    assert [(agent.session_id, agent.title) for agent in found.about.subagents] == [("child", "c")]


def test_bytes_that_hold_json_are_read_as_it(tmp_path: Path) -> None:
    connection = opencode(tmp_path / "a.db")
    connection.execute("insert into session values('s', null, 't', '/w', 1)")
    say(connection, "s", "m1", "as bytes")
    connection.execute("update message set data = cast(data as blob)")
    connection.execute("update part set data = cast(data as blob)")
    connection.commit()
    connection.close()
    assert (texts(tmp_path / "a.db"), bad_rows(tmp_path / "a.db")) == (["as bytes"], [])


@pytest.mark.parametrize("make", ["hermes", "opencode"])
def test_a_page_of_one_session_costs_no_more_where_there_are_many(
    make: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in rows that are handed over, for a session that is opened and one that was."""
    handed = [0]
    rows = database._rows

    def counted(connection: sqlite3.Connection, cursor: sqlite3.Cursor) -> Any:
        for row in rows(connection, cursor):
            handed[0] += 1
            yield row

    monkeypatch.setattr(database, "_rows", counted)
    costs = []
    for count in (2, 2000):
        path = tmp_path / f"{count}.db"
        if make == "hermes":
            hermes(path, [(f"s{n}", _AT + n, "t") for n in range(count)], [(1, "s1", "user", "said", None)], "text")
        else:
            connection = opencode(path)
            ids = [(f"s{n}", _AT + n) for n in range(count)]
            connection.executemany("insert into session values(?, null, 't', '/w', ?)", ids)
            say(connection, "s1", "m1", "said")
            connection.commit()
            connection.close()
        for _ in range(2):
            handed[0] = 0
            assert [turn.text for turn in page(path, "s1").turns] == ["said"]
            costs.append(handed[0])
    assert costs[:2] == costs[2:]
