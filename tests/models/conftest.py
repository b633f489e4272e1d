"""A server that speaks providers' streaming protocols on a loopback port, and says what a test tells it to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.messages import Msg
from harness.models import Chunk, Done, Model, ModelRequest


@dataclass
class Reply:
    """One HTTP response. `events` are sent as a stream; `then` says what follows the last of them."""

    events: list[dict[str, Any]] | None = None
    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    then: str = "finish"  # finish | end (without saying so) | drop | wait


class ProviderServer:
    """Answers requests with `replies` in order; keeps the requests' bodies and headers."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.client_left = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.client_left.set()
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        pairs = (line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        headers = {name.lower(): value for name, value in pairs}
        self.headers.append(headers)
        self.bodies.append(json.loads(await reader.readexactly(int(headers["content-length"]))))
        reply = self.replies.pop(0)
        if reply.events is None:
            return await self._plain(reply, writer)
        return await self._stream(reply, reader, writer)

    async def _plain(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        if reply.then == "drop":
            return False
        body = json.dumps(reply.body).encode()
        lines = [f"HTTP/1.1 {reply.status} X", "content-type: application/json", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        return True

    async def _stream(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for event in reply.events or ():
            self._event(writer, json.dumps(event), event.get("type"))
        await writer.drain()
        if reply.then == "drop":
            return False
        if reply.then == "wait":
            if not await reader.read(1):
                self.client_left.set()
            return False
        if reply.then == "finish":
            self._event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    @staticmethod
    def _event(writer: asyncio.StreamWriter, data: str, name: str | None = None) -> None:
        line = (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()
        writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of a chat stream."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "demo-2026", "choices": [choice]}


def tokens(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    """The event that a stream reports its usage with."""
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {**delta(), "choices": [], "usage": usage}


@pytest.fixture
async def server() -> AsyncIterator[ProviderServer]:
    """A fresh server."""
    fake = ProviderServer()
    listening = await asyncio.start_server(fake.handle, "127.0.0.1", 0)
    fake.port = listening.sockets[0].getsockname()[1]
    yield fake
    listening.close()
    await listening.wait_closed()


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


@pytest.fixture
def event() -> Callable[..., dict[str, Any]]:
    return delta


@pytest.fixture
def usage_event() -> Callable[..., dict[str, Any]]:
    return tokens


async def drain(model: Model, *messages: Msg, **fields: Any) -> tuple[Msg, list[Chunk]]:
    """Ask, and give the answer and the chunks before it."""
    chunks = [chunk async for chunk in model.stream(ModelRequest(messages=messages, **fields))]
    last = chunks.pop()
    assert isinstance(last, Done)
    return last.message, chunks


@pytest.fixture
def ask() -> Callable[..., Any]:
    """`await ask(model, message, …, system=…)` gives the answer and the chunks."""
    return drain
