"""`harness sessions …` from outside: check, go back, copy, name, move, count."""

import asyncio
import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import Terminal
from driver import harness as in_a_process
from driver import within as harness

from harness import CompactionConfig, HarnessAgent

WHO = ("--workspace", "ws", "--agent", "notes", "--user", "alice")
FOLDER = "ws/tenants/alice/agents/notes/sessions"


def harness_json(*words: str, cwd: Path) -> Any:
    done = harness(*words, "--json", cwd=cwd)
    assert done.returncode == 0
    return json.loads(done.stdout)


def say(cwd: Path, message: str, session: str = "monday") -> dict[str, Any]:
    return harness_json("chat", *WHO, "--session", session, "--message", message, cwd=cwd)


def sessions(command: str, *words: str, cwd: Path) -> Any:
    return harness_json("sessions", command, *words, *WHO, cwd=cwd)


def failed(command: str, *words: str, cwd: Path, code: int) -> str:
    done = harness("sessions", command, *words, *WHO, cwd=cwd)
    assert done.returncode == code
    return done.stderr


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """Two turns of alice."""
    say(tmp_path, "My name is Alice.")
    say(tmp_path, "It rains.")
    return tmp_path


def ledger(cwd: Path, session: str = "monday") -> Path:
    return cwd / FOLDER / f"{session}.log.jsonl"


def test_verify_is_0_for_a_whole_session_and_1_for_a_damaged_one(talk: Path) -> None:
    report = sessions("verify", "monday", cwd=talk)
    assert (report["ok"], report["findings"]) == (True, [])
    raw = ledger(talk).read_bytes()
    ledger(talk).write_bytes(raw.replace(b"rains", b"snows"))
    done = in_a_process("sessions", "verify", "monday", *WHO, "--json", cwd=talk)
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (1, False)
    shown = harness("sessions", "verify", "monday", *WHO, cwd=talk)
    assert shown.returncode == 1
    assert "edited" in shown.stdout
    assert "not as it was written" in shown.stdout


def test_a_ledger_that_notes_a_loss_is_not_called_as_it_was_written(talk: Path) -> None:
    lines = ledger(talk).read_bytes().split(b"\n")
    ledger(talk).write_bytes(b"\n".join(lines[:-3]) + b"\n")
    in_a_process("chat", *WHO, "--session", "monday", "--message", "On.", cwd=talk)
    shown = harness("sessions", "verify", "monday", *WHO, cwd=talk)
    assert shown.returncode == 0
    verdict = shown.stdout.strip().split("\n")[-1]
    assert verdict.endswith(
        f"as it was written since the damage that line {len(lines) - 2} notes; what was lost before that stays lost"
    )


def test_repair_brings_back_what_can_be_made_and_leaves_the_ledger(talk: Path) -> None:
    raw = ledger(talk).read_bytes()
    for name in ("monday.head.json", "monday.jsonl", "sessions.json"):
        (talk / FOLDER / name).unlink()
    assert harness("sessions", "verify", "monday", *WHO, cwd=talk).returncode == 1
    report = sessions("repair", "monday", cwd=talk)
    assert report["ok"] is True
    assert ledger(talk).read_bytes().startswith(raw)
    assert sessions("verify", "monday", cwd=talk)["ok"] is True


def test_turns_that_were_summed_up_are_shown_with_their_numbers(talk: Path) -> None:
    builder = HarnessAgent.builder().name("notes").model("offline").workspace(talk / "ws")
    agent = builder.compaction(CompactionConfig(keep_messages=2)).build()

    async def sum_up() -> None:
        async with agent:
            assert await agent.sessions("alice").compact("monday")

    asyncio.run(sum_up())
    say(talk, "And now?")
    found = sessions("turns", "monday", cwd=talk)["turns"]
    assert [(turn["number"], turn["asked"], turn["closed"]) for turn in found] == [
        (1, "My name is Alice.", True),
        (2, "It rains.", True),
        (3, "And now?", True),
    ]
    assert (
        f"#1    {found[0]['end']}  My name is Alice." in harness("sessions", "turns", "monday", *WHO, cwd=talk).stdout
    )
    sessions("branch", "monday", found[0]["end"], cwd=talk)
    assert [turn["number"] for turn in sessions("turns", "monday", cwd=talk)["turns"]] == [1]


