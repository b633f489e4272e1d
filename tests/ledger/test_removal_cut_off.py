"""A removal of a user that is killed anywhere: no call sees half a user, and the next removal leaves no byte."""

import asyncio
import logging
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, shown
from removing import CANARY, agent_in, prepare

from harness.errors import RemovalUnfinished, SessionBusy
from harness.testing import CrashKit, Kill, ScriptedModel

SCRIPT = Path(__file__).with_name("removing.py")


def kept(base: Path, word: str) -> dict[str, bytes]:
    found = {path.relative_to(base): path for path in base.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in found.items() if word in name.parts}


def left(base: Path) -> list[str]:
    """Files, but those of Bob, that hold a word of Alice, and names that do."""
    found = [path for path in base.rglob("*") if "bob" not in path.parts]
    return [
        str(path) for path in found if "alice" in path.name or (path.is_file() and CANARY.encode() in path.read_bytes())
    ]


async def state_of(base: Path) -> str:
    """What a call of Alice meets: all of her, nothing, or a refusal. It changes nothing of what is checked later."""
    model = ScriptedModel(["ok", "ok"])
    async with agent_in(base, model) as agent:
        try:
            await agent.call("new", ALICE)
            await agent.call("new", ALICE.with_changes(session_id="java"))
        except RemovalUnfinished:
            return "refused"
        had = [len(shown(request)) > 1 for request in model.requests]
        memory = await agent.config.filesystem.for_namespace(("alice",)).exists("MEMORY.md")
    assert had in ([True, True], [False, False])
    assert memory is had[0]
    return "whole" if had[0] else "gone"


@pytest.mark.slow
async def test_whatever_file_operation_is_the_last_a_user_is_whole_or_gone_or_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    await prepare(tmp_path / "whole")
    bob = kept(tmp_path / "whole", "bob")
    states: Counter[str] = Counter()
    with CrashKit(f"{SCRIPT}:remove") as kit:
        shutil.copytree(tmp_path / "whole", tmp_path / "measure")
        steps = kit.run({"base": str(tmp_path / "measure")}).steps
        assert left(tmp_path / "measure") == []
        for step in range(1, steps + 1):
            for portion in (0.0, 1.0):
                base = tmp_path / f"{step}-{portion}"
                shutil.copytree(tmp_path / "whole", base)
                crash = kit.run({"base": str(base)}, Kill.at_step(step, portion))
                assert crash.killed
                state = await state_of(base)
                states[state] += 1
                async with agent_in(base) as agent:
                    assert await agent.delete_user("alice")
                    assert not await agent.delete_user("alice")
                assert left(base) == [], f"step {step} ({crash.step}), portion {portion}, {state}"
                assert kept(base, "bob") == bob
                shutil.rmtree(base)
    assert states.keys() == {"whole", "gone", "refused"}


@pytest.mark.slow
async def test_calls_of_another_process_meet_all_of_the_user_or_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    removed = busy = 0
    with CrashKit(f"{SCRIPT}:talk") as kit:
        talk = asyncio.create_task(asyncio.to_thread(kit.run, {"base": str(tmp_path), "calls": 120}))
        async with agent_in(tmp_path) as agent:
            while not talk.done():
                try:
                    removed += bool(await agent.delete_user("alice"))
                except SessionBusy:
                    busy += 1
                await asyncio.sleep(0.005)
            await agent.delete_user("alice")
    crash = await talk
    assert left(tmp_path) == []
    assert removed
    assert len(crash.committed) == 120
    said: dict[str, list[str]] = {}
    for turn in crash.committed:
        said.setdefault(turn.prompt, []).append(f"{CANARY} {turn.number}")
        saw = turn.reply.split(" | ")
        assert saw == said[turn.prompt][-len(saw) :]
