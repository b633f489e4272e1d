"""examples/verify_ledger.py proves a ledger from docs/file-formats.md alone."""

import ast
import importlib.util
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import KINDS, flip_a_bit, insert_garbage, sessions_of

from harness.sessions.checking.verify import verify_session
from harness.sessions.lines.layout import Owner, SessionFiles

OWNER = Owner("s", "crash", ("alice",))
SCRIPT = Path(__file__).parents[2] / "examples/verify_ledger.py"


def run(ledger: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", SCRIPT, ledger], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def folder(original, tmp_path):
    return Path(shutil.copytree(sessions_of(original), tmp_path / "sessions"))


def test_a_whole_ledger_is_as_it_was_written(folder):
    assert run(folder / "s.log.jsonl") == (0, ["as it was written"])


def test_an_edited_line_a_cut_end_and_a_changed_file_are_named(folder):
    ledger = folder / "s.log.jsonl"
    lines = ledger.read_bytes().split(b"\n")
    lines[4] = lines[4].replace(b'"timestamp":"20', b'"timestamp":"19')
    ledger.write_bytes(b"\n".join(lines[:-2]) + b"\n")
    names = [path for path in folder.glob("files/*/*") if len(path.name) == 64]
    names[0].write_bytes(b"changed")
    code, found = run(ledger)
    assert code == 1
    assert "line 5 is not the one that line 6 was written behind" in found
    assert f"line {len(lines) - 1}, the last one that the anchor names, is missing or changed" in found
    assert any(names[0].name in problem for problem in found)


def test_a_ledger_without_its_anchor_is_not_proved(folder):
    (folder / "s.head.json").write_bytes(b"")
    assert run(folder / "s.log.jsonl") == (1, ["there is no anchor, so nobody can say whether the end is missing"])


@pytest.mark.parametrize(
    "mutate", [kind for kind in KINDS if kind is not insert_garbage], ids=lambda kind: kind.__name__
)
def test_it_notices_what_the_library_notices(ledger, folder, mutate):
    spec = importlib.util.spec_from_file_location("verify_ledger", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lines, _ = ledger
    chance = random.Random(mutate.__name__)
    for _ in range(100 if mutate is flip_a_bit else 20):
        (folder / "s.log.jsonl").write_bytes(mutate(chance, lines))
        assert list(module.problems(folder / "s.log.jsonl")) != []


@pytest.mark.parametrize(
    "end",
    [b"[" * 100_000 + b"\n", b'{"a":' * 5_000 + b"\n", bytes(100) + b"\n", b'{"type":"mess\n', b"\xef\xbb\xbf{}\n"],
    ids=["deep list", "deep object", "zeros", "half a line", "a mark"],
)
def test_a_whole_line_at_the_end_that_cannot_be_read_was_put_there(folder, end):
    ledger = folder / "s.log.jsonl"
    number = len(ledger.read_bytes().split(b"\n"))
    ledger.write_bytes(ledger.read_bytes() + end)
    assert run(ledger) == (1, [f"line {number} cannot be read, and no crash leaves a whole line so"])
    assert not verify_session(SessionFiles(folder, "s"), OWNER).ok


@pytest.mark.parametrize("end", [b"[" * 100_000, bytes(100), b'{"type":"mess', b"\n", b"  \n"])
def test_half_a_line_or_a_blank_one_at_the_end_is_what_a_crash_leaves(folder, end):
    ledger = folder / "s.log.jsonl"
    ledger.write_bytes(ledger.read_bytes() + end)
    assert run(ledger) == (0, ["as it was written"])
    assert verify_session(SessionFiles(folder, "s"), OWNER).ok


def test_without_a_ledger_it_says_so_in_one_line(tmp_path):
    for words in ((), (tmp_path / "gone.log.jsonl",)):
        done = subprocess.run([sys.executable, "-I", SCRIPT, *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "give one ledger that is there: python verify_ledger.py SESSION.log.jsonl\n"


def test_it_is_forty_lines_of_the_standard_library():
    tree = ast.parse(SCRIPT.read_text())
    said = {
        number
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node)
        for number in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    code = [
        line for number, line in enumerate(SCRIPT.read_text().splitlines(), 1) if line.strip() and number not in said
    ]
    assert len(code) <= 40
    imported = {line.split()[1] for line in code if line.startswith(("import ", "from "))}
    assert imported == {"hashlib", "json", "sys", "pathlib", "collections.abc"}
