"""`harness transcripts …` tells what its readers found wrong with a file, and goes on."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "transcripts"))
from driver import harness, within
from sample_session import write

COMMANDS = {
    "show": ("show", "{}"),
    "stats": ("stats", "{}"),
    "convert": ("convert", "{}", "--out", "page.html"),
    "bundle": ("convert", "{}", "--to", "bundle", "--out", "bundle.zip"),
    "import": ("import", "{}", "--as", "new", "--workspace", "elsewhere"),
}


def edited_ledger(folder: Path) -> Path:
    """A ledger in which somebody has changed a word."""
    within("chat", "--session", "monday", "--workspace", "ws", "--message", "It rains.", cwd=folder)
    [ledger] = folder.rglob("monday.log.jsonl")
    ledger.write_bytes(ledger.read_bytes().replace(b"It rains.", b"It snows."))
    return ledger


def torn_file(folder: Path) -> Path:
    """A session of another harness with many lines that are none."""
    path = write(folder)
    path.write_text(path.read_text() + '{"torn\n' * 300)
    return path


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("damaged", [edited_ledger, torn_file])
def test_damage_is_told_in_a_few_lines_and_in_json(
    tmp_path: Path, damaged: Callable[[Path], Path], words: tuple[str, ...]
) -> None:
    path = damaged(tmp_path)
    done = harness("transcripts", *(word.format(path) for word in words), "--json", cwd=tmp_path)
    assert done.returncode == 0
    told = json.loads(done.stdout)
    found = told["sessions"][0] if "sessions" in told else told
    kinds = {one["kind"] for one in found["warnings"]}
    assert kinds & ({"chain"} if damaged is edited_ledger else {"bad_line"})
    count = len(found["warnings"]) + found.get("warnings_left_out", 0)
    assert len(found["warnings"]) <= 200
    lines = done.stderr.splitlines()
    assert all(line.startswith("warning: ") for line in lines)
    assert len(lines) == (count if count <= 5 else 6)
    if count > 5:
        assert lines[-1] == f"warning: and {count - 5:,} more; --json lists them"


def test_of_several_files_the_warnings_say_whose_they_are(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole, torn = write(tmp_path / "whole"), torn_file(tmp_path)
    done = harness("transcripts", "stats", str(whole), str(torn), cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 6)
    assert all(line.startswith(f"warning: {torn}: ") for line in done.stderr.splitlines())
    assert "warnings" not in done.stdout
