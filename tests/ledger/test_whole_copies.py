"""A copy has all that its lines name, whichever branch wrote it first, and is there whole or not at all."""

import asyncio
import random
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, exists, ledger, of_kind, sessions_folder

from harness.errors import SessionNotFound
from harness.filesystem import disk
from harness.messages import Media, MediaBlock, Msg, TextBlock
from harness.sessions.ledger import reading
from harness.sessions.lines.entries import digest
from harness.sessions.moving import forking
from harness.testing import ScriptedModel
from harness.tools import tool


@tool
def look(n: int) -> str:
    """Look."""
    return f"found {n}"


@tool
def seek(n: int) -> str:
    """Seek."""
    return f"sought {n}"


TOOLS = [(), (look,), (seek,), (look, seek)]
LARGE_PROMPT = "Be brief. " * 30_000


async def ask(workspace: Path, prompt: str, *tools: Any) -> str:
    """The line of the answer that an agent of these words and tools gave."""
    async with agent_of(workspace, ScriptedModel(["done"]), *tools, system_prompt=prompt) as agent:
        call = agent.call("hi", ALICE)
        await call
    return call.entry_id or ""


async def go_back(workspace: Path, line: str) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        await agent.sessions("alice").branch("s1", line)


async def exactness(sessions: Any, session: str) -> list[bool]:
    tree = await sessions.tree(session)
    return [(await tree.context_at(row.request)).exact for row in (await sessions.usage(session)).rows]


async def copied(workspace: Path, tmp_path: Path) -> list[bool]:
    """Whether what each request showed can be proved in a copy that was then taken elsewhere, and is complete."""
    async with agent_of(workspace, ScriptedModel()) as agent:
        sessions = agent.sessions("alice")
        assert all(await exactness(sessions, "s1"))
        await sessions.fork("s1", to="copy")
        here = await exactness(sessions, "copy")
        await sessions.export("copy", tmp_path / "copy.zip")
    async with agent_of(tmp_path / "elsewhere", ScriptedModel()) as other:
        await other.sessions("alice").import_session(tmp_path / "copy.zip")
        assert await exactness(other.sessions("alice"), "copy") == here
        assert (await other.sessions("alice").verify("copy")).findings == ()
    return here


@pytest.mark.parametrize("seed", range(6))
async def test_what_each_request_showed_can_be_proved_in_a_copy_whatever_branch_wrote_its_texts(
    workspace: Path, tmp_path: Path, new_process: Any, seed: int
) -> None:
    rng = random.Random(seed)
    lines: list[str] = []
    for _ in range(8):
        new_process()
        if lines and rng.random() < 0.4:
            await go_back(workspace, rng.choice(lines))
            new_process()
        lines.append(await ask(workspace, rng.choice(["One.", "Two.", LARGE_PROMPT]), *rng.choice(TOOLS)))
    assert all(await copied(workspace, tmp_path))


@pytest.mark.parametrize("prompt", ["Two.", LARGE_PROMPT])
async def test_a_copy_gets_a_text_that_an_older_version_left_on_another_branch(
    workspace: Path, tmp_path: Path, new_process: Any, monkeypatch: pytest.MonkeyPatch, prompt: str
) -> None:
    first = await ask(workspace, "One.")
    await ask(workspace, prompt)
    await go_back(workspace, first)
    new_process()
    monkeypatch.setattr(reading, "texts_written", lambda *_: {digest(prompt.encode())})
    await ask(workspace, prompt)
    left = of_kind(ledger(workspace), "binding")[-1]["system"][0]
    assert sorted(left) == ["name", "sha256"]
    assert await copied(workspace, tmp_path) == [True, True]


