"""`harness transcripts …` from outside: exit codes, JSON, and a terminal that nothing in a session can steer."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "transcripts"))
from driver import Terminal, harness, harness_json
from sample_session import SESSION, answered, call, result, said, write

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
CODES = "\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b31m\u202eabc\u2066\rforged"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with one session in the usual place of Claude Code."""
    folder = tmp_path / "home/.claude/projects/-srv-shop"
    folder.mkdir(parents=True)
    write(folder)
    return tmp_path / "home"


def transcripts(*words: str, cwd: Path, **env: str):
    return harness("transcripts", *words, cwd=cwd, **env)


def test_list_finds_the_usual_places(tmp_path: Path, home: Path) -> None:
    found = harness_json("transcripts", "list", cwd=tmp_path, HOME=str(home))
    assert found["total"] == 1
    assert [(one["format"], one["session_id"], one["title"]) for one in found["sessions"]] == [
        ("claude", SESSION, "Look at the shop.")
    ]


def test_list_of_a_folder_prints_its_sessions(tmp_path: Path) -> None:
    path = write(tmp_path)
    done = transcripts("list", ".", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f"claude    2026-03-01T10:00:13  {SESSION}  Look at the shop.\n          {path.name}\n")


def test_list_keeps_to_a_format(tmp_path: Path) -> None:
    write(tmp_path)
    assert harness_json("transcripts", "list", ".", "--format", "codex", cwd=tmp_path)["sessions"] == []


@pytest.fixture
def same_names(tmp_path: Path) -> Path:
    """Two users with two agents, each with a session `monday`."""
    for user in ("alice", "bob"):
        for agent in ("one", "two"):
            who = ("--user", user, "--agent", agent, "--session", "monday", "--workspace", "ws")
            assert harness("chat", *who, "--message", f"I am {user} with {agent}.", cwd=tmp_path).returncode == 0
    return tmp_path


def test_sessions_of_one_name_are_all_listed_searched_and_counted(same_names: Path) -> None:
    titles = [f"I am {user} with {agent}." for user in ("alice", "bob") for agent in ("one", "two")]
    listed = harness_json("transcripts", "list", "ws", "ws/tenants/bob", cwd=same_names)["sessions"]
    assert sorted((one["session_id"], one["title"]) for one in listed) == [("monday", title) for title in titles]
    hits = harness_json("transcripts", "search", "i am", "ws", cwd=same_names)["hits"]
    assert sorted(hit["snippet"] for hit in hits if hit["kind"] == "prompt") == titles
    rows = harness_json("transcripts", "stats", "ws", cwd=same_names)["sessions"]
    assert len({row["file"] for row in rows}) == len(rows) == 4


@pytest.mark.parametrize("words", [("show", "ws"), ("show", "ws", "-s", "monday"), ("convert", "ws", "-s", "monday")])
def test_a_name_that_several_sessions_have_is_no_choice(same_names: Path, words: tuple[str, ...]) -> None:
    done = transcripts(*words, cwd=same_names)
    assert (done.returncode, done.stdout) == (2, "")
    first, *lines = done.stderr.splitlines()
    assert first.startswith("error: ws holds 4 sessions")
    assert sorted(line.split()[-1] for line in lines) == [
        f"ws/tenants/{user}/agents/{agent}/sessions/monday.log.jsonl"
        for user in ("alice", "bob")
        for agent in ("one", "two")
    ]
    file = "ws/tenants/bob/agents/two/sessions/monday.log.jsonl"
    shown = harness_json("transcripts", "show", file, "-s", "monday", cwd=same_names)
    assert (shown["path"], shown["title"]) == (file, "I am bob with two.")


def test_search_gives_the_turns_and_what_was_covered(tmp_path: Path) -> None:
    path = write(tmp_path)
    found = harness_json("transcripts", "search", "A.TXT", ".", cwd=tmp_path)
    assert [(hit["kind"], hit["snippet"]) for hit in found["hits"]] == [
        ("results", "a.txt"),
        ("answer", "There is a.txt."),
        ("answer", "command: cat a.txt"),
    ]
    assert (found["sessions"], found["searched"], found["failed"]) == (1, 1, 0)
    assert found["covered_bytes"] == path.stat().st_size


@pytest.mark.parametrize("query", ["", "  ", "\t"])
def test_a_search_for_nothing_is_wrong_usage(tmp_path: Path, query: str) -> None:
    write(tmp_path)
    done = transcripts("search", query, ".", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["type"]) == (2, "ConfigError")
    assert "there is nothing to look for; give a word" in done.stderr


def test_show_prints_what_was_said_with_the_outcome_of_calls(tmp_path: Path) -> None:
    done = transcripts("show", str(write(tmp_path)), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "[person]  2026-03-01 10:00:02\nLook at the shop.\n",
        "  failed: failed badly\n",
        "  open: no result\n",
    ):
        assert words in done.stdout
    assert "  thinking: withheld by the provider\n" in done.stdout


