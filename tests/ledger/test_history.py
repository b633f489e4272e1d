"""`history` and `read`: the last messages, or all, and no others."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of

from harness.errors import ConfigError
from harness.testing import ScriptedModel


async def test_the_last_twenty_messages_or_as_many_as_are_wanted_or_all(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([f"answer {n}" for n in range(12)])) as agent:
        for number in range(12):
            await agent.call(f"question {number}", ALICE)
        sessions = agent.sessions("alice")
        said = [message.text for message in await sessions.history("s1", None)]
        assert (len(said), said[0], said[-1]) == (24, "question 0", "answer 11")
        assert [message.text for message in await sessions.history("s1")] == said[-20:]
        assert [message.text async for message in sessions.read("s1")] == said[-20:]
        assert [message.text async for message in sessions.read("s1", 3)] == said[-3:]
        assert [message.text async for message in sessions.read("s1", None)] == said


@pytest.mark.parametrize("wrong", [0, -1, "all", 2.5, True])
async def test_a_number_of_messages_that_is_none_names_itself(workspace: Path, wrong: Any) -> None:
    async with agent_of(workspace, ScriptedModel(["Hello."])) as agent:
        await agent.call("Hi.", ALICE)
        with pytest.raises(ConfigError, match="history: last_n"):
            await agent.sessions("alice").history("s1", wrong)
        with pytest.raises(ConfigError, match="read: last_n"):
            await anext(agent.sessions("alice").read("s1", wrong))