def test_turns_show_what_the_person_asked_and_nothing_else_also_of_a_turn_that_was_cut_off(talk: Path) -> None:
    whole = [turn["asked"] for turn in sessions("turns", "monday", cwd=talk)["turns"]]
    say(talk, "What is cut off?")
    ledger = talk / FOLDER / "monday.log.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    asked = max(number for number, line in enumerate(lines) if json.loads(line)["type"] == "request_begin")
    ledger.write_bytes(b"".join(lines[: asked + 1]))
    found = sessions("turns", "monday", cwd=talk)["turns"]
    assert [turn["asked"] for turn in found] == [*whole, "What is cut off?"]
    assert found[-1]["closed"] is False


def test_turns_show_where_to_branch_and_branch_goes_back(talk: Path) -> None:
    first, _ = sessions("turns", "monday", cwd=talk)["turns"]
    assert (first["asked"], first["closed"]) == ("My name is Alice.", True)
    sessions("branch", "monday", first["end"], cwd=talk)
    assert [turn["asked"] for turn in sessions("turns", "monday", cwd=talk)["turns"]] == ["My name is Alice."]
    assert say(talk, "What is my name?")["reply"] == "You said: “My name is Alice.”"
    ways = sessions("branches", "monday", cwd=talk)["branches"]
    assert [(way["active"], way["title"]) for way in ways] == [(False, "My name is Alice."), (True, "What is my name?")]
    assert [line[0] for line in harness("sessions", "branches", "monday", *WHO, cwd=talk).stdout.splitlines()] == [
        " ",
        "*",
    ]
    assert sessions("verify", "monday", cwd=talk)["ok"] is True


def test_a_branch_within_a_turn_is_refused_with_the_nearest_end(talk: Path) -> None:
    first, _ = sessions("turns", "monday", cwd=talk)["turns"]
    assert first["end"] in failed("branch", "monday", first["id"], cwd=talk, code=1)
    failed("branch", "monday", "no-such-line", cwd=talk, code=2)


def test_fork_copies_up_to_a_turn(talk: Path) -> None:
    first, _ = sessions("turns", "monday", cwd=talk)["turns"]
    assert sessions("fork", "monday", "--at", first["end"], "--to", "copy", cwd=talk)["session_id"] == "copy"
    assert say(talk, "What is my name?", "copy")["reply"] == "You said: “My name is Alice.”"
    assert [turn["asked"] for turn in sessions("turns", "monday", cwd=talk)["turns"]] == [
        "My name is Alice.",
        "It rains.",
    ]
    made = harness("sessions", "fork", "monday", *WHO, cwd=talk)
    assert ledger(talk, made.stdout.strip()).is_file()


def test_a_turn_is_named_by_its_number_as_well(talk: Path) -> None:
    first, second = sessions("turns", "monday", cwd=talk)["turns"]
    assert sessions("fork", "monday", "--turn", "1", "--to", "copy", cwd=talk)["session_id"] == "copy"
    assert [turn["asked"] for turn in sessions("turns", "copy", cwd=talk)["turns"]] == ["My name is Alice."]
    assert sessions("branch", "monday", "--turn", "2", cwd=talk)["at"] == second["end"]
    assert sessions("branch", "monday", "--turn", "1", cwd=talk)["at"] == first["end"]
    assert "there is no turn 2: the conversation has 1" in failed("branch", "monday", "--turn", "2", cwd=talk, code=2)


def test_a_turn_is_named_in_one_way(talk: Path) -> None:
    [first, _] = sessions("turns", "monday", cwd=talk)["turns"]
    assert "both given" in failed("branch", "monday", first["end"], "--turn", "1", cwd=talk, code=2)
    assert "both given" in failed("fork", "monday", "--at", first["end"], "--turn", "1", cwd=talk, code=2)
    assert "give ENTRY or --turn N" in failed("branch", "monday", cwd=talk, code=2)


def test_label_names_a_line(talk: Path) -> None:
    first, _ = sessions("turns", "monday", cwd=talk)["turns"]
    assert sessions("label", "monday", first["end"], "introduced", cwd=talk)["name"] == "introduced"
    assert [turn.get("label") for turn in sessions("turns", "monday", cwd=talk)["turns"]] == ["introduced", None]
    assert "(introduced)" in harness("sessions", "turns", "monday", *WHO, cwd=talk).stdout


