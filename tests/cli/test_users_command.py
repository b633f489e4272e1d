"""`harness users delete`: whom it removes, what it says, and when it refuses."""

import json
import shlex
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import Terminal, harness, within

from harness.filesystem.locks import FileLock

ALICE = "ws/tenants/alice"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for user in ("--user alice", "--user bob", "", "--namespace acme --namespace alice"):
        words = shlex.split(f"chat --workspace ws --agent notes {user} --session monday --message")
        assert within(*words, "It rains.", cwd=tmp_path).returncode == 0
    return tmp_path


def names(here: Path) -> list[str]:
    return sorted(path.name for path in (here / "ws/tenants").iterdir())


def test_it_removes_one_user_and_counts_what_there_was(here: Path) -> None:
    done = within(*shlex.split("users delete alice --yes --workspace ws --json"), cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["user"], told["namespace"], told["sessions"], told["snapshot_keys"]) == ("alice", ["alice"], 1, 1)
    assert told["unreached"] == [
        "the tenant acme+alice, whose name has this user in it too; delete the user there, too"
    ]
    assert names(here) == ["_", "acme+alice", "bob"]


def test_of_a_user_in_another_tenant_alone_it_says_so(here: Path) -> None:
    within(*shlex.split("users delete alice -y -w ws"), cwd=here)
    done = within(*shlex.split("users delete alice -y -w ws"), cwd=here)
    assert (done.returncode, done.stdout.splitlines()) == (0, [
        "nothing of alice was found to be removed",
        "not reached: the tenant acme+alice, whose name has this user in it too; delete the user there, too",
    ])  # fmt: skip


def test_it_says_in_words_what_is_gone(here: Path) -> None:
    done = within(*shlex.split("users delete alice -y -w ws"), cwd=here)
    gone, among, *_ = done.stdout.splitlines()
    assert gone.startswith("alice is gone: 1 session, ")
    assert among == "among them 1 ledger, 1 list row, 1 snapshot"


@pytest.mark.parametrize(
    ("whom", "gone"), [("--nobody", "_"), ("--namespace acme --namespace alice", "acme+alice"), ("bob", "bob")]
)
def test_a_tenant_of_several_is_removed_where_it_is_named(here: Path, whom: str, gone: str) -> None:
    before = names(here)
    assert within(*shlex.split(f"users delete {whom} --yes --workspace ws --json"), cwd=here).returncode == 0
    assert set(before) - set(names(here)) == {gone}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("users delete carol --yes -w ws", 3),
        ("users delete alice --yes -w nowhere", 3),
        ("users delete alice --yes", 3),
        ("users delete --yes -w ws", 2),
        ("users delete alice --nobody --yes -w ws", 2),
        ("users delete alice --namespace acme --yes -w ws", 2),
        ("users delete alice -w ws", 2),
        ("users delete '' --yes -w ws", 2),
        ("users delete alice --agent notes --yes -w ws", 2),
    ],
)
def test_what_it_refuses_removes_nothing(here: Path, words: str, code: int) -> None:
    before = [*here.rglob("*")]
    done = within(*shlex.split(words), "--json", cwd=here)
    assert (done.returncode, "error" in json.loads(done.stdout)) == (code, True)
    assert [*here.rglob("*")] == before


def test_the_user_of_the_environment_is_not_removed_by_saying_nothing(here: Path) -> None:
    done = within(*shlex.split("users delete --yes -w ws"), cwd=here, HARNESS_USER="alice")
    assert done.returncode == 2
    assert "alice" in names(here)


def test_an_agent_is_no_scope_whether_it_is_named_or_in_the_environment(here: Path) -> None:
    within(*shlex.split("chat --workspace ws --user alice --session monday --message Hi."), cwd=here)
    done = within(*shlex.split("users delete alice --agent notes --yes -w ws"), cwd=here)
    assert "what all agents have of the user is removed" in done.stderr
    done = within(*shlex.split("users delete alice --yes -w ws --json"), cwd=here, HARNESS_AGENT="of no effect")
    assert (done.returncode, json.loads(done.stdout)["sessions"]) == (0, 2)


def test_the_help_speaks_of_no_option_that_there_is_not(here: Path) -> None:
    shown = within(*shlex.split("users delete --help"), cwd=here).stdout
    assert "Instead of USER, where" in " ".join(shown.replace("│", " ").split())
    assert "--agent" not in shown
    assert "--user" not in shown


@pytest.mark.parametrize(("answer", "left"), [("n\r", True), ("y\r", False)])
def test_the_question_says_how_many_sessions_of_which_agents_go(here: Path, answer: str, left: bool) -> None:
    within(*shlex.split("chat -w ws --user alice --session monday --message Hi."), cwd=here)
    within(*shlex.split("chat -w ws --user alice --session friday --message Hi."), cwd=here)
    with Terminal(*shlex.split("users delete alice -w ws"), cwd=here) as terminal:
        asked = terminal.wait_for("for good?")
        assert "everything of alice (2 sessions of agent 'assistant', 1 session of agent 'notes')" in asked
        terminal.type(answer)
        assert terminal.wait_for_exit() == 0
    assert ("alice" in names(here)) is left


async def test_a_user_who_is_talking_is_not_removed(here: Path) -> None:
    lock = FileLock(here / ALICE / "agents/notes/sessions/monday.lock")
    await lock.acquire(1)
    try:
        done = harness(*shlex.split("users delete alice --yes -w ws"), cwd=here)
    finally:
        lock.release()
    assert done.returncode == 1
    assert "monday.lock; nothing of this user was removed" in done.stderr
    assert (here / ALICE).is_dir()