def test_show_of_the_end_says_that_there_is_more(tmp_path: Path) -> None:
    shown = harness_json("transcripts", "show", str(write(tmp_path)), "--last", "2", cwd=tmp_path)
    assert [turn["kind"] for turn in shown["turns"]] == ["prompt", "answer"]
    assert (shown["earlier"], shown["session_id"]) == (True, SESSION)


def test_stats_has_one_object_a_session_with_the_columns_of_the_census(tmp_path: Path) -> None:
    path = write(tmp_path)
    [row] = harness_json("transcripts", "stats", path.name, cwd=tmp_path)["sessions"]
    assert list(row)[:6] == ["file", "session_id", "format", "bytes", "lines", "bad_lines"]
    assert (row["file"], row["prompts"], row["tool_calls"], row["calls_open"], row["tok_out"]) == (
        path.name,
        3,
        3,
        1,
        20,
    )


def test_stats_of_a_database_names_each_of_its_sessions(shared: Path, tmp_path: Path) -> None:
    path = shared / "traces/opencode/opencode-1.18.33-small.db"
    rows = harness_json("transcripts", "stats", str(path), cwd=tmp_path)["sessions"]
    assert sorted(row["file"].split("#")[1] for row in rows) == sorted(row["session_id"] for row in rows)
    assert len(rows) == 3