def test_label_names_the_end_of_a_turn_by_its_number(talk: Path) -> None:
    first, _ = sessions("turns", "monday", cwd=talk)["turns"]
    made = sessions("label", "monday", "introduced", "--turn", "1", cwd=talk)
    assert (made["target"], made["name"]) == (first["end"], "introduced")
    assert "give one of them" in failed("label", "monday", first["end"], "again", "--turn", "1", cwd=talk, code=2)
    assert "give ENTRY NAME, or --turn N NAME" in failed("label", "monday", "again", cwd=talk, code=2)


def test_a_label_is_a_target_like_its_line(talk: Path) -> None:
    first, _ = sessions("turns", "monday", cwd=talk)["turns"]
    sessions("label", "monday", "intro", "--turn", "1", cwd=talk)
    sessions("fork", "monday", "--at", "intro", "--to", "copy", cwd=talk)
    assert [turn["asked"] for turn in sessions("turns", "copy", cwd=talk)["turns"]] == ["My name is Alice."]
    assert sessions("label", "monday", "intro", "again", cwd=talk)["target"] == first["end"]
    assert sessions("branch", "monday", "again", cwd=talk)["at"] == first["end"]


def test_a_line_is_never_mistaken_for_another_that_is_called_like_it(talk: Path) -> None:
    first, second = sessions("turns", "monday", cwd=talk)["turns"]
    sessions("label", "monday", first["end"], second["end"], cwd=talk)
    assert sessions("branch", "monday", second["end"], cwd=talk)["at"] == second["end"]


def test_export_and_import_move_a_session_to_another_workspace(talk: Path) -> None:
    made = sessions("export", "monday", cwd=talk)
    assert made["file"] == str(talk / "monday.zip")
    with zipfile.ZipFile(talk / "monday.zip") as archive:
        assert archive.read("session.log.jsonl") == ledger(talk).read_bytes()
    there = talk / "there"
    there.mkdir()
    taken = harness_json("sessions", "import", str(talk / "monday.zip"), *WHO, cwd=there)
    assert taken["session_id"] == "monday"
    assert ledger(there).read_bytes() == ledger(talk).read_bytes()
    assert say(there, "What is my name?")["reply"] == "You said: “My name is Alice.”"


