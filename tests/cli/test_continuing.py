"""`harness sessions rename|labels|compact|switch-model|handoff|seen` from outside."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import within

WHO = ("--workspace", "ws", "--agent", "notes", "--user", "alice")
FOLDER = "ws/tenants/alice/agents/notes/sessions"


def sessions(line: str, cwd: Path) -> Any:
    done = within("sessions", *shlex.split(line), *WHO, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shown(line: str, cwd: Path) -> str:
    done = within("sessions", *shlex.split(line), *WHO, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def say(cwd: Path, message: str, session: str = "monday") -> dict[str, Any]:
    done = within("chat", *WHO, "--session", session, "--message", message, "--json", cwd=cwd)
    reply: dict[str, Any] = json.loads(done.stdout)
    return reply


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    say(tmp_path, "My name is Alice.")
    return tmp_path


def entries(cwd: Path, session: str = "monday") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (cwd / FOLDER / f"{session}.log.jsonl").read_bytes().split(b"\n")[:-1]]


def test_a_title_is_shown_by_the_list_and_survives_it(talk: Path) -> None:
    assert sessions("rename monday 'About Alice'", talk) == {"session": "monday", "title": "About Alice"}
    (talk / FOLDER / "sessions.json").unlink()
    [info] = sessions("list", talk)["sessions"]
    assert (info["title"], info["turns"]) == ("About Alice", 1)


def test_labels_are_listed_with_their_lines(talk: Path) -> None:
    assert sessions("labels monday", talk) == {"session": "monday", "labels": []}
    assert shown("labels monday", talk) == "no line of monday has a name\n"
    end = sessions("turns monday", talk)["turns"][0]["end"]
    shown(f"label monday {end} introduced", talk)
    assert sessions("labels monday", talk)["labels"] == [{"name": "introduced", "target": end}]
    assert shown("labels monday", talk) == f"{end}  introduced\n"


def test_compact_sums_up_what_is_old_enough_and_says_whether_anything_was(talk: Path) -> None:
    assert sessions("compact monday", talk) == {"session": "monday", "compacted": False}
    for number in range(15):
        say(talk, f"Fact number {number}.")
    assert sessions("compact monday --instructions 'Keep the names.'", talk)["compacted"] is True
    [boundary] = [entry for entry in entries(talk) if entry["type"] == "compaction"]
    assert boundary["model"] == "offline:offline"
    assert len(sessions("turns monday", talk)["turns"]) == 16
    assert shown("compact monday", talk) == "nothing was summed up: no turn is old enough\n"


def test_switch_model_is_noted_once(talk: Path) -> None:
    assert sessions("switch-model monday offline", talk)["compacted"] is False
    assert [entry for entry in entries(talk) if entry.get("kind") == "model_switch"] == []
    assert shown("switch-model monday offline --no-compact", talk) == "monday goes on with offline\n"
    nothing = "nothing was summed up: no turn is old enough"
    assert shown("switch-model monday offline", talk) == f"monday goes on with offline; {nothing}\n"


def test_handoff_begins_a_session_that_names_the_old_one(talk: Path) -> None:
    before = entries(talk)
    assert sessions("handoff monday --to tuesday", talk)["session_id"] == "tuesday"
    assert shown("show tuesday", talk) == "nothing was said in tuesday yet\n"
    say(talk, "Where were we?", "tuesday")
    [asked, _] = sessions("show tuesday", talk)["messages"]
    assert asked["content"][0]["text"].startswith('[handoff_from]\nsession: "monday"\n')
    assert entries(talk) == before
    made = shown("handoff monday", talk).strip()
    assert entries(talk, made)[0]["parent"]["session"] == "monday"


def test_seen_shows_what_the_model_saw_at_the_newest_request_or_at_a_line(talk: Path) -> None:
    first = say(talk, "It rains.")["entry_id"]
    say(talk, "And now?")
    newest = sessions("seen monday", talk)
    assert newest["exact"] is True
    assert [message["content"][0]["text"] for message in newest["messages"]][::2] == [
        "My name is Alice.", "It rains.", "And now?",
    ]  # fmt: skip
    earlier = sessions(f"seen monday {first}", talk)
    assert len(earlier["messages"]) < len(newest["messages"])
    assert shown(f"seen monday {first}", talk).endswith(f"request {earlier['request']}: exactly this was sent\n")


def test_seen_is_1_where_the_ledger_cannot_tell(talk: Path) -> None:
    ledger = talk / FOLDER / "monday.log.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"Alice.", b"Malice", 1))
    done = within("sessions", "seen", "monday", *WHO, cwd=talk)
    assert done.returncode == 1
    assert "NOT exactly what was sent" in done.stdout


def test_a_session_without_a_request_has_nothing_that_a_model_saw(talk: Path) -> None:
    shown("handoff monday --to tuesday", talk)
    done = within("sessions", "seen", "tuesday", *WHO, cwd=talk)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: session 'tuesday' has no model request yet; ")


def test_search_looks_into_one_session_if_told_so(talk: Path) -> None:
    say(talk, "My name is Alice, still.", "tuesday")
    hits = sessions("search Alice", talk)["hits"]
    assert {hit["session_id"] for hit in hits} == {"monday", "tuesday"}
    assert {hit["session_id"] for hit in sessions("search Alice --session tuesday", talk)["hits"]} == {"tuesday"}
