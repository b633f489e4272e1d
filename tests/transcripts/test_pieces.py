"""Pieces: what stands between a line and a turn is shared by windows, and goes from process to process."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from harness.transcripts import read
from harness.transcripts.formats import format_named
from harness.transcripts.pieces import Piece

USAGE = {"input": 3, "cacheRead": 2, "cacheWrite": 1, "output": 4}


def entry(key: str, parent: str | None, message: dict[str, Any]) -> dict[str, Any]:
    at = "2026-03-01T10:00:00.000Z"
    return {"type": "message", "id": key, "parentId": parent, "timestamp": at, "message": message}


def call(key: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": key, "name": "read", "arguments": {"path": f"{key}.py"}}


def result(key: str) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": key, "content": [{"type": "text", "text": f"of {key}"}]}


def session(folder: Path) -> Path:
    """Of pi: a branch that was left, results in another order than their calls, one without a call, one twice."""
    answer = {"role": "assistant", "model": "m", "provider": "p", "usage": USAGE}
    lines = [
        {"type": "session", "id": "s", "version": 3, "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/srv"},
        entry("a", None, {"role": "user", "content": [{"type": "text", "text": "Go."}]}),
        entry("left", "a", {**answer, "content": [{"type": "text", "text": "No."}, call("c0")]}),
        entry("r0", "left", result("c0")),
        {"type": "model_change", "id": "change", "parentId": "a", "modelId": "m"},
        {"type": "thinking_level_change", "thinkingLevel": "high"},
        entry("b", "change", {**answer, "content": [call("c1"), call("c2"), call("c1")]}),
        entry("r2", "b", result("c2")),
        entry("r1", "r2", result("c1")),
        entry("r9", "r1", result("c9")),
        entry("again", "r9", {**result("c1"), "content": [{"type": "text", "text": "more"}]}),
        entry("c", "again", {**answer, "content": [{"type": "text", "text": "Done."}]}),
    ]
    path = folder / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def pieces_of(path: Path) -> list[Piece]:
    known = format_named("pi")
    reader = known.reader(None)
    reader.read(known.open(path, "s").source.lines())
    return reader.pieces


def test_turns_leave_the_pieces_they_are_made_of_as_they_were(tmp_path: Path) -> None:
    pieces = pieces_of(session(tmp_path))
    before = copy.deepcopy(pieces)

    assembly = format_named("pi").assembly()
    assembly.add(pieces)
    turns = assembly.turns()

    assert pieces == before
    assert [(turn.kind, turn.aside, turn.final) for turn in turns] == [
        ("prompt", None, False),
        ("answer", "abandoned", False),
        ("results", "abandoned", False),
        ("answer", None, False),
        ("results", None, False),
        ("orphan", None, False),
        ("meta", None, False),
        ("answer", None, True),
    ]


def test_results_that_were_written_in_another_order_stand_in_that_of_their_calls_and_where_the_first_was(
    tmp_path: Path,
) -> None:
    answered = read(session(tmp_path)).turns[4]

    assert [(block["id"], block["name"]) for block in answered.blocks] == [("c1", "read"), ("c2", "read")]
    assert answered.line == 8


def test_a_line_that_says_nothing_is_kept_for_the_tree_only_where_it_has_a_name(tmp_path: Path) -> None:
    pieces = pieces_of(session(tmp_path))

    assert [piece.entry for piece in pieces if piece.kind == "note"] == ["change"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"fields": {"model": "m"}, "usage": USAGE},
        {"key": "m1", "aside": "sidechain"},
        {"entry": "e", "parent": "d"},
        {"note": "task", "data": ["x"]},
    ],
)
def test_a_piece_is_the_same_behind_a_pipe_and_another_one_made_of_it_leaves_it(more: dict[str, Any]) -> None:
    piece = Piece("answer", 3, 120, "2026-03-01T10:00:00.000Z", [{"type": "text", "text": "x"}], **more)

    received = pickle.loads(pickle.dumps(piece))
    other = piece.replaced(line=1)

    assert received == piece
    assert (other.line, piece.line) == (1, 3)
    assert other != piece
    assert other.replaced(line=3) == piece
