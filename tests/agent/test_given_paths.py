"""Paths that somebody gave: what is no path, or no file, is refused at once and by an error of ours."""

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of

from harness.errors import ConfigError, FilesystemError, SessionError
from harness.testing import ScriptedModel


class Bytes:
    def __fspath__(self) -> bytes:
        return b"bundle.zip"


@pytest.mark.parametrize("given", [None, 5, 1.5, b"x.zip", [], object(), Bytes(), "a\0b", "\ud800", Path("a\0b")])
@pytest.mark.parametrize("way", ["export", "import"])
async def test_what_can_be_no_path_is_a_wrong_value(tmp_path: Path, way: str, given: Any) -> None:
    async with agent_of(tmp_path, ScriptedModel(["Yes."])) as agent:
        await agent.call("hello", ALICE)
        sessions = agent.sessions("alice")
        with pytest.raises(ConfigError, match=f"{way}.*path"):
            await (sessions.export("s1", given) if way == "export" else sessions.import_session(given))


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("make", [_pipe, _device, _socket, _folder])
async def test_what_is_no_file_keeps_nobody_waiting(tmp_path: Path, make: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    make(Path("x"))
    async with agent_of(tmp_path / "w", ScriptedModel(["Yes."])) as agent:
        await agent.call("hello", ALICE)
        with pytest.raises((SessionError, FilesystemError)):
            await agent.sessions("alice").import_session("x")
        with pytest.raises((SessionError, FilesystemError)):
            await agent.sessions("alice").export("s1", "x")
