"""Each example runs as a script, in a folder of its own, and prints what is written here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_example(name: str, folder: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / name, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_five_lines_remembers_in_the_second_run(tmp_path: Path) -> None:
    assert run_example("five_lines.py", tmp_path) == [
        "Noted: “My name is Alice.”",
        "You said: “My name is Alice.”",
    ]
    assert run_example("five_lines.py", tmp_path, "What is my name?") == ["You said: “My name is Alice.”"]


def test_the_real_model_says_in_one_line_what_it_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples/real_model.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HARNESS_LLAMA_PYTHON": sys.executable, "PYTHONNOUSERSITE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        pytest.skip("the model and its server are installed here")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"real_model\.py: .* pip install [^\n]*\n", done.stderr)


def test_tools_and_hooks_serves_each_user_their_own(tmp_path: Path) -> None:
    assert run_example("tools_and_hooks.py", tmp_path) == [
        "audit: alice uses balance",
        "alice: 120 EUR on 2026-11-30",
        "audit: bob uses balance",
        "bob: 7 EUR on 2026-11-30",
    ]


def test_per_call_session_puts_snapshots_where_the_call_says(tmp_path: Path) -> None:
    assert run_example("per_call_session.py", tmp_path) == [
        "monday: You said: “Today is monday.”",
        "tuesday: You said: “Today is tuesday.”",
        "friday: You said: “Today is friday.”",
    ]
    context = tmp_path / "workspace/tenants/alice/agents/notes/context"
    assert [path.name for path in context.iterdir()] == ["monday"]
    assert (tmp_path / "elsewhere/alice/notes/friday/memory.json").is_file()
