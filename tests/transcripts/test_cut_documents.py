"""A document whose end is missing, and lines that only opening a file sees: the pages tell of them as `read` does."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from growing import KINDS, clock, millis

from harness.transcripts import page, read


def opencode(path: Path, count: int) -> Path:
    messages = [
        {"info": {"id": f"m{n:05}", "role": "user", "time": {"created": millis(n, 0)}}, "parts": [part(n)]}
        for n in range(count)
    ]
    info = {"id": "s1", "title": "Cut", "directory": "/srv", "time": {"created": 1}}
    path.write_text(json.dumps({"info": info, "messages": messages})[:-30])
    return path


def part(number: int) -> dict[str, str]:
    return {"id": f"p{number}", "type": "text", "text": f"say {number}"}


def gemini(path: Path, count: int) -> Path:
    said = [{"id": f"g{n}", "timestamp": clock(n, 0), "type": "user", "content": f"say {n}"} for n in range(count)]
    path.write_text(json.dumps({"sessionId": "s1", "projectHash": "p", "messages": said})[:-30])
    return path


@pytest.mark.parametrize("count", [1, 3, 60])
@pytest.mark.parametrize("make", [opencode, gemini])
def test_the_page_at_the_end_tells_that_the_document_is_cut(tmp_path: Path, make, count: int) -> None:
    path = make(tmp_path / "session-1.json", count)

    last, first = page(path), page(path, where="head")
    again = page(path, where="after", cursor=last.after)

    assert [found.kind for found in read(path).warnings if found.kind == "truncated"] == ["truncated"]
    assert [found.kind for found in last.warnings if found.kind != "no_messages"] == ["truncated"]
    assert [found.kind for found in first.warnings] == (["truncated"] if first.at_end else [])
    assert again.warnings == ()


def test_a_damaged_line_of_a_file_that_is_read_as_rows_is_told_of_with_its_place(tmp_path: Path) -> None:
    session = KINDS["gemini"](tmp_path)
    session.say(30)
    with session.path.open("ab") as end:
        end.write(b"{torn\n")
    number = session.path.read_bytes().count(b"\n")

    last = page(session.path, window=4096)

    assert last.start > 0
    assert [(found.kind, found.line, found.text[-21:]) for found in last.warnings] == [
        ("bad_line", 0, f"(line {number} of the file)"[-21:])
    ]
