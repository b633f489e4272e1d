"""The usual places: found by home and environment, listed by heads and tails, chosen by nobody but the caller."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ConfigError, PersistenceError, TranscriptRefused
from harness.filesystem import disk
from harness.filesystem.disk import DirItem
from harness.transcripts import candidates, discover, read
from harness.transcripts.discovery import usual_listing
from harness.transcripts.listing import listing
from harness.transcripts.times import day_of, stamp

DATA = Path(__file__).resolve().parents[1] / "data" / "transcripts"


def claude(text: str, day: int, cwd: str = "/srv/demo", session: str = "s") -> bytes:
    common = {"sessionId": session, "cwd": cwd, "timestamp": f"2026-03-{day:02}T09:00:00.000Z", "gitBranch": "main"}
    line = {"type": "user", "uuid": f"u{day}", "message": {"role": "user", "content": text}, **common}
    return json.dumps(line).encode() + b"\n"


def put(path: Path, *lines: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def test_sessions_of_several_harnesses_are_found_the_newest_first(tmp_path: Path) -> None:
    put(tmp_path / ".claude/projects/-srv-demo/one.jsonl", claude("Sort it.", 1))
    rollout = {
        "timestamp": "2026-03-05T09:00:00.000Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": "x"},
    }
    put(tmp_path / ".codex/sessions/2026/03/05/rollout-a.jsonl", json.dumps(rollout).encode())
    shutil.copytree(DATA / "penguin", tmp_path / ".penguin/data/p/agents/a/traces")

    found = discover(home=tmp_path, env={})

    assert [(one.format, one.title) for one in found] == [
        ("penguin", "Read a.txt"),
        ("codex", "x"),
        ("claude", "Sort it."),
    ]
    assert (found[2].cwd, found[2].branch, found[2].last_ts) == ("/srv/demo", "main", "2026-03-01T09:00:00.000Z")


def test_the_environment_names_other_places(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere/projects/p/one.jsonl", claude("Here.", 1))

    found = discover(home=tmp_path / "home", env={"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")})

    assert [one.title for one in found] == ["Here."]


def test_sessions_can_be_asked_for_by_folder_and_format(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/projects/p"
    put(folder / "one.jsonl", claude("Mine.", 1, "/srv/mine"))
    put(folder / "two.jsonl", claude("Other.", 2, "/srv/other"))

    assert [one.title for one in discover(home=tmp_path, env={}, cwd="/srv/mine")] == ["Mine."]
    assert discover(home=tmp_path, env={}, formats=["codex"]) == []
    with pytest.raises(ConfigError, match="no transcript format is called 'word'"):
        discover(home=tmp_path, env={}, formats=["word"])


def close(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let nobody list the folders of a name."""
    as_it_was = disk.list_folder

    def refused(path: Path) -> list[DirItem]:
        if path.name == name:
            raise PersistenceError(f"cannot list {path}: permission denied")
        return as_it_was(path)

    monkeypatch.setattr(disk, "list_folder", refused)


def test_a_folder_that_may_not_be_listed_takes_no_other_away_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / ".claude/projects/open/one.jsonl", claude("Sort it.", 1))
    put(tmp_path / ".claude/projects/secret/two.jsonl", claude("Other.", 2))
    close(monkeypatch, "secret")

    usual, named = usual_listing(home=tmp_path, env={}), listing(tmp_path / ".claude")

    for found in (usual, named):
        assert [one.title for one in found.sessions] == ["Sort it."]
        assert found.closed == (str(tmp_path / ".claude/projects/secret"),)
        assert found.note == "what may not be listed was passed over: secret"


@pytest.mark.parametrize("where", ["/dev/null", "bad\0name", "/" + "a" * 5000, "~nobody-here/x"])
@pytest.mark.parametrize("variable", ["HERMES_HOME", "CLAUDE_CONFIG_DIR", "PENGUIN_HOME", "HARNESS_WORKSPACE"])
def test_a_setting_that_leads_to_no_folder_takes_no_other_place_away(tmp_path: Path, variable: str, where: str) -> None:
    put(tmp_path / ".claude/projects/p/one.jsonl", claude("Sort it.", 1))

    assert [one.title for one in discover(home=tmp_path, env={variable: where})] == ["Sort it."]


def test_sub_agents_are_listed_only_when_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/projects/p"
    put(folder / "one.jsonl", claude("Parent.", 1, session="one"))
    put(folder / "agent-a1b2c3d4.jsonl", claude("Child.", 2, session="one"))

    assert [one.session_id for one in discover(home=tmp_path, env={})] == ["one"]
    everything = discover(home=tmp_path, env={}, subagents=True)
    assert [(one.session_id, one.subagent_of) for one in everything] == [("agent-a1b2c3d4", "one"), ("one", None)]
    assert read(folder).session_id == "one"


def test_looking_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path / ".claude/projects/p/one.jsonl", claude("Sort it.", 1))
    put(tmp_path / ".claude/.credentials.json", b'{"token": "sk-secret"}')
    before = {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in sorted(tmp_path.rglob("*"))}

    found = discover(home=tmp_path, env={})

    assert {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in sorted(tmp_path.rglob("*"))} == before
    assert "sk-secret" not in str(found)


