"""What is in force where a window begins (which model speaks, and whose it is) is known there as in the whole."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from follower import Follower, told_anew
from growing import SESSION, clock

from harness.transcripts import Page, Turn, join, page, read
from harness.transcripts.source import FileSource

WINDOW = 8 * 1024
Line = dict[str, Any]


def codex(number: int, kind: str, **payload: Any) -> Line:
    return {"timestamp": clock(0, number % 60), "type": kind, "payload": payload}


def codex_turn(model: str | None, steps: int, noise: str) -> list[Line]:
    """A prompt, and much work on it; the model is only named in front."""
    told = {"model": model} if model else {"effort": "high"}
    asked = [{"type": "input_text", "text": f"go {model}"}]
    lines = [codex(0, "event_msg", type="task_started"), codex(0, "turn_context", **told)]
    lines.append(codex(1, "response_item", type="message", role="user", content=asked))
    for n in range(steps):
        call = f"{model}-{n}"
        lines += [
            codex(n, "response_item", type="function_call", name="look", arguments="{}", call_id=call),
            codex(n, "response_item", type="function_call_output", call_id=call, output=noise),
        ]
    return lines


def penguin(kind: str, **payload: Any) -> Line:
    return {"timestamp": clock(0, 0), "type": kind, "payload": payload}


def penguin_turn(model: str, steps: int, noise: str) -> list[Line]:
    meta = {"session_id": SESSION, "provider": f"of {model}", "model_id": model, "workspace": "/srv"}
    lines = [penguin("session_meta", **meta), penguin("model_msg", type="text", role="user", text=f"go {model}")]
    for n in range(steps):
        call = {"name": "look", "arguments": "{}", "tool_call_id": f"{model}-{n}"}
        lines += [
            penguin("event_msg", type="request_begin"),
            penguin("model_msg", type="tool_call", role="assistant", **call),
            penguin("model_msg", type="tool_call_output", role="user", output=noise, tool_call_id=f"{model}-{n}"),
        ]
    return lines


# Words that look like the lines that are searched for, where they are none.
NOISE = ' {"type":"turn_context","payload":{"model":"none"}} "session_meta" ' + "x" * 700
MAKERS: dict[str, tuple[str, Callable[[], list[Line]]]] = {
    "codex": (
        "rollout-2026-03-01T09-00-00-c1.jsonl",
        lambda: [
            codex(0, "session_meta", id="c1", cwd="/srv", model_provider="somebody"),
            *codex_turn("m-1", 60, NOISE),
            *codex_turn("m-2", 60, NOISE),
            *codex_turn(None, 60, NOISE),
        ],
    ),
    "penguin": (f"{SESSION}_001.jsonl", lambda: [*penguin_turn("m-1", 60, NOISE), *penguin_turn("m-2", 60, NOISE)]),
}


def made(folder: Path, kind: str) -> Path:
    name, lines = MAKERS[kind]
    path = folder / name
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines()))
    return path


def all_pages(path: Path, where: Any) -> list[Page]:
    pages = [page(path, where=where, window=WINDOW)]
    while (
        cursor := pages[-1].before if where == "tail" else None if pages[-1].at_end else pages[-1].after
    ) is not None:
        pages.append(page(path, where="before" if where == "tail" else "after", cursor=cursor, window=WINDOW))
    return pages[::-1] if where == "tail" else pages


def spoken(turns: tuple[Turn, ...]) -> list[tuple[str, Any, Any]]:
    return [(turn.key, turn.message.get("model"), turn.message.get("provider")) for turn in turns]


@pytest.mark.parametrize("where", ["tail", "head"])
@pytest.mark.parametrize("kind", list(MAKERS))
def test_each_page_knows_who_speaks_in_the_middle_of_a_long_turn(tmp_path: Path, kind: str, where: str) -> None:
    path = made(tmp_path, kind)
    pages = all_pages(path, where)
    assert len(pages) > 8
    assert [told for each in pages for told in spoken(each.turns)] == spoken(read(path).turns)


@pytest.mark.parametrize("kind", list(MAKERS))
def test_joined_pages_of_the_end_alone_know_who_speaks(tmp_path: Path, kind: str) -> None:
    path = made(tmp_path, kind)
    last = all_pages(path, "tail")[-3:]
    joined = spoken(join(last))
    assert joined == spoken(read(path).turns)[-len(joined) :]


@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_follower_in_the_middle_of_a_long_turn_knows_who_speaks(tmp_path: Path, kind: str) -> None:
    path = made(tmp_path, kind)
    raw = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(raw[:-40]))
    follower = Follower(path, window=WINDOW)
    for line in raw[-40:]:
        with path.open("ab") as end:
            end.write(line)
        follower.look()
    turns = [turn._replace(line=0) for turn in follower.turns.values()]
    assert turns == [turn._replace(line=0) for turn in told_anew(path, follower.start).values()]


def test_lines_are_searched_backwards_through_any_chunks_and_no_further_than_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    signs = [b'{"sign":%d}\n' % n + b'{"x":"%s"}\n' % (b"y" * (n * 40_000 % 131_072)) for n in range(12)]
    path.write_bytes(b"".join(signs))
    source, size = FileSource(path), path.stat().st_size
    found = [line.record["sign"] for line in source.holding(b'"sign"', size, size) if line.record]
    assert found == [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    near = [
        line.record["sign"] for line in source.holding(b'"sign"', size, len(signs[11]) + len(signs[10])) if line.record
    ]
    assert near == [11, 10]
