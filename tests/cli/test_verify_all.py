"""`harness sessions verify` without an id: every session of the user, a line each."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import Terminal, within

from harness import HarnessAgent

WHO = ("--workspace", "ws", "--agent", "notes", "--user", "alice")
FOLDER = "ws/tenants/alice/agents/notes/sessions"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for session in ("friday", "monday", "tuesday"):
        within("chat", *WHO, "--session", session, "--message", "It rains.", cwd=tmp_path)
    return tmp_path


def damage(here: Path) -> None:
    """Edit one, take the ledger of another away, and put a folder in its place of a third."""
    ledger = here / FOLDER / "friday.log.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"rains", b"snows", 1))
    (here / FOLDER / "monday.log.jsonl").unlink()
    (here / FOLDER / "tuesday.log.jsonl").unlink()
    (here / FOLDER / "tuesday.log.jsonl").mkdir()


def test_whole_sessions_are_a_line_each_and_exit_0(here: Path) -> None:
    done = within("sessions", "verify", *WHO, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "friday: as it was written",
        "monday: as it was written",
        "tuesday: as it was written",
        "3 sessions of alice, 0 with errors",
    ]


def test_no_damage_keeps_the_others_from_being_checked(here: Path) -> None:
    damage(here)
    within("chat", *WHO, "--session", "wednesday", "--message", "It rains.", cwd=here)
    done = within("sessions", "verify", *WHO, cwd=here)
    edited, missing, folder, whole, total = done.stdout.splitlines()
    assert done.returncode == 1
    assert edited.startswith("friday: not as it was written (line 2 edited")
    assert missing.startswith("monday: not as it was written (line 1 truncated")
    assert folder.startswith("tuesday: could not be checked: cannot read ")
    assert (whole, total) == ("wednesday: as it was written", "4 sessions of alice, 3 with errors")


def test_json_is_one_document_with_a_report_each(here: Path) -> None:
    damage(here)
    done = within("sessions", "verify", "--json", *WHO, cwd=here)
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (1, False)
    assert [(each["session"], each["ok"]) for each in document["sessions"]] == [
        ("friday", False),
        ("monday", False),
        ("tuesday", False),
    ]
    assert [sorted(each) for each in document["sessions"][1:]] == [
        ["anchored", "bytes", "files", "findings", "lines", "ok", "session"],
        ["error", "ok", "session", "type"],
    ]


def test_only_the_users_own_are_checked(here: Path) -> None:
    damage(here)
    done = within("sessions", "verify", *WHO[:-1], "bob", cwd=here)
    assert (done.returncode, done.stdout) == (0, "no sessions of bob\n")


def test_a_deleted_session_is_not_missed(here: Path) -> None:
    within("sessions", "delete", "monday", "--yes", *WHO, cwd=here)
    done = within("sessions", "verify", "--json", *WHO, cwd=here)
    assert [each["session"] for each in json.loads(done.stdout)["sessions"]] == ["friday", "tuesday"]


def test_at_a_terminal_no_bar_stands_between_the_lines(here: Path) -> None:
    with Terminal("sessions", "verify", *WHO, cwd=here) as terminal:
        assert terminal.wait_for_exit() == 0
    assert terminal.shown.replace("\r\n", "\n") == (
        "friday: as it was written\nmonday: as it was written\ntuesday: as it was written\n"
        "3 sessions of alice, 0 with errors\n"
    )


async def test_lost_names_what_has_an_anchor_and_no_ledger(here: Path) -> None:
    async with HarnessAgent.builder().name("notes").model("offline").workspace(here / "ws").build() as agent:
        assert await agent.sessions("alice").lost() == []
        damage(here)
        assert sorted(await agent.sessions("alice").lost()) == ["monday", "tuesday"]
        assert await agent.sessions("bob").lost() == []


async def test_read_timed_gives_each_message_with_the_time_of_its_line(here: Path) -> None:
    lines = [json.loads(line) for line in (here / FOLDER / "monday.log.jsonl").read_bytes().split(b"\n")[:-1]]
    times = [line["timestamp"] for line in lines if line["type"] == "message" and line.get("via") != "hook"]
    async with HarnessAgent.builder().name("notes").model("offline").workspace(here / "ws").build() as agent:
        found = [(when, msg.text) async for when, msg in agent.sessions("alice").read_timed("monday")]
    assert found == list(zip(times, ["It rains.", "Noted: “It rains.”"], strict=True))
