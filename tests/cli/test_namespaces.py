"""Namespaces of several parts, named instead of a user."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import harness, within

from harness import HarnessAgent, RuntimeContext

WHO = ("--workspace", "ws", "--agent", "notes")
TEAM = (*WHO, "--namespace", "red", "--namespace", "alice")


@pytest.fixture
async def here(tmp_path: Path) -> Path:
    """A session of an agent that has teams, and one of a user without."""
    builder = HarnessAgent.builder().name("notes").model("offline").workspace(tmp_path / "ws")
    async with builder.namespace(lambda ctx: ("red", str(ctx.user_id))).build() as agent:
        await agent.call("My name is Alice.", RuntimeContext(session_id="monday", user_id="alice"))
    return tmp_path


def document(*words: str, cwd: Path, **env: str) -> Any:
    done = within(*words, "--json", cwd=cwd, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_chat_goes_on_in_the_namespace_of_a_team(here: Path) -> None:
    said = ("--session", "monday", "--message", "What is my name?")
    assert document("chat", *TEAM, *said, cwd=here)["reply"] == "You said: “My name is Alice.”"
    assert document("chat", *WHO, "--user", "alice", *said, cwd=here)["reply"] != "You said: “My name is Alice.”"


def test_every_command_about_sessions_reaches_it(here: Path) -> None:
    assert [one["id"] for one in document("sessions", "list", *TEAM, cwd=here)["sessions"]] == ["monday"]
    assert document("sessions", "verify", "monday", *TEAM, cwd=here)["ok"] is True
    assert document("sessions", "verify", *TEAM[:-1], "bob", cwd=here)["sessions"] == []
    assert within("sessions", "verify", *TEAM, cwd=here).stdout.splitlines()[-1] == (
        "1 session of red / alice, 0 with errors"
    )


def test_the_order_of_the_parts_counts(here: Path) -> None:
    other = (*WHO, "--namespace", "alice", "--namespace", "red")
    assert document("sessions", "list", *other, cwd=here)["sessions"] == []


def test_one_part_is_the_user_of_that_name(here: Path) -> None:
    document("chat", *WHO, "--user", "bob", "--session", "friday", "--message", "It rains.", cwd=here)
    found = document("sessions", "list", *WHO, "--namespace", "bob", cwd=here)["sessions"]
    assert [one["id"] for one in found] == ["friday"]


@pytest.mark.parametrize("words", [("sessions", "list"), ("chat", "--message", "Hi.")], ids=" ".join)
def test_a_user_beside_it_is_wrong_usage_but_for_one_of_the_environment(here: Path, words: tuple[str, ...]) -> None:
    done = within(*words, *TEAM, "--user", "alice", cwd=here)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --user is a namespace of one part; give --user or --namespace, not both\n")
    assert within(*words, *TEAM, cwd=here, HARNESS_USER="bob").returncode == 0


def test_hints_name_it_and_can_be_typed(here: Path) -> None:
    done = within("sessions", "show", "tuesday", *TEAM, "--json", cwd=here)
    *_, hint = json.loads(done.stdout)["hints"]
    assert hint == f"which there are: {shlex.join(['harness', 'sessions', 'list', *TEAM])}"
    assert "monday" in within(*shlex.split(hint.partition(": ")[2])[1:], cwd=here).stdout


def test_a_transcript_is_imported_into_it(here: Path) -> None:
    ledger = "ws/tenants/red+alice/agents/notes/sessions/monday.log.jsonl"
    done = harness("transcripts", "import", ledger, "--as", "copy", *TEAM, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert document("sessions", "verify", "copy", *TEAM, cwd=here)["ok"] is True


def test_a_part_that_is_no_id_is_wrong_usage(here: Path) -> None:
    assert within("sessions", "list", *WHO, "--namespace", "red", "--namespace", "", cwd=here).returncode == 2
