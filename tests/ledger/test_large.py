"""Large media and outputs stand beside the ledger, once, and come back as they were (B47)."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, call_of, ledger, sessions_folder, shown

from harness.agent import open_session
from harness.filesystem import disk
from harness.messages import Media, MediaBlock, Msg, ToolResult
from harness.testing import ScriptedModel
from harness.tools import tool

PICTURE = bytes(range(256)) * 4 * 1024  # 1 MB
SEEN = "look " * 200_000


@tool
def photograph() -> ToolResult:
    """Take a picture."""
    image = MediaBlock(type="image", media=Media.from_bytes(PICTURE, "image/png"))
    return ToolResult(id="", content=["taken", image])


@tool
def read_all() -> str:
    """Read a large file."""
    return SEEN


def files(workspace: Path) -> dict[str, int]:
    folder = sessions_folder(workspace) / "files"
    return {path.name: path.stat().st_size for path in folder.glob("??/*")}


async def test_a_picture_is_stored_once_and_no_line_holds_it(workspace: Path) -> None:
    image = MediaBlock(type="image", media=Media.from_bytes(PICTURE, "image/png"))
    model = ScriptedModel([[call_of("photograph")], "one", [call_of("photograph")], "two"])
    async with agent_of(workspace, model, photograph) as agent:
        await agent.call(Msg.user("look", image), ALICE)
        await agent.call(Msg.user("again", image), ALICE)
    assert files(workspace) == {Media.from_bytes(PICTURE, "image/png").sha256: len(PICTURE)}
    data = (sessions_folder(workspace) / "s1.log.jsonl").read_bytes()
    assert len(data) < 16_000
    assert base64.b64encode(PICTURE)[:100] not in data


async def test_a_large_result_comes_back_whole_in_a_new_process_and_its_line_stays_small(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([[call_of("read_all")], "one"]), read_all) as agent:
        await agent.call("read", ALICE)
        before = agent
    open_session._cache._open.clear()
    model = ScriptedModel(["two"])
    async with agent_of(workspace, model, read_all) as agent:
        await agent.call("and?", ALICE)
    sizes = [len(json.dumps(entry)) for entry in ledger(workspace)]
    assert max(sizes) < 8_000
    told = shown(model.requests[0])[2][1]
    assert told == SEEN or len(told) < len(SEEN)  # cut by eviction, if that is on, but never by the ledger
    assert before is not agent


@pytest.mark.parametrize("size", [200_000, 262_144, 300_000, 1_048_576, 3_000_000])
async def test_no_line_is_longer_than_a_megabyte_whatever_is_said(workspace: Path, size: int) -> None:
    text = ("é\u2028" * size)[:size]
    model = ScriptedModel(["y" * size, "done"])
    async with agent_of(workspace, model) as agent:
        await agent.call(text, ALICE)
        open_session._cache._open.clear()
        await agent.call("on", ALICE)
        assert (await agent.sessions("alice").verify("s1")).findings == ()
    lines = (sessions_folder(workspace) / "s1.log.jsonl").read_bytes().split(b"\n")
    assert max(map(len, lines)) <= 1024 * 1024
    assert shown(model.requests[1]) == [("user", text), ("assistant", "y" * size), ("user", "on")]


async def test_opening_and_listing_read_no_picture(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = MediaBlock(type="image", media=Media.from_bytes(PICTURE, "image/png"))
    async with agent_of(workspace, ScriptedModel(["one"])) as agent:
        await agent.call(Msg.user("look", image), ALICE)
    open_session._cache._open.clear()
    read: list[int] = []
    real = disk.read

    def counted(path: Path, *where: Any, **more: Any) -> bytes:
        data = real(path, *where, **more)
        read.append(len(data))
        return data

    monkeypatch.setattr(disk, "read", counted)
    async with agent_of(workspace, ScriptedModel(["two"])) as agent:
        await agent.call("on", ALICE)
        await agent.sessions("alice").list()
        await agent.sessions("alice").search("look")
        tree = await agent.sessions("alice").tree("s1")
        assert sum(read) < 100_000
        assert await tree.load_media(Media.from_bytes(PICTURE, "image/png").sha256) == PICTURE


async def test_the_own_copy_of_a_foreign_log_with_pictures_is_small(workspace: Path, shared: Path) -> None:
    """The case's own transcript, its picture said to our agent twice."""
    line = next(raw for raw in (shared / "cases/B47/image-twice.jsonl").read_bytes().splitlines() if b"base64" in raw)
    found = _find_base64(json.loads(line))
    assert len(found) >= 1544 * 4 // 3
    image = MediaBlock(type="image", media=Media.from_bytes(base64.b64decode(found), "image/png"))
    async with agent_of(workspace, ScriptedModel(["one", "two"])) as agent:
        await agent.call(Msg.user(image), ALICE)
        await agent.call(Msg.user(image), ALICE)
    assert list(files(workspace).values()) == [1544]
    assert found[:60].encode() not in (sessions_folder(workspace) / "s1.log.jsonl").read_bytes()


def _find_base64(value: Any) -> str:
    if isinstance(value, dict):
        if isinstance(value.get("data"), str):
            return value["data"]
        return next((text for item in value.values() if (text := _find_base64(item))), "")
    if isinstance(value, list):
        return next((text for item in value if (text := _find_base64(item))), "")
    return ""
