"""Long work shows itself: what notices are in words, and that a chat shows them."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import harness

from harness.cli.notices import progress_line

WHO = ("--workspace", "ws", "--agent", "notes")


@pytest.mark.parametrize(
    ("kind", "details", "line"),
    [
        ("compaction_begin", {"turns": 7, "mode": "summarise"}, "· summing up 7 earlier turns …"),
        ("compaction_begin", {"turns": 7, "mode": "discard"}, "· leaving out 7 earlier turns …"),
        ("compaction_begin", {"turns": 0, "steps": True}, "· summing up the steps so far …"),
        (
            "compaction_end", {"status": "completed", "tokens": 900, "tokensAfter": 90},
            "· the context is now about 90 tokens, it was 900",
        ),
        ("compaction_end", {"status": "failed", "error": "no\nanswer"}, "· not summed up: no answer"),
        ("compaction_end", {"status": "useless"}, "· not summed up: nothing would be gained"),
        ("overflow", {"tokens": 9}, "· that was too long for the model; making room …"),
        ("packet_begin", {"turns": [1, 24], "cards": 8}, "· summing up turns 1 to 24 …"),
        ("packet_failed", {"turns": [1, 24], "error": "no\nanswer"}, "· not summed up: no answer"),
        ("packet", {"turns": [1, 24], "text": "S."}, None),
        ("retry", {"error": "busy"}, "· trying again: busy"),
        ("fallback", {"to": "p:m"}, "· going on with p:m"),
        ("flush_begin", {"messages": 2}, None),
        ("flush_end", {"status": "nothing"}, None),
        ("flush_end", {"status": "completed", "path": "memory/x.md"}, "· remembered in memory/x.md"),
        ("flush_end", {"status": "failed", "error": "gone"}, "· the memory was not updated: gone"),
        ("consolidation_begin", {"files": ["a"], "left": 0}, "· tidying up the memory with a …"),
        ("consolidation_progress", {"files": ["a"], "left": 3}, "· tidying up the memory with a, 3 more to come …"),
        ("consolidation_end", {"status": "completed"}, "· the memory is up to date"),
        ("capacity", {"window": 9}, None),
    ],
)  # fmt: skip
def test_a_notice_in_words(kind: str, details: dict[str, Any], line: str | None) -> None:
    assert progress_line(kind, details) == line


def test_a_chat_that_remembers_says_what_it_has_kept(tmp_path: Path) -> None:
    done = harness("chat", *WHO, "--session", "s", "--remember", "--message", "My name is Alice.", cwd=tmp_path)
    assert done.stdout == "Noted: “My name is Alice.”\n"
    lines = done.stderr.splitlines()
    assert lines[0].startswith("· remembered in memory/")
    path = lines[0].removeprefix("· remembered in ")
    assert lines[1:] == [f"· tidying up the memory with {path} …", "· the memory is up to date"]
    assert "My name is Alice" in (tmp_path / "ws/tenants/_/MEMORY.md").read_text()


def test_a_chat_shows_that_it_sums_up(tmp_path: Path) -> None:
    said = "\n".join(f"Fact number {n} is that box {n} holds {n * 7} apples." for n in range(27))
    done = harness("chat", *WHO, "--session", "s", cwd=tmp_path, stdin=said)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["Noted:"] * 27
    first, second, *others = done.stderr.splitlines()
    # How many turns fit depends on what the instructions say.
    assert re.fullmatch(r"· summing up 1\d earlier turns …", first)
    assert second.startswith("· the context is now about ")
    assert others == []
