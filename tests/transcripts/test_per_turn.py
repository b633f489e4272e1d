"""Turn by turn: calls, results, tokens and the final mark, against a second reading made for this test.

The second reading knows nothing of the library: it goes through the file once, in its order, with the
rules of the format written down anew.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.transcripts import Transcript, read


@dataclass
class Said:
    """One answer: its calls, which of them got a result, its tokens, and whether it has text."""

    calls: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    out: int = 0
    fresh: int = 0
    text: bool = False
    final: bool = False


@dataclass
class Pass:
    """Answers and prompts (None) in the order of the file, and the results met on the way."""

    said: list[Said | None] = field(default_factory=list)
    results: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)

    def answer(self) -> Said:
        self.said.append(Said())
        return self.said[-1]  # type: ignore[return-value]

    def call(self, answer: Said, key: str) -> None:
        if key not in self.calls:
            self.calls.add(key)
            answer.calls.append(key)

    def finish(self) -> list[Said]:
        last: Said | None = None
        for one in [*self.said, None]:
            if one is None:
                if last is not None:
                    last.final = True
                last = None
            else:
                one.answered = [key for key in one.calls if key in self.results]
                last = one if one.text else last
        return [one for one in self.said if one is not None and (one.calls or one.out or one.text)]


def records(path: Path) -> Iterator[dict[str, Any]]:
    for raw in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(raw)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def claude(path: Path) -> list[Said]:
    found, known, lines = Pass(), {}, set()
    for record in records(path):
        message = record.get("message")
        if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            continue
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if record["type"] == "user":
            kinds = {part["type"] for part in parts}
            found.results |= {part["tool_use_id"] for part in parts if part["type"] == "tool_result"}
            told = [p for p in parts if p["type"] == "image" or (p["type"] == "text" and is_typed(p["text"]))]
            is_own = record.get("isMeta") or record.get("sourceToolUseID") or record.get("isCompactSummary")
            if told and not is_own and "tool_result" not in kinds:
                found.said.append(None)
            continue
        key = message.get("id") or record["uuid"]
        if key not in known:
            known[key] = found.answer()
        answer = known[key]
        usage = message.get("usage") or {}
        answer.out = max(answer.out, usage.get("output_tokens") or 0)
        answer.fresh = max(answer.fresh, usage.get("input_tokens") or 0)
        same = json.dumps(record, sort_keys=True)
        if same in lines:
            continue
        lines.add(same)
        for part in parts:
            if part["type"] == "tool_use":
                found.call(answer, part["id"])
            answer.text |= part["type"] == "text" and bool(part["text"].strip())
    return found.finish()


def is_typed(text: str) -> bool:
    tag = re.match(r"\s*</?(\w[\w-]*)", text)
    is_tagged = tag is not None and ("-" in tag[1] or "_" in tag[1])
    return bool(text.strip()) and not is_tagged and not text.lstrip().startswith("[Request interrupted by user")


CODEX_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")


def codex(path: Path) -> list[Said]:
    found, answer, last, total = Pass(), None, None, {}
    for record in records(path):
        payload = record.get("payload") or {}
        kind = payload.get("type")
        if record["type"] == "event_msg" and kind == "token_count" and payload.get("info"):
            now, spent = payload["info"]["total_token_usage"], payload["info"]["last_token_usage"]
            if now != total and last is not None:
                last.out += spent["output_tokens"]
                last.fresh += spent["input_tokens"] - spent["cached_input_tokens"]
            total = now
        elif record["type"] == "compacted" or ends_an_answer(record):
            answer = None
            found.results |= {payload["call_id"]} if str(kind).endswith("_output") else set()
            found.said += [None] if is_codex_prompt(payload) else []
        elif record["type"] == "response_item" and kind in (*CODEX_CALLS, "message", "reasoning"):
            answer = last = answer or found.answer()
            if kind in CODEX_CALLS:
                found.call(answer, payload.get("call_id") or f"{len(found.calls)}")
            answer.text |= kind == "message" and any((part.get("text") or "").strip() for part in payload["content"])
    return found.finish()


def ends_an_answer(record: dict[str, Any]) -> bool:
    payload = record.get("payload") or {}
    is_message = payload.get("type") == "message" and payload["role"] != "assistant"
    return record["type"] == "response_item" and (is_message or payload["type"].endswith("_output"))


def is_codex_prompt(payload: dict[str, Any]) -> bool:
    text = "\n".join(part.get("text") or "" for part in payload.get("content") or [])
    return payload.get("role") == "user" and is_typed(text) and not text.startswith("# AGENTS.md")


def pi(path: Path) -> list[Said]:
    found = Pass()
    for record in records(path):
        message = record.get("message") or {}
        if message.get("role") == "user":
            found.said.append(None)
        elif message.get("role") == "toolResult":
            found.results.add(message["toolCallId"])
        elif message.get("role") == "assistant":
            answer, usage = found.answer(), message.get("usage") or {}
            answer.out, answer.fresh = usage.get("output", 0), usage.get("input", 0)
            for part in message["content"]:
                if part["type"] == "toolCall":
                    found.call(answer, part["id"])
                answer.text |= part["type"] == "text" and bool(part["text"].strip())
    return found.finish()


def opencode(path: Path, session: str) -> list[Said]:
    found = Pass()
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    sql = "select id, data from message where session_id = ? order by id"
    for key, data in database.execute(sql, (session,)).fetchall():
        info = json.loads(data)
        sql = "select data from part where message_id = ? order by id"
        parts = [json.loads(row[0]) for row in database.execute(sql, (key,))]
        if info["role"] == "user":
            found.said.append(None)
            continue
        answer = found.answer()
        answer.out, answer.fresh = info["tokens"]["output"], info["tokens"]["input"]
        for part in parts:
            if part["type"] == "tool":
                found.call(answer, part["callID"])
                found.results |= {part["callID"]} if part["state"]["status"] in ("completed", "error") else set()
            answer.text |= part["type"] == "text" and bool(part["text"].strip())
    database.close()
    return found.finish()


def as_said(transcript: Transcript) -> list[Said]:
    """The library's turns in the same words."""
    found: list[Said] = []
    for turn in transcript.turns:
        if turn.kind == "answer":
            usage = turn.message.get("usage", {})
            calls = [block["id"] for block in turn.of_type("toolUse")]
            found.append(Said(calls, [], usage.get("output", 0), usage.get("input", 0), turn.has_text(), turn.final))
        elif turn.kind == "results":
            found[-1].answered = [block["id"] for block in turn.blocks]
    return [one for one in found if one.calls or one.out or one.text]