def test_stats_goes_on_behind_a_file_that_is_none(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "note.txt").write_text("hello\n")
    done = transcripts("stats", "note.txt", path.name, "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == 2
    assert [row["session_id"] for row in told["sessions"]] == [SESSION]
    assert [(one["file"], one["type"]) for one in told["errors"]] == [("note.txt", "TranscriptRefused")]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("stats", "nowhere"), 3),
        (("import", "nowhere"), 3),
        (("convert", "session.jsonl", "--to", "pdf"), 2),
        (("convert", "session.jsonl", "--redact-pattern", "("), 2),
        (("list", "--format", "fax"), 2),
        (("show", "session.jsonl", "--session", "other"), 2),
    ],
)
def test_wrong_usage_is_2_and_what_is_missing_3(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    write(tmp_path, name="session.jsonl")
    done = transcripts(*words, cwd=tmp_path, HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr


def test_convert_writes_and_reports(tmp_path: Path) -> None:
    made = harness_json("transcripts", "convert", str(write(tmp_path)), "--to", "markdown", cwd=tmp_path)
    assert (made["target"], made["out"], made["left_out"]["media"]) == ("markdown", f"{SESSION}.md", 2)
    assert (tmp_path / f"{SESSION}.md").stat().st_size == made["files"][0]["bytes"]


def test_convert_overwrites_only_by_force(tmp_path: Path) -> None:
    words = ("convert", str(write(tmp_path)), "-o", "page.html")
    assert transcripts(*words, cwd=tmp_path).returncode == 0
    again = transcripts(*words, cwd=tmp_path)
    assert (again.returncode, again.stderr.split(";")[0]) == (1, "error: page.html is there already")
    assert transcripts(*words, "--force", cwd=tmp_path).returncode == 0


def test_convert_says_whether_something_was_redacted(tmp_path: Path) -> None:
    source = str(write(tmp_path))
    plain = transcripts("convert", source, "-o", "1.html", cwd=tmp_path)
    redacted = transcripts("convert", source, "-o", "2.html", "--redact-pattern", "shop", cwd=tmp_path)
    assert plain.stdout.endswith("nothing was redacted; --redact takes out keys and tokens\n")
    assert redacted.stdout.endswith("redacted: 3 places\n")
    assert "shop" not in (tmp_path / "2.html").read_text()


def test_an_imported_session_can_be_continued(tmp_path: Path) -> None:
    lines = [said(1, "My name is Alice."), answered(2, "m", {"type": "text", "text": "Noted."})]
    source = str(write(tmp_path, lines))
    who = ("--workspace", "ws", "--agent", "notes", "--user", "alice")
    made = harness_json("transcripts", "import", source, "--as", "old", *who, cwd=tmp_path)
    assert (made["session_id"], made["messages"], made["open_calls"]) == ("old", 2, 0)
    reply = harness_json("chat", *who, "--session", "old", "--message", "What is my name?", cwd=tmp_path)
    assert reply["reply"] == "You said: “My name is Alice.”"
    assert [one["id"] for one in harness_json("sessions", "list", *who, cwd=tmp_path)["sessions"]] == ["old"]


def test_an_import_says_how_many_messages_there_are_and_whose_time_they_have(tmp_path: Path) -> None:
    answer = answered(3, "m", {"type": "text", "text": "Hello."})
    lines = [said(1, "<system-reminder>Be kind.</system-reminder>"), said(2, "Hi."), answer]
    done = transcripts("import", str(write(tmp_path, lines)), "--as", "old", "--workspace", "ws", cwd=tmp_path)
    assert "session old: 2 messages, of them 1 prompt; the new ledger verifies\nits lines have the time" in done.stdout
    shown = harness_json("sessions", "show", "old", "--workspace", "ws", cwd=tmp_path)
    assert len(shown["messages"]) == 2


def test_a_session_with_an_open_call_can_be_continued(tmp_path: Path) -> None:
    source = str(write(tmp_path))
    harness_json("transcripts", "import", source, "--as", "old", "--workspace", "ws", cwd=tmp_path)
    chat = ("chat", "--workspace", "ws", "--session", "old")
    assert harness(*chat, "--message", "Hello.", cwd=tmp_path).returncode == 0


def test_an_import_never_writes_over_a_session(tmp_path: Path) -> None:
    words = ("import", str(write(tmp_path)), "--as", "old", "--workspace", "ws")
    assert transcripts(*words, cwd=tmp_path).returncode == 0
    again = transcripts(*words, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (1, "")
    assert "there is a session 'old' already" in again.stderr


def test_a_bundle_goes_in_only_undamaged(tmp_path: Path) -> None:
    transcripts("convert", str(write(tmp_path)), "--to", "bundle", "-o", "b", cwd=tmp_path)
    assert transcripts("import", "b", "--as", "one", "--workspace", "ws", cwd=tmp_path).returncode == 0
    text = (tmp_path / "b/transcript.jsonl").read_text()
    (tmp_path / "b/transcript.jsonl").write_text(text.replace("Open it.", "Shut it."))
    done = transcripts("import", "b", "--as", "two", "--workspace", "ws", cwd=tmp_path)
    assert done.returncode == 1
    assert "its bytes have changed" in done.stderr


def test_nothing_in_a_session_steers_the_terminal(tmp_path: Path) -> None:
    lines = [
        said(1, f"look {CODES}", cwd=CODES, gitBranch=CODES),
        answered(
            2,
            "m",
            {"type": "thinking", "thinking": CODES},
            {"type": "text", "text": CODES},
            call(CODES, **{CODES: CODES}),
        ),
        said(3, [result(CODES, CODES)]),
        said(4, f"<x-{CODES}>y</x-{CODES}>"),
    ]
    lines[1]["message"]["content"][2]["name"] = lines[1]["message"]["model"] = CODES
    write(tmp_path, lines, "s\x1b[2Jn.jsonl")
    for words in (("list", "."), ("show", "s\x1b[2Jn.jsonl"), ("search", "look", "."), ("stats", CODES)):
        done = transcripts(*words, cwd=tmp_path)
        assert done.stdout or done.stderr
        assert not STEERING.search((done.stdout + done.stderr).replace("\n", "")), words


@pytest.mark.parametrize("words", [("show", "s.jsonl"), ("stats", CODES)])
def test_codes_are_escaped_in_json(tmp_path: Path, words: tuple[str, ...]) -> None:
    write(tmp_path, [said(1, CODES)], "s.jsonl")
    done = transcripts(*words, "--json", cwd=tmp_path)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout)
    assert CODES[:4] in json.dumps(json.loads(done.stdout), ensure_ascii=False).encode().decode("unicode-escape")


def test_the_known_escape_codes_do_not_reach_the_terminal(shared: Path, tmp_path: Path) -> None:
    path = str(shared / "cases/B75/ansi.jsonl")
    for words in (("list", path), ("show", path), ("stats", path)):
        done = transcripts(*words, cwd=tmp_path)
        assert done.returncode == 0
        assert not STEERING.search((done.stdout + done.stderr).replace("\n", "")), words


def test_a_bar_is_shown_at_a_terminal_and_only_there(tmp_path: Path) -> None:
    path = write(tmp_path)
    piped = transcripts("stats", path.name, cwd=tmp_path)
    with Terminal("transcripts", "stats", path.name, cwd=tmp_path) as screen:
        screen.wait_for("counting")
        assert screen.wait_for_exit() == 0
    assert piped.stderr == ""


def test_convert_and_import_show_how_far_they_have_read(tmp_path: Path) -> None:
    path = write(tmp_path)
    for words in (("convert", path.name, "--out", "page.html"), ("import", path.name)):
        with Terminal("transcripts", *words, cwd=tmp_path) as screen:
            screen.wait_for("converting" if words[0] == "convert" else "reading")
            assert screen.wait_for_exit() == 0
    assert (tmp_path / "page.html").exists()


def test_files_that_a_list_did_not_look_at_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path)
    for number in range(5_000):
        (tmp_path / f"{number}.json").write_bytes(b"{}")
    os.utime(path, (1_900_000_000, 1_900_000_000))

    done = transcripts("list", ".", "--json", cwd=tmp_path)

    told = json.loads(done.stdout)
    assert ([one["session_id"] for one in told["sessions"]], told["files_left_out"]) == ([SESSION], 1)
    assert done.stderr == "warning: 1 older file was not looked at, only the newest 5,000; name a folder with fewer\n"


def test_a_place_that_is_no_folder_is_passed_over_and_said(tmp_path: Path, home: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    done = transcripts("list", "--json", cwd=tmp_path, HOME=str(home), PENGUIN_HOME=str(tmp_path / "file"))

    told = json.loads(done.stdout)
    assert (done.returncode, [one["session_id"] for one in told["sessions"]]) == (0, [SESSION])
    assert told["passed_over"] == [str(tmp_path / "file")]
    assert done.stderr == "warning: what may not be listed was passed over: file\n"