def test_import_refuses_a_second_one_a_strangers_and_what_is_no_bundle(talk: Path) -> None:
    sessions("export", "monday", "--out", "m.zip", cwd=talk)
    assert "already" in failed("import", "m.zip", cwd=talk, code=1)
    who = ("--workspace", "ws", "--agent", "notes", "--user", "bob")
    assert harness("sessions", "import", "m.zip", *who, cwd=talk).returncode == 2
    words = ("sessions", "import", "m.zip", "--take-over", "--as", "mine", *who)
    assert harness_json(*words, cwd=talk)["session_id"] == "mine"
    failed("import", "nothing.zip", cwd=talk, code=3)
    (talk / "text.zip").write_text("text")
    failed("import", "text.zip", cwd=talk, code=1)
    failed("import", "m.zip", "--as", "x", "--take-over", "--max-bytes", "10", cwd=talk, code=1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [(b'"user"', b'"us\xffer"', "does not verify"), (b'"format":1', b'"format":99', "bad.zip has format 99")],
    ids=["damaged", "newer"],
)
def test_a_bundle_is_refused_in_one_line_that_names_no_file_of_ours(
    talk: Path, old: bytes, new: bytes, said: str
) -> None:
    sessions("export", "monday", "--out", "m.zip", cwd=talk)
    with zipfile.ZipFile(talk / "m.zip") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    ledger_name, manifest = "session.log.jsonl", json.loads(members["manifest.json"])
    members[ledger_name] = members[ledger_name].replace(old, new, 1)
    for member in manifest["files"]:
        raw = members[member["path"]]
        member.update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(talk / "bad.zip", "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    refused = failed("import", "bad.zip", "--as", "new", "--take-over", cwd=talk, code=1)
    assert refused.startswith("error: ")
    assert said in refused
    assert (refused.count("\n"), ".tmp-" in refused) == (1, False)


def test_an_exported_file_is_not_overwritten(talk: Path) -> None:
    sessions("export", "monday", cwd=talk)
    assert "monday.zip" in failed("export", "monday", cwd=talk, code=1)


def test_an_id_makes_no_path_of_an_export(tmp_path: Path) -> None:
    say(tmp_path, "hi", "../up")
    assert sessions("export", "../up", cwd=tmp_path)["file"] == str(tmp_path / "%2e%2e%2fup.zip")


def test_delete_does_not_ask_where_nobody_is_there_and_needs_yes(talk: Path) -> None:
    asked = in_a_process("sessions", "delete", "monday", *WHO, cwd=talk)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "--yes" in asked.stderr
    assert ledger(talk).is_file()
    assert sessions("delete", "monday", "--yes", cwd=talk) == {"session": "monday", "deleted": True}
    assert not ledger(talk).exists()
    failed("delete", "monday", "--yes", cwd=talk, code=3)


@pytest.mark.parametrize(("answer", "left"), [("n\n", True), ("y\n", False)])
def test_delete_asks_at_a_terminal(talk: Path, answer: str, left: bool) -> None:
    with Terminal("sessions", "delete", "monday", *WHO, cwd=talk) as terminal:
        terminal.wait_for("Remove monday for good?")
        terminal.type(answer)
        assert terminal.wait_for_exit() == 0
    assert ledger(talk).exists() is left


def test_sessions_of_the_java_harness_are_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "ws/alice/agents/notes/sessions"
    folder.mkdir(parents=True)
    line = {"type": "message", "id": "e1", "timestamp": 1767323045.5, "role": "USER", "content": "My name is Alice."}
    (folder / "old.log.jsonl").write_text(json.dumps(line) + "\n")
    assert sessions("import-java", cwd=tmp_path) == {"session_ids": ["old"]}
    assert harness("sessions", "import-java", *WHO, cwd=tmp_path).stdout == "nothing new was found\n"
    assert say(tmp_path, "What is my name?", "old")["reply"] == "You said: “My name is Alice.”"


def test_usage_counts_one_session_and_all(talk: Path) -> None:
    say(talk, "And another.", "tuesday")
    one, whole = sessions("usage", "monday", cwd=talk), sessions("usage", cwd=talk)
    assert (one["billed"]["requests"], whole["billed"]["requests"]) == (2, 3)
    assert sorted(whole["by_session"]) == ["monday", "tuesday"]
    assert len(sessions("usage", "monday", "--requests", cwd=talk)["requests"]) == 2
    shown = harness("sessions", "usage", "--requests", *WHO, cwd=talk).stdout
    assert [word for word in ("billed", "active", "monday", "tuesday", "execute") if word not in shown] == []


@pytest.mark.parametrize(
    "words",
    [("verify",), ("repair",), ("turns",), ("branch", "x"), ("fork",), ("label", "x", "name"), ("export",), ("usage",)],
    ids=lambda words: words[0],
)
def test_a_session_that_is_not_there_is_exit_3(tmp_path: Path, words: tuple[str, ...]) -> None:
    failed(words[0], "nowhere", *words[1:], cwd=tmp_path, code=3)


def test_looking_at_what_is_not_there_makes_no_files(tmp_path: Path) -> None:
    for command in ("verify", "turns", "export", "usage"):
        failed(command, "nowhere", cwd=tmp_path, code=3)
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_a_session_steers_the_terminal(tmp_path: Path) -> None:
    say(tmp_path, "\x1b[2Jhello\x07", "s\x1b[31m")
    for words in (("turns", "s\x1b[31m"), ("verify", "s\x1b[31m"), ("usage",), ("export", "s\x1b[31m")):
        shown = harness("sessions", *words, *WHO, cwd=tmp_path).stdout
        assert [char for char in shown if not char.isprintable() and char != "\n"] == []


def test_a_list_comes_in_pages_newest_first(tmp_path: Path) -> None:
    for session in ("monday", "tuesday", "wednesday"):
        say(tmp_path, "It rains.", session)
    assert [each["id"] for each in sessions("list", cwd=tmp_path)["sessions"]] == ["wednesday", "tuesday", "monday"]
    page = sessions("list", "--limit", "1", "--after", "wednesday", cwd=tmp_path)
    assert [each["id"] for each in page["sessions"]] == ["tuesday"]
    assert sessions("list", "--after", "monday", cwd=tmp_path) == {"sessions": []}
    assert "there is no session 'sunday' any more" in failed("list", "--after", "sunday", cwd=tmp_path, code=3)