CLAUDE = [
    "8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl",
    "a7da6a22-facc-4fcd-8bab-f83c87862004.jsonl",
    "session-3fe1b6bc.jsonl",
    "tool_heavy.jsonl",
    "short.jsonl",
    "4379d1bf-ccb1-414e-a856-9791b73f3af2.jsonl",
    "nasty/parallel-out-of-order.jsonl",
    "nasty/html-injection.jsonl",
    "nasty/torn-last-line.jsonl",
]
CODEX = [
    "rollout-2025-09-24T20-12-23-01997ea4-a70d-7da3-8c20-c736db82a7c5.jsonl",
    "rollout-2026-05-11T11-26-55-019e1625-789d-76c0-80ab-3724b5ddb799.jsonl",
    "rollout-2026-11-30T17-53-01-01a22d96-b617-7dd0-90f7-4a4b3757b3ae.jsonl",
    "rollout-2026-11-30T17-53-03-01a22d96-bd33-79d3-a124-36145ac444f5.jsonl",
    "nasty/rollout-torn-last.jsonl",
]
PI = [
    "pi/large-session.jsonl",
    "pi/2026-11-30T17-52-18-681Z_01a22d96-0ef8-75be-9606-76c793b6ec00.jsonl",
    "openclaw/5994da29-6105-4afc-9d32-cfd2cb2517b5.jsonl",
    "openclaw/fddf0592-3380-414e-ae03-c2e7eeaf2167.jsonl",
]
FILES: list[tuple[str, Callable[[Path], list[Said]]]] = [
    *((f"claude/{name}", claude) for name in CLAUDE),
    *((f"codex/{name}", codex) for name in CODEX),
    *((name, pi) for name in PI),
]


@pytest.mark.parametrize(("name", "second"), FILES, ids=[name for name, _ in FILES])
def test_each_turn_equals_a_second_reading(shared: Path, name: str, second: Callable[[Path], list[Said]]) -> None:
    path = shared / "traces" / name

    expected, found = second(path), as_said(read(path))

    assert len(found) == len(expected) > 0
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        # A web search of Codex has no id of its own: any will do.
        other.calls = [key if not key.isdigit() else one.calls[n] for n, key in enumerate(other.calls)]
        assert one == other, number


@pytest.mark.parametrize("session", ["ses_dd261cb13ffeLFsUtHaXkuxNer", "ses_dd2617414ffe4f3HOsq4hNZCB6"])
def test_each_turn_of_a_database_equals_a_second_reading(shared: Path, session: str) -> None:
    path = shared / "traces/opencode/opencode-1.18.33-small.db"

    assert as_said(read(path, session)) == opencode(path, session)
