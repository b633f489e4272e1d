"""One small promise a format: what only that format has to be read right."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TranscriptRefused
from harness.transcripts import Transcript, find, page, read, stitched

DATA = Path(__file__).resolve().parents[1] / "data" / "transcripts"
VAK = DATA / "vak/vak-demo.jsonl"
PENGUIN = DATA / "penguin/2026-07-19/session-2026-07-18-23-59-50-1a2b3c4d_002.jsonl"


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def kinds(transcript: Transcript) -> list[str]:
    return [turn.kind for turn in transcript.turns]


def pi_message(role: str, content: Any, entry: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **fields}
    stamp = "2026-03-02T09:00:00.000Z"
    return {"type": "message", "id": entry, "parentId": parent, "timestamp": stamp, "message": message}


PI_HEAD = {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-03-02T09:00:00Z", "cwd": "/srv/demo"}


def test_pi_results_are_paired_arguments_kept_and_input_is_fresh(tmp_path: Path) -> None:
    call = {"type": "toolCall", "id": "call_1|fc_2", "name": "read", "arguments": {"path": "a.py"}}
    usage = {"input": 3, "output": 4, "cacheRead": 900, "cacheWrite": 5}

    transcript = read(
        write(
            tmp_path / "s.jsonl",
            PI_HEAD,
            pi_message("user", "go", "e1", None),
            pi_message("assistant", [call], "e2", "e1", model="demo", usage=usage),
            pi_message("toolResult", [{"type": "text", "text": "ok"}], "e3", "e2", toolCallId="call_1|fc_2"),
        )
    )

    assert kinds(transcript) == ["prompt", "answer", "results"]
    assert transcript.turns[1].blocks[0]["input"] == {"path": "a.py"}
    assert transcript.turns[1].message["usage"] == {"input": 3, "cacheRead": 900, "cacheWrite": 5, "output": 4}
    assert transcript.head.files == ("a.py",)


def test_a_pi_file_of_a_newer_version_is_read_and_says_so(tmp_path: Path) -> None:
    transcript = read(write(tmp_path / "s.jsonl", {**PI_HEAD, "version": 9}, pi_message("user", "hi", "e1", None)))

    assert [warning.kind for warning in transcript.warnings] == ["newer_version"]
    assert transcript.turns[0].text == "hi"


def test_a_command_the_person_ran_in_pi_is_shown_with_its_exit_code(tmp_path: Path) -> None:
    ran = pi_message("bashExecution", None, "e1", None, command="ls", output="a\n", exitCode=2)

    block = read(write(tmp_path / "s.jsonl", PI_HEAD, ran)).turns[0].blocks[0]

    assert block == {"type": "shell", "command": "ls", "output": "a\n", "exitCode": 2}


def test_openclaw_heartbeats_are_no_prompts_and_wrappers_not_in_the_title(tmp_path: Path) -> None:
    wrapped = (
        'Sender (untrusted metadata):\n```json\n{"label": "tui"}\n```\n\n[Mon 2026-03-09 15:38 GMT+8] good morning'
    )

    transcript = read(
        write(
            tmp_path / "s.jsonl",
            {"type": "custom", "customType": "model-snapshot", "id": "c", "parentId": None, "timestamp": 1},
            pi_message("user", "[OpenClaw heartbeat poll] anything?", "e1", "c"),
            pi_message("user", wrapped, "e2", "e1"),
        )
    )

    assert (transcript.format, kinds(transcript)) == ("openclaw", ["context", "prompt"])
    assert transcript.turns[1].text == wrapped
    assert transcript.head.title == "good morning"


def export(*parts: dict[str, Any]) -> dict[str, Any]:
    tokens = {"input": 5, "output": 6, "reasoning": 1, "cache": {"read": 2, "write": 0}}
    info = {"id": "m2", "role": "assistant", "modelID": "demo", "providerID": "x", "tokens": tokens, "time": {}}
    asked = {"id": "m1", "role": "user", "time": {"created": 1796061697506}}
    said = [{"type": "text", "text": "reminder", "synthetic": True}, {"type": "text", "text": "go"}]
    messages = [{"info": asked, "parts": said}, {"info": info, "parts": list(parts)}]
    return {"info": {"id": "ses_1", "title": "A title", "directory": "/srv/demo"}, "messages": messages}


def tool(status: str, name: str = "bash", **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": name, "callID": f"c-{status}-{name}", "state": {"status": status, **state}}


def test_opencode_errors_invalid_tools_and_running_calls_are_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    wrong = tool("completed", "invalid", input={"error": "no such tool"}, output="")
    ended = tool("completed", input={}, output="x", metadata={"exit": 3})
    path.write_text(json.dumps(export(tool("error", "read", error="not found"), wrong, ended, tool("running"))))

    transcript = read(path)
    calls = stitched(transcript.turns)[2]["content"]

    assert kinds(transcript) == ["context", "prompt", "answer", "results"]
    assert [call["result"]["content"][0]["text"] for call in calls[:3]] == ["not found", "no such tool", "x"]
    assert [call["result"]["isError"] for call in calls[:3]] == [True, True, False]
    assert calls[2]["result"]["exitCode"] == 3
    assert calls[3]["open"] is True
    assert (transcript.session_id, transcript.head.title) == ("ses_1", "A title")


def test_an_opencode_export_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    whole = json.dumps(export({"type": "text", "text": "done"}))
    path.write_text("Exporting session: ses_1\n" + whole[: whole.index('{"info": {"id": "m2"')])

    transcript = read(path)

    assert [turn.text for turn in transcript.turns] == ["reminder", "go"]
    assert [warning.kind for warning in transcript.warnings] == ["truncated"]


def test_a_hermes_export_holds_many_sessions_and_asks_which(tmp_path: Path) -> None:
    def session(key: str) -> dict[str, Any]:
        return {"session_id": key, "model": "demo", "source": "cli", "messages": [{"role": "user", "content": key}]}

    path = write(tmp_path / "export.jsonl", session("one"), session("two"))

    with pytest.raises(TranscriptRefused, match="holds 2 sessions") as refused:
        read(path)
    assert refused.value.code == "several_sessions"
    assert [one.session_id for one in refused.value.candidates] == ["one", "two"]
    assert read(path, "two").turns[0].text == "two"


def gemini(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"sessionId": "g1", "projectHash": "h", "startTime": "2026-04-29T21:39:22.319Z", "kind": "main"}, *lines]


def said(key: str, text: str, kind: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": key, "timestamp": "2026-04-29T21:39:33.155Z", "type": kind, "content": text, **more}


def test_gemini_lines_replace_take_back_and_start_anew(tmp_path: Path) -> None:
    path = write(
        tmp_path / "session-1.jsonl",
        *gemini(
            said("a", "first"),
            said("b", "draft", "gemini"),
            said("b", "better", "gemini"),
            said("c", "wrong turn"),
            said("d", "lost", "gemini"),
            {"$rewindTo": "c"},
            said("e", "second"),
        ),
    )

    assert [turn.text for turn in read(path).turns] == ["first", "better", "second"]

    with path.open("a") as file:
        file.write(json.dumps({"$set": {"messages": [said("z", "only this")]}}) + "\n")
    assert [turn.text for turn in read(path).turns] == ["only this"]


TORN = '{"id":"%s","timestamp":"2026-04-29T21:39:33.155Z","type":"us'


@pytest.mark.parametrize(
    ("lines", "left", "at"),
    [
        pytest.param(["a", "TORN x", "b", "c", "REWIND x", "d"], ["a", "d"], 6, id="its line is torn"),
        pytest.param(["a", "TORN x", "b", "TORN y", "c", "REWIND x", "d"], ["a", "b", "d"], 7, id="one of two torn"),
        pytest.param(
            ["a", "TORN x", "b", "TORN y", "c", "REWIND y", "d", "REWIND x"], ["a"], 9, id="one torn after another"
        ),
        pytest.param(["a", "TORN x", "b", "REWIND b", "c", "REWIND x", "d"], ["a", "d"], 7, id="behind a known one"),
        pytest.param(["a", "b", "TORN x", "c", "REWIND b", "d", "e", "REWIND x"], ["a", "d", "e"], 9, id="taken"),
        pytest.param(["a", "b", "REWIND x", "d"], ["a", "b", "d"], 4, id="it is nowhere"),
        pytest.param(["a", "TORN x", "b", "SET c", "d", "REWIND x"], ["c", "d"], 7, id="from before a checkpoint"),
    ],
)
def test_a_step_back_to_a_line_that_cannot_be_read_is_told_with_its_place_and_takes_back_what_is_surely_behind_it(
    tmp_path: Path, lines: list[str], left: list[str], at: int
) -> None:
    made: list[Any] = []
    for line in lines:
        what, _, key = line.rpartition(" ")
        forms = {"": said(key, key), "TORN": TORN % key, "REWIND": {"$rewindTo": key}}
        made.append({"$set": {"messages": [said(key, key)]}} if what == "SET" else forms[what])
    path = tmp_path / "session-1.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in gemini(*made)))

    found = read(path)

    assert [turn.text for turn in found.turns if turn.text in "abcde"] == left
    told = [warning for warning in found.warnings if warning.kind == "missing_entry"]
    assert told[-1].line == at
    assert "$rewindTo" in told[-1].text


@pytest.mark.parametrize("target", [7, None, {}, ["a"], ""])
def test_a_step_back_to_what_is_no_id_takes_nothing_back_and_is_told(tmp_path: Path, target: object) -> None:
    path = write(tmp_path / "session-1.jsonl", *gemini(said("a", "first"), {"$rewindTo": target}))

    found = read(path)

    assert [turn.text for turn in found.turns] == ["first"]
    assert [(warning.kind, warning.line) for warning in found.warnings] == [("missing_entry", 3)]


def test_gemini_results_stand_in_their_calls_and_an_open_one_stays_open(tmp_path: Path) -> None:
    response = [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}]
    calls = [
        {"id": "c1", "name": "ls", "args": {}, "status": "success", "result": response},
        {"id": "c2", "name": "ls", "args": {}, "status": "executing", "result": None},
    ]
    tokens = {"input": 10, "cached": 4, "output": 2, "thoughts": 1}
    path = write(tmp_path / "session-1.jsonl", *gemini(said("a", "", "gemini", toolCalls=calls, tokens=tokens)))

    transcript = read(path)

    shown = stitched(transcript.turns)[0]["content"]
    assert shown[0]["result"]["content"] == [{"type": "text", "text": "a.txt"}]
    assert shown[1]["open"] is True
    usage = {"input": 6, "cacheRead": 4, "cacheWrite": 0, "output": 2, "reasoning": 1}
    assert transcript.turns[0].message["usage"] == usage


def test_a_bundle_is_read_by_its_folder(shared: Path) -> None:
    transcript = read(shared / "traces/sts/bundle-claude")

    assert (transcript.format, transcript.head.harness) == ("sts", "Claude Code")
    assert transcript.stats()["tool_calls"] == 6


def test_penguin_shards_are_one_session_whichever_is_named() -> None:
    transcript = read(PENGUIN)

    assert kinds(transcript) == [
        *("prompt", "answer", "results", "context", "queued", "answer", "context", "compaction"),
        *("compaction", "prompt", "answer", "results", "answer"),
    ]
    assert transcript.session_id == "session-2026-07-18-23-59-50-1a2b3c4d"
    assert transcript.stats()["lines"] == 33


def test_penguin_call_ids_that_come_again_are_paired_within_their_request() -> None:
    turns = read(PENGUIN).turns
    calls = [block["id"] for turn in turns for block in turn.of_type("toolUse")]
    results = [block for turn in turns for block in turn.of_type("toolResult")]

    assert [(block["content"][0]["text"], block["isError"]) for block in results] == [
        ("alpha", False),
        ("[tool failed]", True),
    ]
    assert [block["id"] for block in results] == calls
    assert len(set(calls)) == 2
    assert all(re.fullmatch(r"b\d+-call_0", key) for key in calls)


def test_penguin_windows_reach_over_the_shards() -> None:
    last = page(PENGUIN, window=4096)
    first = page(PENGUIN, where="before", cursor=last.before, window=4096)

    assert first.before is None
    assert [turn.key for turn in (*first.turns, *last.turns)] == [turn.key for turn in read(PENGUIN).turns]


def test_a_vak_ledger_shows_its_branches_and_the_whole_of_a_windowed_result() -> None:
    transcript = read(VAK)

    assert [turn.text for turn in transcript.turns if turn.aside == "abandoned"] == [
        *("Delete them.", "I would rather not.")
    ]
    assert transcript.turns[2].blocks[0]["content"] == [{"type": "text", "text": "12, counted in full"}]
    assert transcript.turns[3].kind == "context"
    assert transcript.head.verified == "unbroken"


@pytest.mark.parametrize("change", ["edit", "remove", "swap"])
def test_a_changed_vak_ledger_is_read_and_the_break_is_located(tmp_path: Path, change: str) -> None:
    lines = VAK.read_bytes().splitlines(keepends=True)
    if change == "edit":
        lines[6] = lines[6].replace(b"12 files", b"13 files")
    elif change == "remove":
        del lines[7]
    else:
        lines[7], lines[8] = lines[8], lines[7]
    path = tmp_path / "vak.jsonl"
    path.write_bytes(b"".join(lines))

    transcript = read(path)

    assert transcript.warnings[0].kind == "chain"
    assert transcript.warnings[0].line == 8
    assert str(transcript.head.verified).startswith("broken in ")


def ledger(folder: Path) -> Path:
    """A session of this library, with a tool call, a large result in a file, and a branch."""
    big = json.dumps([{"type": "toolResult", "id": "c1", "content": [{"type": "text", "text": "whole"}]}]).encode()
    name = hashlib.sha256(big).hexdigest()
    (folder / "files" / name[:2]).mkdir(parents=True)
    (folder / "files" / name[:2] / name).write_bytes(big)
    preview = {"type": "toolResult", "id": "c1", "stored": {"sha256": name, "bytes": len(big)}}
    use = {"type": "toolUse", "id": "c1", "name": "look", "input": {}}
    entries = [
        ("header", None, {"format": 1, "ledgerId": "L", "session": "s1", "agent": "a", "tenant": []}),
        ("message", 1, {"message": {"id": "m1", "role": "user", "content": [text("go")]}, "via": "user"}),
        ("message", 2, {"message": {"id": "m2", "role": "assistant", "content": [use]}, "via": "model"}),
        ("message", 3, {"message": {"id": "m3", "role": "tool", "content": [preview]}, "via": "tool"}),
        ("message", 4, {"message": {"id": "m4", "role": "assistant", "content": [text("left")]}, "via": "model"}),
        ("branch", 4, {"to": "e4"}),
        ("message", 6, {"message": {"id": "m5", "role": "assistant", "content": [text("kept")]}, "via": "model"}),
        ("event", 7, {"kind": "approval", "data": {"tool": "look"}}),
    ]
    raw: list[bytes] = []
    for number, (kind, parent, fields) in enumerate(entries, start=1):
        line: dict[str, Any] = {
            "type": kind,
            "id": f"e{number}",
            "seq": number,
            "timestamp": "2026-07-01T09:00:00.000000Z",
        }
        line |= {"parentId": f"e{parent}"} if parent else {}
        line |= {"prevHash": hashlib.sha256(raw[-1]).hexdigest()} if raw else {}
        raw.append(json.dumps({**line, **fields}, separators=(",", ":")).encode())
    path = folder / "s1.log.jsonl"
    path.write_bytes(b"\n".join(raw) + b"\n")
    return path


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_our_own_sessions_are_read_with_their_files_branches_and_hashes(tmp_path: Path) -> None:
    transcript = read(ledger(tmp_path))

    assert transcript.format == "harness"
    assert kinds(transcript) == ["prompt", "answer", "results", "answer", "answer", "meta"]
    assert transcript.turns[2].blocks[0]["content"] == [text("whole")]
    assert [turn.text for turn in transcript.turns if turn.aside == "abandoned"] == ["left"]
    assert (transcript.session_id, transcript.head.verified) == ("s1", "unbroken")


def test_words_are_found_in_prompts_arguments_and_results(tmp_path: Path) -> None:
    found = find(ledger(tmp_path), None, "WHOLE")

    assert [(hit.kind, hit.snippet[hit.start : hit.start + hit.length]) for hit in found.hits] == [("results", "whole")]
    assert (found.covered, found.cursor) == (found.size, None)
