"""Bytes are stored under their real SHA-256 alone, however they come in: no picture takes the place of another."""

import contextlib
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, call_of
from test_lost_media import KNOWN, SHOWN, WAYS, hook_with

from harness import tool
from harness.errors import ConfigError, HookError
from harness.messages import Media, MediaBlock, Msg, ToolResult
from harness.sessions import SessionTree
from harness.sessions.lines.blobs import blob_path, write_blobs
from harness.testing import ScriptedModel

OTHERS: list[Any] = [b"A PICTURE", b"other", b"", bytearray(b"A PICTURE"), memoryview(b"other"), "a picture", 9]


def wrong(data: Any) -> MediaBlock:
    """Media whose data were exchanged where nobody looks."""
    return MediaBlock(type="image", media=SHOWN.model_copy()).model_copy(
        update={"media": SHOWN.model_copy(update={"data": data})}
    )


def stored(workspace: Path) -> list[bytes]:
    return [path.read_bytes() for path in workspace.rglob(SHOWN.sha256)]


@pytest.mark.parametrize("data", OTHERS)
def test_media_are_not_made_with_data_of_another_name(data: Any) -> None:
    with pytest.raises(ValidationError, match=r"make them with|give what"):
        Media(sha256=SHOWN.sha256, media_type="image/png", bytes=9, data=data)


@pytest.mark.parametrize("data", [bytearray(b"a picture"), memoryview(b"a picture"), b"a picture"])
def test_bytes_of_any_kind_are_named_and_kept_as_they_were(data: Any) -> None:
    made = Media.from_bytes(data, "image/png")
    if isinstance(data, bytearray):
        data[0] = 0
    assert (made.sha256, made.bytes, made.data) == (SHOWN.sha256, 9, b"a picture")


async def bring(workspace: Path, way: str, block: MediaBlock) -> None:
    """Let one way bring a block into a call, as far as it gets."""

    @tool
    def look() -> ToolResult | str:
        """Look at something."""
        return ToolResult(id="x", content=[block]) if way == "tool" else "nothing"

    model = ScriptedModel([call_of("look"), Msg.assistant("see", block) if way == "model" else "done", "done"])
    async with agent_of(workspace, model, look, hooks=hook_with(way, block)) as agent:
        # The caller is told of his own; of a model's or a hook's, which may have failed for good, it is no matter.
        with contextlib.suppress(ConfigError, HookError):
            call = agent.call(Msg.user("see", block) if way == "person" else "see", ALICE)
            if way == "steering":
                call.steer(Msg.user(block))
            await call


@pytest.mark.parametrize("first", ["true", "wrong"])
@pytest.mark.parametrize("way", WAYS)
async def test_no_way_in_stores_bytes_under_the_name_of_others(workspace: Path, way: str, first: str) -> None:
    async with agent_of(workspace, ScriptedModel(["seen", "seen"])) as agent:
        if first == "true":
            await agent.call(Msg.user(MediaBlock(type="image", media=SHOWN)), ALICE)
        await bring(workspace, way, wrong(b"A PICTURE"))
        assert stored(workspace) == ([b"a picture"] if first == "true" else [])
        await agent.call(Msg.user(MediaBlock(type="image", media=SHOWN)), ALICE)
        assert (await agent.sessions(ALICE).verify("s1")).ok
    assert stored(workspace) == [b"a picture"]


@pytest.mark.parametrize("value", [SHOWN.model_copy(update={"data": b"A PICTURE"}), wrong(b"A PICTURE")])
@pytest.mark.parametrize("listed", [False, True])
async def test_a_tool_that_gives_wrong_bytes_has_failed(workspace: Path, value: Any, listed: bool) -> None:
    @tool
    async def look() -> Any:
        """Look at something."""
        return [value] if listed else value

    model = ScriptedModel([call_of("look"), "done"])
    async with agent_of(workspace, model, look) as agent:
        assert (await agent.call("look", ALICE)).text == "done"
    assert model.requests[-1].messages[-1].tool_results[0].is_error
    assert stored(workspace) == []


@pytest.mark.parametrize("data", OTHERS)
@pytest.mark.parametrize("beside", [False, True])
async def test_a_message_whose_media_have_other_bytes_is_not_logged(tmp_path: Path, data: Any, beside: bool) -> None:
    folder = tmp_path / "sessions"
    tree = SessionTree(folder, "s-1", agent="notes", namespace=("alice",))
    message = Msg.user("see", KNOWN if beside else wrong(data))
    async with tree.writing():
        tree.add_message(Msg.user("see", MediaBlock(type="image", media=SHOWN)), via="user")
        await tree.commit()
        with pytest.raises(ConfigError, match=r"make them with|give what"):
            tree.add_message(message, via="user", media={SHOWN.sha256: data} if beside else None)
        assert len(tree.messages()) == 1
    assert blob_path(folder / "files", SHOWN.sha256).read_bytes() == b"a picture"


def test_a_content_is_never_replaced_by_bytes_of_another_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_blobs(tmp_path, {SHOWN.sha256: b"a picture"}, sync=False)
    with pytest.raises(ConfigError, match="nothing was stored"):
        write_blobs(tmp_path, {SHOWN.sha256: b"A PICTURE"}, sync=False)
    place = blob_path(tmp_path, SHOWN.sha256)
    assert place.read_bytes() == b"a picture"
    place.write_bytes(b"rotten")
    with caplog.at_level(logging.WARNING, "harness.sessions"):
        write_blobs(tmp_path, {SHOWN.sha256: b"a picture"}, sync=False)
    assert place.read_bytes() == b"a picture"
