"""Media that a message names and does not bring: where they are looked for, and what is said of those that nobody has."""

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, Held, agent_of, call_of, ledger, of_kind

from harness import tool
from harness.errors import CallCancelled, PersistenceError
from harness.filesystem import disk
from harness.hooks import PostReasoning, PreCall, PreReasoning
from harness.messages import Media, MediaBlock, Msg, TextBlock, ToolResult
from harness.testing import ScriptedModel

SHOWN = Media.from_bytes(b"a picture", "image/png")
KNOWN = MediaBlock(type="image", media=SHOWN.model_copy(update={"data": None}))
LOST = MediaBlock(type="image", media=Media(sha256="0" * 64, media_type="image/png", bytes=5))
LOST_TEXT = f"[image {'0' * 64}: its bytes were not there to be stored]"
WAYS = ["person", "steering", "model", "tool", "pre_call", "pre_reasoning", "post_reasoning"]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Each look for a content beside the ledger: the name of the file, and whether it was the event loop that looked."""
    found: list[tuple[str, bool]] = []
    real = disk.has_file

    def look(path: Path) -> bool:
        if len(path.name) == len(SHOWN.sha256):
            found.append((path.name, threading.current_thread() is threading.main_thread()))
        return real(path)

    monkeypatch.setattr(disk, "has_file", look)
    return found


def hook_with(way: str, block: MediaBlock) -> list[Any]:
    message = Msg.user("see", block)

    async def pre_call(event: PreCall) -> PreCall:
        return event.change(messages=(message, *event.messages))

    async def pre_reasoning(event: PreReasoning) -> PreReasoning:
        return event.change(additions=(message,))

    async def post_reasoning(event: PostReasoning) -> PostReasoning | None:
        return None if event.message.tool_uses else event.change(message=Msg.assistant("see", block))

    hooks: list[Callable[..., Any]] = [pre_call, pre_reasoning, post_reasoning]
    return [hook for hook in hooks if hook.__name__ == way]


async def say(workspace: Path, way: str, block: MediaBlock) -> list[str]:
    """A call into which one way brings a block; its warnings."""

    @tool
    def look() -> ToolResult | str:
        """Look at something."""
        return ToolResult(id="x", content=[TextBlock(text="see"), block]) if way == "tool" else "nothing"

    held = Held(call_of("look"))
    model = ScriptedModel([held, Msg.assistant("see", block) if way == "model" else "done"])
    async with agent_of(workspace, model, look, hooks=hook_with(way, block)) as agent:
        call = agent.call(Msg.user("see", block) if way == "person" else "see", ALICE)
        call.start()
        if way == "steering":
            await held.asked.wait()
            assert call.steer(Msg.user("see", block))
        held.let_go.set()
        await call
        assert (await agent.sessions(ALICE).verify("s1")).ok
    return call.warnings


@pytest.mark.parametrize("way", WAYS)
async def test_media_that_are_named_are_looked_for_beside_the_event_loop(
    workspace: Path, way: str, looks: list[tuple[str, bool]]
) -> None:
    async with agent_of(workspace, ScriptedModel(["seen"])) as agent:
        await agent.call(Msg.user(MediaBlock(type="image", media=SHOWN)), ALICE)
    looks.clear()
    assert await say(workspace, way, KNOWN) == []
    assert (SHOWN.sha256, False) in looks
    assert not [name for name, on_the_loop in looks if on_the_loop]
    assert LOST_TEXT not in str(ledger(workspace))


@pytest.mark.parametrize("way", WAYS)
async def test_the_caller_is_told_of_media_that_nobody_has(
    workspace: Path, way: str, looks: list[tuple[str, bool]]
) -> None:
    warnings = await say(workspace, way, LOST)
    assert len(warnings) == 1
    assert "0" * 64 in warnings[0]
    assert warnings[0].endswith("; give the bytes along, as Media.from_bytes does")
    assert not [name for name, on_the_loop in looks if on_the_loop]
    assert LOST_TEXT in str(of_kind(ledger(workspace), "message"))


async def shown_once(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["seen"])) as agent:
        await agent.call(Msg.user(MediaBlock(type="image", media=SHOWN)), ALICE)


def assert_all_is_logged(workspace: Path) -> None:
    """The picture, and what names it: logged once more, and no call of a tool is said to have been cut short."""
    said = [str(line) for line in of_kind(ledger(workspace), "message")]
    assert len([line for line in said if SHOWN.sha256 in line]) == 2
    assert "interrupted: this call did not finish" not in "".join(said)


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_said_is_logged_where_the_disk_does_not_say_whether_its_media_are_there(
    workspace: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shown_once(workspace)
    real = disk.has_file

    def look(path: Path) -> bool:
        if path.name == SHOWN.sha256:
            raise PersistenceError("the disk does not answer; try again")
        return real(path)

    monkeypatch.setattr(disk, "has_file", look)
    with pytest.raises(PersistenceError, match="the disk does not answer"):
        await say(workspace, way, KNOWN)
    assert_all_is_logged(workspace)


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_said_is_logged_where_the_call_is_stopped_while_its_media_are_looked_for(
    workspace: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shown_once(workspace)
    loop, stopped, real = asyncio.get_running_loop(), threading.Event(), disk.has_file

    def stop() -> None:
        call.cancel()
        loop.call_soon(stopped.set)

    def look(path: Path) -> bool:
        if path.name == SHOWN.sha256 and not stopped.is_set():
            loop.call_soon_threadsafe(stop)
            assert stopped.wait(20)
        return real(path)

    monkeypatch.setattr(disk, "has_file", look)
    call = asyncio.create_task(say(workspace, way, KNOWN))
    with pytest.raises((asyncio.CancelledError, CallCancelled)):
        await call
    assert_all_is_logged(workspace)


async def test_a_message_that_names_no_media_or_brings_them_is_looked_for_nowhere(
    workspace: Path, looks: list[tuple[str, bool]]
) -> None:
    async with agent_of(workspace, ScriptedModel(["seen"])) as agent:
        call = agent.call([Msg.user("plain"), Msg.user("see", MediaBlock(type="image", media=SHOWN))], ALICE)
        await call
    assert (looks, call.warnings) == ([], [])


async def test_what_a_person_said_with_media_is_kept_where_a_hook_refuses_the_call(workspace: Path) -> None:
    async def refuse(event: PreCall) -> None:
        raise ValueError("not today")

    async with agent_of(workspace, ScriptedModel([]), hooks=[refuse]) as agent:
        call = agent.call(Msg.user("see", LOST), ALICE)
        with pytest.raises(Exception, match="not today"):
            await call
    assert LOST_TEXT in str(of_kind(ledger(workspace), "message"))
    assert len(call.warnings) == 1


async def test_a_medium_that_comes_later_is_found_by_the_next_message_of_the_same_call(workspace: Path) -> None:
    async def bring(event: PreReasoning) -> PreReasoning:
        block = MediaBlock(type="image", media=SHOWN) if event.step == 1 else KNOWN
        return event.change(additions=(Msg.user(f"step {event.step}", block),))

    @tool
    def look() -> str:
        """Look at something."""
        return "nothing"

    async with agent_of(workspace, ScriptedModel([call_of("look"), "done"]), look, hooks=[bring]) as agent:
        call = agent.call(Msg.user("see", KNOWN), ALICE)
        await call
        assert len(call.warnings) == 1
    images = [block for line in of_kind(ledger(workspace), "message") for block in line["message"]["content"]]
    assert [block["type"] for block in images if block["type"] == "image"] == ["image", "image"]
