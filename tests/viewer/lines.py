"""Lines of Claude Code sessions for the viewer's tests."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from harness.viewer import local_viewer

AT = "2026-03-02T09:00:00.000Z"


def prompt(words: object, uuid: str = "u1", **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": words}
    return {"type": "user", "uuid": uuid, "sessionId": "s", "timestamp": AT, "message": message, **fields}


def answer(content: object, uuid: str = "a1", *, model: str = "demo", **fields: Any) -> dict[str, Any]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    message = {"id": f"m-{uuid}", "role": "assistant", "model": model, "content": blocks}
    return {"type": "assistant", "uuid": uuid, "sessionId": "s", "timestamp": AT, "message": message, **fields}


def call(name: str = "Bash", call_id: str = "t1", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(text: str, call_id: str = "t1", uuid: str = "r1") -> dict[str, Any]:
    return prompt([{"type": "tool_result", "tool_use_id": call_id, "content": text}], uuid)


def queue(operation: str, words: str | None = None) -> dict[str, Any]:
    content = {} if words is None else {"content": words}
    return {"type": "queue-operation", "operation": operation, "timestamp": AT, "sessionId": "s", **content}


def text_of(lines: Sequence[object]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def write(file: Path, lines: Sequence[object]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text_of(lines))
    return file


def append(file: Path, *lines: object) -> None:
    with file.open("a") as end:
        end.write(text_of(lines))


@asynccontextmanager
async def visiting(*roots: Path, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """A visitor of a viewer over these places."""
    transport = httpx2.ASGITransport(local_viewer(roots, token=None, **options))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        yield client


async def keys(visitor: httpx2.AsyncClient) -> dict[str, str]:
    """The keys of the sessions by their ids."""
    return {each["sessionId"]: each["key"] for each in (await visitor.get("/api/sessions")).json()["sessions"]}
