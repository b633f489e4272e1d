"""Errors say what to type next, for the place that the command was about."""

import json
import shlex
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import harness, within

from harness.cli.hints import add_hints
from harness.cli.place import Place
from harness.errors import SessionNotFound

WHO = ("--workspace", "the ws", "--agent", "notes", "--user", "alice")
FOLDER = "the ws/tenants/alice/agents/notes/sessions"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for session in ("monday", "monday-2"):
        within("chat", *WHO, "--session", session, "--message", "It rains.", cwd=tmp_path)
    return tmp_path


def hints(*words: str, cwd: Path, **env: str) -> list[str]:
    done = within(*words, "--json", cwd=cwd, **env)
    found: list[str] = json.loads(done.stdout)["hints"]
    assert done.stderr.splitlines()[-len(found) :] == [f"hint: {hint}" for hint in found]
    return found


def test_a_session_that_is_not_there_brings_up_those_of_like_names(here: Path) -> None:
    listed = "which there are: harness sessions list --workspace 'the ws' --agent notes --user alice"
    assert hints("sessions", "show", "mondya", *WHO, cwd=here) == ["did you mean 'monday' or 'monday-2'?", listed]
    assert hints("sessions", "verify", "mon", *WHO, cwd=here)[0] == "did you mean 'monday' or 'monday-2'?"
    assert hints("sessions", "usage", "friday-the-13th", *WHO, cwd=here) == [listed]


def test_no_other_users_session_is_ever_meant(here: Path) -> None:
    bob = ("--workspace", "the ws", "--agent", "notes", "--user", "bob")
    listed = "which there are: harness sessions list --workspace 'the ws' --agent notes --user bob"
    assert hints("sessions", "show", "monday", *bob, cwd=here) == [listed]


def test_other_agents_that_have_a_session_of_that_id_with_the_same_user_are_named(here: Path) -> None:
    for agent, user in (("my helper", "alice"), ("third", "bob")):
        who = ("--workspace", "the ws", "--agent", agent, "--user", user)
        within("chat", *who, "--session", "monday", "--message", "It rains.", cwd=here)
    alice = ("--workspace", "the ws", "--user", "alice")
    *others, _ = hints("sessions", "show", "monday", *alice, cwd=here)
    assert others == [
        "agent 'my helper' has a session of that id: --agent 'my helper'",
        "agent 'notes' has a session of that id: --agent notes",
    ]
    assert len(hints("sessions", "show", "tuesday", *alice, cwd=here)) == 1


def test_who_named_no_user_is_told_so(here: Path) -> None:
    first, _ = hints("sessions", "show", "monday", "--workspace", "the ws", "--agent", "notes", cwd=here)
    assert first == "without --user or HARNESS_USER only nobody's sessions are looked at"


def test_a_hint_leaves_out_what_the_environment_says_and_can_be_typed(here: Path) -> None:
    env = {"HARNESS_WORKSPACE": "the ws", "HARNESS_AGENT": "notes", "HARNESS_USER": "alice"}
    [hint] = hints("sessions", "branch", "monday", "x", cwd=here, **env)
    assert hint == "where turns end: harness sessions turns monday"
    _, command = hint.split(": ")
    assert within(*shlex.split(command)[1:], cwd=here, **env).returncode == 0


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("fork", "monday", "--to", "monday-2"), "another id: --to SESSION"),
        (("handoff", "monday", "--to", "monday-2"), "another id: --to SESSION"),
        (("export", "monday", "--out", "the ws"), "another file: --out FILE"),
        (("import", "m.zip"), "as one of its own, under another id: --take-over --as SESSION"),
    ],
    ids=lambda words: words[0],
)
def test_what_is_there_already_is_got_around_by_an_option(here: Path, words: tuple[str, ...], hint: str) -> None:
    within("sessions", "export", "monday", "--out", "m.zip", *WHO, cwd=here)
    assert hints("sessions", *words, *WHO, cwd=here) == [hint]


def test_a_session_whose_ledger_is_gone_is_not_called_unknown(here: Path) -> None:
    (here / FOLDER / "monday.log.jsonl").unlink()
    [hint] = hints("sessions", "show", "monday", *WHO, cwd=here)
    assert hint.startswith("it was there, and its ledger is gone: harness sessions verify monday ")
    (here / FOLDER / "monday-2.log.jsonl").write_bytes(b"")
    done = within("sessions", "show", "monday-2", *WHO, cwd=here)
    assert (done.returncode, done.stdout) == (3, "")
    assert "its ledger is gone" in done.stderr


def test_a_deleted_session_is_just_not_there(here: Path) -> None:
    within("sessions", "delete", "monday", "--yes", *WHO, cwd=here)
    assert hints("sessions", "show", "monday", *WHO, cwd=here)[0] == "did you mean 'monday-2'?"


def test_damage_brings_up_verify(here: Path) -> None:
    ledger = here / FOLDER / "monday.log.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"rains", b"snows", 1))
    [hint] = hints("sessions", "fork", "monday", *WHO, cwd=here)
    assert hint.startswith("all that is wrong: harness sessions verify monday ")


def test_one_of_several_sessions_in_a_folder_is_named_by_an_option(here: Path) -> None:
    done = harness("transcripts", "show", "the ws", "--json", cwd=here)
    assert json.loads(done.stdout)["hints"] == ["one of them: --session SESSION"]


async def test_where_no_hint_can_be_found_the_error_stays_and_the_reason_is_the_hint(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_ANCHOR_KEY", "short")
    error = SessionNotFound("there is no session 'friday'")
    await add_hints(error, Place(here / "the ws", "notes", "alice", as_json=False), "friday")
    [note] = error.__notes__
    assert note.startswith("HARNESS_ANCHOR_KEY has 5 characters")


def test_wrong_usage_brings_up_the_help(here: Path) -> None:
    assert hints("sessions", "fork", cwd=here) == ["how it is used: harness sessions fork --help"]


def test_the_warnings_of_a_call_stand_beside_its_answer(here: Path) -> None:
    ledger = here / FOLDER / "monday.log.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"user"', b'"us\xffer"', 1))
    done = within("chat", *WHO, "--session", "monday", "--message", "And?", cwd=here)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert "\n· session 'monday': " in done.stderr
    told = shlex.join(["harness", "sessions", "verify", "monday", *WHO])
    assert done.stderr.endswith(f"; verify the session to see what is missing\nhint: whether all is there: {told}\n")