def test_listing_reads_heads_and_tails_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [claude(f"line {n} " + "x" * 1000, 1 + n % 9) for n in range(20_000)]
    put(tmp_path / "one.jsonl", *lines)
    taken: list[int] = []
    whole = disk.read

    def counted(path: Path, start: int = 0, length: int | None = None) -> bytes:
        data = whole(path, start, length)
        taken.append(len(data))
        return data

    monkeypatch.setattr(disk, "read", counted)

    found = candidates(tmp_path / "one.jsonl")

    assert found[0].title.startswith("line 0")
    assert found[0].last_ts == "2026-03-09T09:00:00.000Z"
    assert sum(taken) < 2_000_000 < found[0].size


def test_a_folder_of_several_sessions_is_an_error_that_lists_them(tmp_path: Path) -> None:
    put(tmp_path / "one.jsonl", claude("First.", 1))
    put(tmp_path / "two.jsonl", claude("Second.", 2))
    put(tmp_path / "notes.json", b"{}")

    with pytest.raises(TranscriptRefused, match=r"holds 2 sessions(.|\n)*two.*Second.(.|\n)*one.*First.") as refused:
        read(tmp_path)
    assert [one.session_id for one in refused.value.candidates] == ["two", "one"]
    assert read(tmp_path, "one").turns[0].text == "First."
    with pytest.raises(
        TranscriptRefused, match=r"holds no session 'three'; name one of those it holds:\n  two .*\n  one "
    ) as missing:
        read(tmp_path, "three")
    assert missing.value.code == "no_such_session"


def rollout(session: str, text: str) -> bytes:
    at = "2026-03-05T09:00:00.000Z"
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    lines = [
        {"timestamp": at, "type": "session_meta", "payload": {"id": session, "timestamp": at, "cwd": "/srv/demo"}},
        {"timestamp": at, "type": "response_item", "payload": message},
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_sessions_of_one_id_in_several_files_are_all_there(tmp_path: Path) -> None:
    first = put(tmp_path / "rollout-a.jsonl", rollout("same", "First."))
    put(tmp_path / "later/rollout-b.jsonl", rollout("same", "Second."))

    found = candidates(tmp_path)

    assert sorted((one.session_id, one.title) for one in found) == [("same", "First."), ("same", "Second.")]
    assert read(first, "same").turns[0].text == "First."
    with pytest.raises(TranscriptRefused, match=r"holds 2 sessions 'same'; name the file of one:") as refused:
        read(tmp_path, "same")
    assert refused.value.code == "several_sessions"
    assert [one.path for one in refused.value.candidates] == [one.path for one in found]
    assert all(f"  {one.title}  {one.path}" in str(refused.value) for one in found)


def test_the_shards_of_one_session_are_one_and_those_of_another_folder_another(tmp_path: Path) -> None:
    for agent in ("a", "b"):
        shutil.copytree(DATA / "penguin", tmp_path / agent / "traces")
    alone = candidates(tmp_path / "a")

    assert len(alone) == len({one.session_id for one in alone})
    assert len(candidates(tmp_path)) == 2 * len(alone)


def test_a_working_directory_stands_for_the_sessions_that_ran_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    put(tmp_path / "config/projects/p/one.jsonl", claude("Mine.", 1, str(work)))

    assert read(work).turns[0].text == "Mine."

    put(tmp_path / "config/projects/p/two.jsonl", claude("Mine too.", 2, str(work)))
    with pytest.raises(TranscriptRefused, match="holds 2 sessions"):
        read(work)


def test_a_folder_without_sessions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(TranscriptRefused) as refused:
        read(tmp_path)
    assert refused.value.code == "no_transcript"


def test_b66_times_in_any_unit_are_read_and_unknown_ones_stay_unknown(shared: Path) -> None:
    cases: list[dict[str, Any]] = json.loads((shared / "cases/B66/stamps.json").read_bytes())

    found = [stamp(case["in"]) for case in cases]

    expected = [case["out"] and re.sub(r":00Z$", ":00.000Z", case["out"]) for case in cases]
    assert found == expected


def test_b66_no_record_is_lost_because_of_its_time(shared: Path) -> None:
    transcript = read(shared / "cases/B66/stamps.jsonl")

    assert transcript.stats()["prompts"] == 15
    assert transcript.stats()["bad_lines"] == 0
    assert sum(warning.kind == "bad_time" for warning in transcript.warnings) == 6
    assert min(turn.at or "" for turn in transcript.turns) == ""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia"])
def test_b64_each_time_falls_on_the_day_of_its_zone(shared: Path, zone: str) -> None:
    expected = json.loads((shared / "cases/B64/expected.json").read_bytes())["read"]["days.jsonl"]["messages_per_day"]

    days: dict[str, int] = {}
    for turn in read(shared / "cases/B64/days.jsonl").turns:
        day = day_of(turn.at or "", zone)
        days[day] = days.get(day, 0) + 1

    assert days == expected[zone]
