"""Words are found as people see them, and marked where they stand."""

import json
from pathlib import Path

import pytest

from harness.transcripts import find
from harness.transcripts.matching import fold, place_of


def session(folder: Path, content: object) -> Path:
    role = "user" if isinstance(content, str) else "assistant"
    path = folder / "s.jsonl"
    records = [
        {"type": "user", "uuid": "u0", "sessionId": "s", "message": {"role": "user", "content": "go"}},
        {"type": role, "uuid": "u1", "sessionId": "s", "message": {"id": "m1", "role": role, "content": content}},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Straße: the needle is here", "needle", "needle"),
        ("ß" * 600 + " needle here", "needle", "needle"),
        ("İ" * 100 + "needle", "needle", "needle"),
        ("the ﬁle is ﬁne; needle", "NEEDLE", "needle"),
        ("xx STRASSE yy", "straße", "STRASSE"),
        ("xx straße yy", "STRASSE", "straße"),
        ("the ﬁle", "file", "ﬁle"),
        ("un cafe\u0301 noir", "caf\u00e9", "cafe\u0301"),
        ("un caf\u00e9 noir", "cafe\u0301", "caf\u00e9"),
        ("각 \u1100\u1161\u11a8", "각", "각"),
    ],
)
def test_a_match_is_marked_in_the_text_as_it_stands(tmp_path: Path, text: str, query: str, marked: str) -> None:
    (hit,) = find(session(tmp_path, text), None, query).hits
    assert hit.snippet[hit.start : hit.start + hit.length] == marked


def test_a_mark_covers_letters_whole() -> None:
    assert place_of(fold("s"), "aß") == (1, 2)
    assert place_of(fold("x"), "ex\u0301") == (1, 3)
    assert place_of(fold("y"), "xß") is None


@pytest.mark.parametrize("query", ['say "grüß"', "C:\\temp", "two\nlines", "command: say", '"command":"say', "ünï"])
def test_arguments_are_found_as_they_were_meant(tmp_path: Path, query: str) -> None:
    arguments = {"command": 'say "grüß" > C:\\temp', "rest": ["two\nlines", {"x": "U\u0308NI\u0308"}]}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": arguments}
    assert len(find(session(tmp_path, [call]), None, query).hits) == 1
