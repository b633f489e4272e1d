"""Where a block is cut off changes what is shown of it, and nothing that is counted or marked."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from growing import KINDS

from harness.transcripts import page, read, summary

TEXTS = {"words": "answer", "blanks in front": "\n" * 2500 + "answer", "only blanks": " \n" * 2500, "nothing": ""}


def line(number: int, kind: str, message: dict[str, Any]) -> str:
    at = "2026-01-01T00:00:00.000Z"
    told = {"type": kind, "uuid": f"u{number}", "sessionId": "s", "timestamp": at, "message": message}
    return json.dumps(told) + "\n"


def session(path: Path, text: str) -> Path:
    said = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "First."}]}
    content = [{"type": "thinking", "thinking": text, "signature": "YQ=="}, {"type": "text", "text": text}]
    last = {"id": "n", "role": "assistant", "content": content}
    asked = line(0, "user", {"role": "user", "content": "Go."})
    path.write_text(asked + line(1, "assistant", said) + line(2, "assistant", last))
    return path


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("cap", [0, 1, 2000, 20_000])
def test_counts_and_the_final_mark_do_not_depend_on_the_cap(tmp_path: Path, text: str, cap: int) -> None:
    path = session(tmp_path / "s.jsonl", TEXTS[text])
    whole, capped = read(path), read(path, cap=cap)

    assert capped.stats() == whole.stats() == summary(path).stats
    assert [turn.final for turn in capped.turns] == [turn.final for turn in whole.turns]
    assert [turn.final for turn in page(path, cap=cap).turns] == [turn.final for turn in whole.turns]
    assert capped.head.withheld == whole.head.withheld


@pytest.mark.parametrize("kind", KINDS)
def test_the_census_of_every_format_does_not_depend_on_the_cap(tmp_path: Path, kind: str) -> None:
    session = KINDS[kind](tmp_path)
    session.say(3)
    whole = read(session.path)

    assert read(session.path, cap=1).stats() == whole.stats() == summary(session.path).stats
    assert [turn.final for turn in read(session.path, cap=1).turns] == [turn.final for turn in whole.turns]
