"""The raw file is a download of one state of it, or is seen to have failed."""

import asyncio
import logging
import os
import socket
import threading
import urllib.request
from collections.abc import Callable
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from harness.filesystem.reading import ReadFile
from harness.viewer import local_viewer

LINE = b'{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"%s"}}\n'
OLD, NEW = LINE % b"old" * 20_000, LINE % b"new" * 20_000


def renamed_over(path: Path) -> None:
    (path.parent / "t").write_bytes(NEW)
    os.replace(path.parent / "t", path)


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(NEW)


def cut(path: Path) -> None:
    os.truncate(path, 300_000)


def written_anew(path: Path) -> None:
    path.write_bytes(NEW)
    os.utime(path, (1_700_000_000, 1_700_000_000))


class Answer:
    """What the viewer answers, and what happens to the file when the first piece has been sent."""

    def __init__(self, folder: Path, meanwhile: Callable[[Path], None] = lambda path: None) -> None:
        self.path = folder / "a.jsonl"
        self.path.write_bytes(OLD)
        self.app = local_viewer([folder], token=None)
        self.meanwhile = meanwhile
        self.messages: list[Any] = []
        self.left = asyncio.Event()

    async def ask(self, method: str = "GET", **headers: str) -> None:
        key = next(iter(await self.keys()))
        scope = {"type": "http", "method": method, "path": f"/sessions/{key}/raw", "query_string": b"", "root_path": ""}
        told = {"host": "localhost", **headers}
        await self.app(
            {**scope, "headers": [(name.encode(), value.encode()) for name, value in told.items()]},
            self.receive,
            self.send,
        )

    async def keys(self) -> list[str]:
        transport = httpx2.ASGITransport(self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return [each["key"] for each in (await client.get("/api/sessions")).json()["sessions"]]

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.messages.append(message)
        if len(self.messages) == 2:
            self.meanwhile(self.path)

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])

    @property
    def is_whole(self) -> bool:
        return not self.messages[-1].get("more_body", False)


@pytest.mark.parametrize("meanwhile", [renamed_over, grown, os.unlink])
async def test_a_file_that_is_replaced_removed_or_grows_meanwhile_is_sent_as_it_was(
    tmp_path: Path, meanwhile: Callable[[Path], None]
) -> None:
    answer = Answer(tmp_path, meanwhile)
    await answer.ask()

    assert (answer.body, answer.is_whole) == (OLD, True)
    assert answer.headers["content-length"] == str(len(OLD))


@pytest.mark.parametrize("meanwhile", [cut, written_anew])
async def test_a_file_that_is_cut_or_written_anew_meanwhile_is_never_sent_as_if_it_were_whole(
    tmp_path: Path, meanwhile: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    answer = Answer(tmp_path, meanwhile)
    await answer.ask()

    assert not answer.is_whole
    assert len(answer.body) < len(OLD)
    assert "was written anew while it was sent; the answer was cut off" in caplog.text


async def test_a_part_of_it_is_not_given_and_it_says_so(tmp_path: Path) -> None:
    answer = Answer(tmp_path)
    await answer.ask(range="bytes=0-99")

    assert (answer.messages[0]["status"], answer.headers["accept-ranges"], answer.body) == (200, "none", OLD)


async def test_its_head_alone_has_its_size_and_no_byte_of_it(tmp_path: Path) -> None:
    answer = Answer(tmp_path)
    await answer.ask("HEAD")

    assert (answer.headers["content-length"], answer.body, answer.is_whole) == (str(len(OLD)), b"", True)


async def test_of_a_file_whose_visitor_has_left_no_more_is_sent(tmp_path: Path) -> None:
    answer = Answer(tmp_path)
    answer.meanwhile = lambda path: answer.left.set()
    await answer.ask()

    assert len(answer.body) < len(OLD) // 2


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_no_file_stays_open_behind_an_answer(tmp_path: Path, method: str) -> None:
    answer = Answer(tmp_path)
    await answer.ask()
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        await answer.ask(method)

    assert len(os.listdir("/dev/fd")) == before


async def test_no_file_stays_open_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[ReadFile] = []

    def failing(self: ReadFile, start: int, length: int) -> bytes:
        opened.append(self)
        raise OSError("the disk does not answer")

    answer = Answer(tmp_path)
    await answer.keys()
    monkeypatch.setattr(ReadFile, "read", failing)
    with pytest.raises(OSError, match="the disk does not answer"):
        await answer.ask()
    assert opened
    for file in opened:
        with pytest.raises(ValueError, match="closed file"):
            file.mark()


def test_who_downloads_a_file_that_is_cut_is_told_and_the_server_logs_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(OLD)
    read = ReadFile.read

    def cutting(self: ReadFile, start: int, length: int) -> bytes:
        if start >= 512 * 1024:
            cut(path)
        return read(self, start, length)

    monkeypatch.setattr(ReadFile, "read", cutting)
    taken = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(local_viewer([tmp_path], token=None), log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
    thread.start()
    try:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with urllib.request.urlopen(f"{base}/api/sessions") as answer:
            key = answer.read().decode().split('"key":"')[1][:16]
        with pytest.raises(IncompleteRead), urllib.request.urlopen(f"{base}/sessions/{key}/raw") as answer:
            answer.read()
    finally:
        server.should_exit = True
        thread.join()
    assert not [record for record in caplog.records if record.exc_info]
    assert [record.levelno for record in caplog.records if record.name == "harness.viewer"] == [logging.WARNING]
