"""The command line from outside: exit codes, JSON, and whose data it shows."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import ROOT, environment, harness, harness_json

WHO = ("--workspace", "ws", "--agent", "notes")


def say(cwd: Path, user: str, message: str, session: str = "monday") -> dict[str, object]:
    return harness_json("chat", *WHO, "--user", user, "--session", session, "--message", message, cwd=cwd)


def test_chat_remembers_in_the_next_process(tmp_path: Path) -> None:
    say(tmp_path, "alice", "My name is Alice.")
    reply = say(tmp_path, "alice", "What is my name?")
    assert reply["reply"] == "You said: “My name is Alice.”"


def test_chat_notes_how_it_fits_a_long_talk_in(tmp_path: Path) -> None:
    say(tmp_path, "alice", "My name is Alice.")
    harness_json(
        "chat", *WHO, "--user", "alice", "-s", "monday", "--context", "working-set", "--message", "Hi.", cwd=tmp_path
    )
    ledger = tmp_path / "ws/tenants/alice/agents/notes/sessions/monday.log.jsonl"
    entries = [json.loads(line) for line in ledger.read_bytes().split(b"\n")[:-1]]
    policies = [entry["policy"] for entry in entries if entry["type"] == "request_begin"]
    assert policies == ["compaction", "working_set"]


def test_chat_keeps_two_users_of_one_session_name_apart(tmp_path: Path) -> None:
    say(tmp_path, "alice", "My name is Alice.")
    assert say(tmp_path, "bob", "What is my name?")["reply"] == "I do not find that in this conversation."


def test_chat_gives_the_documented_json(tmp_path: Path) -> None:
    turn = say(tmp_path, "alice", "Good morning.")
    assert sorted(turn) == ["entry_id", "reply", "session_id", "usage", "warnings"]
    assert (turn["session_id"], turn["warnings"]) == ("monday", [])
    ledger = tmp_path / "ws/tenants/alice/agents/notes/sessions/monday.log.jsonl"
    entries = {entry["id"]: entry for entry in map(json.loads, ledger.read_bytes().split(b"\n")[:-1])}
    assert entries[turn["entry_id"]]["message"]["role"] == "assistant"


def test_chat_without_json_prints_the_answer_alone(tmp_path: Path) -> None:
    done = harness("chat", *WHO, "--session", "s", "--message", "Good morning.", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Noted: “Good morning.”\n", "")


@pytest.mark.parametrize(("words", "stdin"), [(("--message", "Good morning."), ""), ((), "Good morning.\n")])
def test_a_chat_without_a_session_says_beside_the_answer_which_one_it_made(
    tmp_path: Path, words: tuple[str, ...], stdin: str
) -> None:
    done = harness("chat", *WHO, *words, cwd=tmp_path, stdin=stdin)
    assert done.stdout == "Noted: “Good morning.”\n"
    [info] = harness_json("sessions", "list", *WHO, cwd=tmp_path)["sessions"]
    assert done.stderr == f"session {info['id']}\n"


def test_what_a_piped_chat_does_meanwhile_is_said_beside_the_answer(tmp_path: Path) -> None:
    said = '/tool read_file {"path":"nope.txt"}'
    done = harness("chat", *WHO, "--session", "s", "--message", said, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "· read_file …\n")
    assert done.stdout == "Error: nope.txt does not exist; list the folder to see what is there\n"


def test_chat_answers_each_line_of_a_pipe(tmp_path: Path) -> None:
    done = harness("chat", *WHO, cwd=tmp_path, stdin="My name is Alice.\n\nWhat is my name?")
    assert done.stdout == "Noted: “My name is Alice.”\nYou said: “My name is Alice.”\n"


def test_chat_over_a_pipe_gives_one_json_document(tmp_path: Path) -> None:
    document = harness_json("chat", *WHO, "--session", "s", cwd=tmp_path, stdin="My name is Alice.\nWhat is my name?\n")
    assert document["session_id"] == "s"
    assert [turn["reply"] for turn in document["turns"]] == [
        "Noted: “My name is Alice.”",
        "You said: “My name is Alice.”",
    ]


def test_a_chat_without_a_session_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    harness("chat", *WHO, "--message", "My name is Alice.", cwd=tmp_path)
    done = harness("chat", *WHO, "--message", "What is my name?", cwd=tmp_path)
    assert done.stdout == "I do not find that in this conversation.\n"


def test_who_and_where_come_from_the_environment(tmp_path: Path) -> None:
    env = {"HARNESS_WORKSPACE": "elsewhere", "HARNESS_AGENT": "notes", "HARNESS_USER": "carol"}
    harness_json("chat", "--session", "s", "--message", "Good morning.", cwd=tmp_path, **env)
    assert (tmp_path / "elsewhere/tenants/carol/agents/notes/sessions/s.log.jsonl").is_file()


def test_list_shows_the_sessions_of_one_user(tmp_path: Path) -> None:
    say(tmp_path, "alice", "My name is Alice.", "monday")
    say(tmp_path, "alice", "It rains.", "tuesday")
    say(tmp_path, "bob", "My name is Bob.", "friday")
    listed = harness_json("sessions", "list", *WHO, "--user", "alice", cwd=tmp_path)["sessions"]
    assert sorted((info["id"], info["title"], info["turns"]) for info in listed) == [
        ("monday", "My name is Alice.", 1),
        ("tuesday", "It rains.", 1),
    ]
    done = harness("sessions", "list", *WHO, "--user", "bob", cwd=tmp_path)
    assert "friday" in done.stdout
    assert "monday" not in done.stdout


def test_show_prints_what_was_said(tmp_path: Path) -> None:
    say(tmp_path, "alice", "My name is Alice.")
    done = harness("sessions", "show", "monday", *WHO, "--user", "alice", cwd=tmp_path)
    stamp = "20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
    said = [r"user: My name is Alice\.", r"assistant \(offline:offline\): Noted: “My name is Alice\.”"]
    assert re.fullmatch("".join(f"{stamp}  {line}\n" for line in said), done.stdout)
    shown = harness_json("sessions", "show", "monday", "--last", "1", *WHO, "--user", "alice", cwd=tmp_path)
    assert [message["role"] for message in shown["messages"]] == ["assistant"]


def test_show_prints_times_of_the_zone_that_was_named(tmp_path: Path) -> None:
    say(tmp_path, "alice", "My name is Alice.")
    words = ("sessions", "show", "monday", *WHO, "--user", "alice")
    there = harness(*words, cwd=tmp_path, HARNESS_ZONE="Asia/Kolkata").stdout
    assert [line[19:24] for line in there.splitlines()] == ["+0530", "+0530"]


def test_search_finds_only_what_the_user_may_see(tmp_path: Path) -> None:
    say(tmp_path, "alice", "The code word is blue-fox.")
    say(tmp_path, "bob", "The code word is red-owl.")
    hits = harness_json("sessions", "search", "code word", *WHO, "--user", "alice", cwd=tmp_path)["hits"]
    assert {hit["session_id"] for hit in hits} == {"monday"}
    assert any("blue-fox" in hit["snippet"] for hit in hits)
    assert "red-owl" not in str(hits)


def test_reading_makes_no_files(tmp_path: Path) -> None:
    harness("sessions", "list", *WHO, cwd=tmp_path)
    harness("sessions", "search", "anything", *WHO, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "list", "--no-such-option"),
        ("sessions", "show"),
        ("no-such-command",),
        ("chat", "--message", "hello", "--model", "no-such-model"),
        ("chat", "--message", "hello", "--user", ""),
        ("sessions", "search", "x", "--limit", "0"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2_and_no_traceback(words: tuple[str, ...], tmp_path: Path) -> None:
    done = harness(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_traceback_comes_with_debug(tmp_path: Path) -> None:
    done = harness("sessions", "show", "nowhere", *WHO, "--debug", cwd=tmp_path)
    assert done.returncode == 3
    assert "Traceback" in done.stderr


def test_words_of_users_cannot_steer_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2JMy name is \x9b31mEve\x07."
    say(tmp_path, "eve", evil, "s")
    who = (*WHO, "--user", "eve")
    for words in (
        ("sessions", "list"),
        ("sessions", "show", "s"),
        ("sessions", "search", "name"),
        ("chat", "--message", evil),
    ):
        shown = harness(*words, *who, cwd=tmp_path).stdout
        assert "Eve" in shown
        assert [char for char in shown if not char.isprintable() and char != "\n"] == []


def test_without_the_packages_of_the_command_line_there_is_one_sentence_and_exit_3(tmp_path: Path) -> None:
    for missing in ("typer", "rich"):
        code = f"import sys; sys.modules['{missing}'] = None; from harness.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == (
            f"error: the command line needs {missing}, which is missing: pip install 'dualtrack-harness[cli]'\n"
        )


def test_help_names_every_command(tmp_path: Path) -> None:
    done = harness("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert [name for name in ("quickstart", "chat", "sessions") if name not in done.stdout] == []


def test_the_version_is_the_one_of_the_package(tmp_path: Path) -> None:
    if not any(metadata.distributions(name="dualtrack-harness")):
        pytest.skip("this tree is not installed")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert harness("--version", cwd=tmp_path).stdout == f"harness {project['version']}\n"