async def test_a_copy_that_is_cut_off_at_any_step_is_whole_or_is_none(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(workspace, "One.")
    taken: list[Path] = []

    def photographed(step: Any) -> Any:
        def done(*args: Any, **options: Any) -> Any:
            result = step(*args, **options)
            taken.append(tmp_path / str(len(taken)))
            shutil.copytree(workspace, taken[-1])
            return result

        return done

    async with agent_of(workspace, ScriptedModel()) as agent:
        for place, name in ((forking, "write_blocks"), (disk, "write_block"), (forking, "move_into_place")):
            monkeypatch.setattr(place, name, photographed(getattr(place, name)))
        await agent.sessions("alice").fork("s1", to="copy")
        monkeypatch.undo()
    there = [exists(sessions_folder(place) / "copy.log.jsonl") for place in taken]
    assert there == [False, False, True]
    async with agent_of(taken[-1], ScriptedModel()) as agent:
        assert (await agent.sessions("alice").verify("copy")).findings == ()


SHOWN = Media.from_bytes(b"\x89PNG" * 99, "image/png")
PICTURE = Msg.user(TextBlock(text="look"), MediaBlock(type="image", media=SHOWN))


@pytest.mark.parametrize("begun_anew", [False, True])
async def test_a_session_that_is_deleted_while_it_is_copied_is_not_found_and_nothing_of_the_copy_is_there(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, begun_anew: bool
) -> None:
    planned = forking._planned
    async with agent_of(workspace, ScriptedModel(["seen", "again"])) as agent:
        sessions = agent.sessions("alice")
        await agent.call(PICTURE, ALICE)
        reached, going_on = threading.Event(), threading.Event()

        def slowly(*args: Any) -> Any:
            copy = planned(*args)
            reached.set()
            assert going_on.wait(30)
            return copy

        monkeypatch.setattr(forking, "_planned", slowly)
        copying = asyncio.create_task(sessions.fork("s1", to="copy"))
        await asyncio.to_thread(reached.wait, 30)
        await sessions.delete("s1")
        if begun_anew:
            await agent.call("new", ALICE)
        going_on.set()
        with pytest.raises(SessionNotFound, match="s1"):
            await copying
        assert [info.id for info in await sessions.list()] == ["s1"] * begun_anew


@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("what", ["fork", "export", "history", "read", "verify", "usage"])
async def test_a_session_that_is_deleted_while_it_is_read_is_not_found_and_no_file_is_missing(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, steps: int
) -> None:
    """`steps` is how many times the ledger is opened before it is gone."""
    await ask(workspace, "One.")
    ledger_file = sessions_folder(workspace) / "s1.log.jsonl"
    opened = 0

    def gone_after(step: Any) -> Any:
        def done(path: Path, *args: Any, **options: Any) -> Any:
            nonlocal opened
            opened += path == ledger_file
            if opened > steps:
                ledger_file.unlink(missing_ok=True)
            return step(path, *args, **options)

        return done

    async with agent_of(workspace, ScriptedModel()) as agent:
        sessions = agent.sessions("alice")
        for name in ("read", "read_blocks", "mark"):
            monkeypatch.setattr(disk, name, gone_after(getattr(disk, name)))
        try:
            if what == "read":
                assert all([message.role async for message in sessions.read("s1")])
            else:
                args = [tmp_path / "s.zip"] if what == "export" else []
                await getattr(sessions, what)("s1", *args)
        except SessionNotFound:
            assert opened > steps


LOST = Media(sha256="0" * 64, media_type="image/png", bytes=5)


@pytest.mark.parametrize("of", ["person", "model", "tool"])
async def test_media_that_nobody_has_are_told_in_a_text_and_the_session_stays_whole(
    workspace: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, of: str
) -> None:
    lost = MediaBlock(type="image", media=LOST)

    @tool
    def shot() -> MediaBlock:
        """Shot."""
        return lost if of == "tool" else MediaBlock(type="image", media=SHOWN)

    answer = Msg.assistant(lost) if of == "model" else "done"
    async with agent_of(workspace, ScriptedModel([ScriptedModel.tool_call("shot"), answer, "on"]), shot) as agent:
        sessions = agent.sessions("alice")
        await agent.call(Msg.user(TextBlock(text="look"), lost) if of == "person" else "look", ALICE)
        await agent.call("on", ALICE)
        assert f"[image {LOST.sha256}: its bytes were not there to be stored]" in str(await sessions.history("s1"))
        assert LOST.sha256 in caplog.text
        assert (await sessions.verify("s1")).findings == ()
    assert all(await copied(workspace, tmp_path))


async def test_media_that_the_session_has_may_be_named_again_without_their_bytes(workspace: Path) -> None:
    named = MediaBlock(type="image", media=SHOWN.model_copy(update={"data": None}))
    async with agent_of(workspace, ScriptedModel(["one", "two"])) as agent:
        await agent.call(PICTURE, ALICE)
        await agent.call(Msg.user(named), ALICE)
        history = await agent.sessions("alice").history("s1")
        assert [type(message.blocks[-1]) for message in history if message.role == "user"] == [MediaBlock] * 2
