"""What somebody meets who installs the package: a light import, pins without places, two commands."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_importing_the_face_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = "reactivex fsspec pydantic_ai openai anthropic sqlalchemy typer rich prompt_toolkit"
    code = f"import sys, harness; print([name for name in '{heavy}'.split() if name in sys.modules])"
    assert run_python(code, tmp_path).stdout == "[]\n"


def test_everything_the_face_promises_is_there(tmp_path: Path) -> None:
    code = "import harness; print([name for name in harness.__all__ if getattr(harness, name, None) is None])"
    done = run_python(code, tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("room", ["harness", "harness.models", "harness.testing", "harness.viewer"])
def test_names_that_are_loaded_late_can_be_looked_up(tmp_path: Path, room: str) -> None:
    code = f"import {room} as room; print(sorted(set(room.__all__) - set(dir(room))))"
    assert run_python(code, tmp_path).stdout == "[]\n"


def test_an_agent_without_a_name_is_the_one_that_the_command_line_means(tmp_path: Path) -> None:
    code = (
        "from harness import HarnessAgent; from harness.cli.options import DEFAULT_AGENT; "
        "print(HarnessAgent.builder().model('offline').build().config.agent_id == DEFAULT_AGENT)"
    )
    assert run_python(code, tmp_path).stdout == "True\n"


def test_the_face_has_what_outside_checks_call(tmp_path: Path) -> None:
    names = "HarnessAgent RuntimeContext Msg Toolkit tool CompactionConfig WorkingSet"
    code = f"import harness; print([name for name in '{names}'.split() if name not in harness.__all__])"
    assert run_python(code, tmp_path).stdout == "[]\n"


def test_the_face_knows_the_version_of_the_package(tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert run_python("import harness; print(harness.__version__)", tmp_path).stdout == f"{version}\n"


def test_a_user_may_own_modules_named_like_our_rooms(tmp_path: Path) -> None:
    for room in ("hooks", "sessions", "filesystem"):
        (tmp_path / f"{room}.py").write_text("raise SystemExit('imported by mistake')")
    done = run_python(
        "import harness.agent, harness.hooks, harness.sessions, harness.filesystem; print('fine')", tmp_path
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_the_pins_are_names_and_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    odd = [line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line)]
    assert odd == []


def test_every_package_a_developer_needs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["cli"], *extras["models"], *extras["dev"]]
    names = {normal(re.match(r"[A-Za-z0-9._-]+", requirement)[0]) for requirement in wanted} - {"dualtrack-harness"}
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert names - {normal(line.split("==")[0]) for line in pins} == set()


@pytest.mark.parametrize("name", ["quickstart", "test"])
def test_the_readme_has_the_command_the_gate_runs(name: str) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(rf"<!-- command:{name} -->\n```console\n\$ (.+)\n```", readme)
    assert len(blocks) == 1
    assert blocks[0].startswith("python3 -m venv .venv && ")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
