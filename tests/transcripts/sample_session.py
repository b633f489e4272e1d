"""A small Claude Code session that has one of everything an export has to find a place for."""

import base64
import json
from pathlib import Path
from typing import Any

from harness.transcripts import Transcript, read

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(24)
SESSION = "0b0f3a86-57a5-4c1e-9a5e-6f0d2f6f4a11"
SEALED = {"type": "thinking", "thinking": "I look first.", "signature": "c2VhbGVk+/=="}


def line(number: int, kind: str, **fields: Any) -> dict[str, Any]:
    at = f"2026-03-01T10:00:{number:02d}.000Z"
    return {"type": kind, "uuid": f"u{number}", "sessionId": SESSION, "cwd": "/srv/shop", "timestamp": at, **fields}


def said(number: int, content: object, **fields: Any) -> dict[str, Any]:
    return line(number, "user", message={"role": "user", "content": content}, **fields)


def answered(number: int, key: str, *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
    made = {"id": key, "role": "assistant", "model": "claude-x", "content": list(content), "usage": usage}
    return line(number, "assistant", message={**made, "stop_reason": "end_turn"}, **fields)


def image() -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PICTURE).decode()}
    return {"type": "image", "source": source}


def call(key: str, **given: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": "Bash", "input": given}


def result(key: str, content: object, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": content, **fields}


LINES = [
    said(1, "<system-reminder>\nBe kind.\n</system-reminder>"),
    said(2, [{"type": "text", "text": "Look at the shop."}, image()]),
    answered(
        3, "m1", SEALED, {"type": "text", "text": "Looking."}, call("c1", command="ls"), call("c2", command="pwd")
    ),
    said(4, [result("c2", "failed badly", is_error=True)]),
    said(5, [result("c1", [{"type": "text", "text": "a.txt"}, image()])]),
    said(6, "Inside.", isSidechain=True),
    answered(7, "m9", {"type": "text", "text": "Hidden work."}, isSidechain=True),
    line(8, "queue-operation", operation="enqueue", content="And hurry."),
    answered(9, "m2", {"type": "text", "text": "There is a.txt."}),
    line(10, "system", subtype="compact_boundary", content=""),
    said(11, "They looked at the shop.", isCompactSummary=True),
    said(12, "Open it."),
    answered(13, "m3", {"type": "thinking", "thinking": "", "signature": "YQ=="}, call("c3", command="cat a.txt")),
]


def write(folder: Path, lines: list[dict[str, Any]] = LINES, name: str = f"{SESSION}.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in lines))
    return path


def sample(folder: Path, lines: list[dict[str, Any]] = LINES) -> Transcript:
    return read(write(folder, lines))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in path.read_bytes().split(b"\n")[:-1]]
