"""No field of any format has to be what it usually is: nothing is raised, no neighbour is lost."""

import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TranscriptRefused
from harness.transcripts import page, read, stitched

ODD: list[Any] = [None, 7, -1.5, True, "text", [], [1], {}, {"type": []}, [[]], {"type": "text"}, 2**70]
STAMP = "2026-03-02T09:00:00.000Z"


def pi(role: str, entry: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": entry, "parentId": "e0", "timestamp": STAMP, "message": {"role": role, **fields}}


def penguin(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": STAMP, "type": kind, "payload": payload}


def vak(kind: str, entry: str, **fields: Any) -> dict[str, Any]:
    return {"id": entry, "parent_id": "v0", "ts": STAMP, "kind": kind, **fields}


def own(kind: str, number: int, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"e{number}", "parentId": f"e{number - 1}", "seq": number, "timestamp": STAMP, **fields}


TEXT = [{"type": "text", "text": "hi"}]
USE = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
FORMATS: dict[str, list[dict[str, Any]]] = {
    "pi": [
        {"type": "session", "version": 3, "id": "s", "timestamp": STAMP, "cwd": "/srv"},
        pi("user", "e0", content=TEXT),
        pi(
            "assistant",
            "e1",
            content=[{"type": "toolCall", "id": "c", "name": "f", "arguments": {"a": 1}}],
            usage={"input": 1},
        ),
        pi("toolResult", "e2", toolCallId="c", content=TEXT, isError=False),
        pi("assistant", "e3", content=[{"type": "thinking", "thinking": "t"}], model="m", provider="p"),
        {"type": "compaction", "id": "e4", "parentId": "e3", "timestamp": STAMP, "summary": "x"},
    ],
    "penguin": [
        penguin("session_meta", session_id="s", provider="p", model_id="m", workspace="/srv"),
        penguin("model_msg", type="text", role="user", text="hi"),
        penguin("event_msg", type="request_begin"),
        penguin("model_msg", type="tool_call", role="assistant", name="f", arguments="{}", tool_call_id="c"),
        penguin("model_msg", type="tool_call_output", role="user", output="x", tool_call_id="c", images=["data:"]),
        penguin("event_msg", type="token_usage", request={"total": 3, "output": 1}),
        penguin("event_msg", type="request_end", status="completed"),
    ],
    "vak": [
        vak("header", "v0", session_id="s", cwd="/srv"),
        vak("message", "v1", message={"role": "user", "content": TEXT}, meta={"control": ""}),
        vak(
            "message", "v2", message={"role": "assistant", "content": [USE]}, meta={"model": "m", "usage": {"input": 1}}
        ),
        vak(
            "message",
            "v3",
            message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]},
        ),
        vak("evidence_body", "v4", tool_use_id="c", content="whole"),
    ],
    "harness": [
        own("header", 1, ledgerId="L", session="s", parent={"session": "p"}),
        own("message", 2, message={"id": "m", "role": "user", "content": TEXT}, via="user"),
        own(
            "message",
            3,
            message={"id": "n", "role": "assistant", "content": [{**USE, "type": "toolUse"}], "usage": {"input": 1}},
        ),
        own(
            "message",
            4,
            message={"id": "o", "role": "tool", "content": [{"type": "toolResult", "id": "c", "content": TEXT}]},
        ),
        own("binding", 5, system=[{"name": "a", "text": "b"}]),
        own("event", 6, kind="subagent", data={"session": "x"}),
    ],
    "sts": [
        {"type": "session", "harness": "h", "id": "s", "name": "n"},
        {"type": "message", "message": {"role": "user", "content": "hi", "timestamp": 1790000001000}},
        {
            "type": "message",
            "message": {
                "role": "assistant",
                "content": "",
                "toolCalls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
            },
        },
        {"type": "message", "message": {"role": "tool", "content": "x", "toolCallId": "c"}},
    ],
    "gemini": [
        {"sessionId": "s", "projectHash": "h", "startTime": STAMP, "directories": ["/srv"]},
        {"id": "a", "timestamp": STAMP, "type": "user", "content": [{"text": "hi"}]},
        {
            "id": "b",
            "timestamp": STAMP,
            "type": "gemini",
            "content": "x",
            "thoughts": [{"subject": "s"}],
            "tokens": {"input": 1, "cached": 1},
            "toolCalls": [
                {
                    "id": "c",
                    "name": "f",
                    "args": {},
                    "status": "success",
                    "result": [{"functionResponse": {"response": {"output": "x"}}}],
                }
            ],
        },
        {"$set": {"summary": "x"}},
        {"$rewindTo": "none"},
    ],
}
EXPORT = {
    "info": {"id": "s", "title": "t", "time": {"created": 1}, "directory": "/srv"},
    "messages": [
        {"info": {"id": "a", "role": "user", "time": {"created": 1}}, "parts": [{"type": "text", "text": "hi"}]},
        {
            "info": {
                "id": "b",
                "role": "assistant",
                "modelID": "m",
                "tokens": {"input": 1, "cache": {"read": 1}},
                "error": {"data": {}},
            },
            "parts": [
                {
                    "type": "tool",
                    "tool": "f",
                    "callID": "c",
                    "state": {"status": "completed", "input": {}, "metadata": {"exit": 1}},
                },
                {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"},
                {"type": "reasoning", "text": "t"},
            ],
        },
    ],
}
HERMES = {
    "session_id": "s",
    "model": "m",
    "platform": "cli",
    "messages": [
        {"role": "user", "content": "hi", "timestamp": 1.0},
        {
            "role": "assistant",
            "content": "x",
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
            "reasoning": "r",
        },
        {"role": "tool", "content": '{"exit_code": 1}', "tool_call_id": "c"},
    ],
}


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value but its top."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, member in members for place in ((*here, key), *paths(member, (*here, key)))]


def changed(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    copy = json.loads(json.dumps(value))
    holder = copy
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = odd
    return copy


def check(path: Path, *, neighbours: int) -> None:
    """Whole and cut, it is read, has its neighbours, and can be written as JSON."""
    for transcript in (read(path), read(path, cap=1000)):
        assert sum(turn.kind == "prompt" for turn in transcript.turns) >= neighbours
        json.dumps(transcript.to_dict(), allow_nan=False)
    json.dumps(stitched(page(path).turns), allow_nan=False)


@pytest.mark.parametrize("name", list(FORMATS))
def test_any_field_of_any_line_may_be_of_any_type(tmp_path: Path, name: str) -> None:
    good = FORMATS[name]
    second = changed(good, (1,), json.loads(json.dumps(good[1]).replace('"hi"', '"there"')))[1]
    path = tmp_path / "odd.jsonl"

    for place in paths(good):
        for odd in ODD:
            # The good lines in front tell the format; the one behind must not be lost.
            lines = [*good[:3], *changed(good, place, odd), second]
            path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            check(path, neighbours=1)


@pytest.mark.parametrize("value", [EXPORT, HERMES], ids=["opencode", "hermes"])
def test_any_field_of_a_document_may_be_of_any_type(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "odd.json"

    for place in paths(value):
        for odd in ODD:
            path.write_text(json.dumps(changed(value, place, odd)))
            with suppress(TranscriptRefused):  # what told the format may be what was changed
                check(path, neighbours=0)


def test_rows_of_a_database_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    database = sqlite3.connect(path)
    database.executescript(
        "create table session(id, title, time_created); create table message(id, session_id, data);"
        "create table part(id, message_id, data); insert into session values('s', x'ff00', 'soon');"
    )
    rows = ["{", "[]", "7", None, b"\xff\xfe", json.dumps({"role": "user"}), json.dumps({"role": "assistant"})]
    database.executemany("insert into message values(?, 's', ?)", [(f"m{n}", row) for n, row in enumerate(rows)])
    database.executemany("insert into part values(?, 'm5', ?)", [(f"p{n}", row) for n, row in enumerate(rows)])
    database.commit()
    database.close()

    transcript = read(path, "s")

    assert transcript.stats()["lines"] == 7
    assert transcript.stats()["prompts"] == 1
