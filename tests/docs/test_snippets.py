"""The pages do what they say: their Python runs, their commands run, their links lead somewhere."""

import ast
import asyncio
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Lines that make an environment or install into it; the gate runs the README's two, word for word.
INSTALLING = ("python3 -m venv", "pip install", "make ")


def blocks(page: Path, *languages: str) -> list[tuple[int, str]]:
    text = page.read_text("utf-8")
    return [(text[: m.start()].count("\n") + 2, m[2]) for m in BLOCK.finditer(text) if m[1] in languages]


def commands(page: Path) -> list[str]:
    lines = [
        line.strip().removeprefix("$ ") for _, code in blocks(page, "console", "bash") for line in code.splitlines()
    ]
    return [line for line in lines if line and not line.startswith(("#", *INSTALLING))]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(run_page(page))


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=named)
def test_the_commands_of_a_page_succeed(page: Path, tmp_path: Path) -> None:
    for line in commands(page):
        program, *words = shlex.split(line)
        assert program == "harness", f"{named(page)}: {line}: only commands of ours can be tried here"
        done = run_command(words, tmp_path)
        assert (line, done.returncode, done.stderr) == (line, 0, b"")


def test_the_commands_of_the_readme_show_the_conversation_of_its_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = ROOT / "README.md"
    monkeypatch.chdir(tmp_path)
    asyncio.run(run_code(blocks(readme, "python")[0][1], 1, "README.md", {}))
    for line in commands(readme):
        if line.startswith("harness sessions"):
            shown = run_command(shlex.split(line)[1:], tmp_path).stdout.decode()
            assert "My name is Alice." in shown, line


@pytest.mark.parametrize("page", [*PAGES, *(ROOT / name for name in ("AGENTS.md", "CONTRIBUTING.md"))], ids=named)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_shows_the_five_line_use_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = blocks(ROOT / "README.md", "python")[0][1]
    monkeypatch.chdir(tmp_path)
    asyncio.run(run_code(first, 1, "README.md", {}))
    assert "My name is Alice." in capsys.readouterr().out


def run_command(words: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


async def run_page(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for line, code in blocks(page, "python"):
        await run_code(code, line, named(page), namespace)


async def run_code(code: str, line: int, name: str, namespace: dict[str, Any]) -> None:
    """Run a block with top-level await, its lines numbered as on the page."""
    compiled = compile("\n" * (line - 1) + code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, namespace)
    if inspect.iscoroutine(result):
        await result
