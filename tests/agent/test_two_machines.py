"""Two machines with workspaces of their own share one store of snapshots: nothing that was said is missing on either."""

from pathlib import Path

import pytest

from harness import HarnessAgent, RuntimeContext
from harness.hooks import CompactionConfig
from harness.models.base import ModelRequest
from harness.sessions import InMemorySession
from harness.testing import ScriptedModel

TURNS = ["AAABABA", "ABABABABAB", "AAAAAAB", "AAAAABBBBBAB", "ABBBBBBAAAAAAAB", "BAAAAAAAAAABAB"]
"""Who speaks, turn by turn."""


def answer(request: ModelRequest) -> str:
    """A summary that names all it stands for, or an answer."""
    words = [word for message in request.messages for word in message.text.split() if word.startswith("word")]
    return "they said " + " ".join(dict.fromkeys(words)) if "summar" in (request.system or "").lower() else "yes"


@pytest.mark.parametrize("compacting", ["", "A", "B", "AB"])
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("keep", [0, 2, 4])
async def test_the_model_sees_what_was_said_on_the_other_machine(
    tmp_path: Path, turns: str, compacting: str, keep: int
) -> None:
    store, model, agents = InMemorySession(), ScriptedModel([answer] * 60), {}
    for name in "AB":
        builder = HarnessAgent.builder().name("notes").model(model).workspace(tmp_path / name)
        if name in compacting:
            builder = builder.compaction(CompactionConfig(trigger_messages=6, keep_messages=keep))
        agents[name] = builder.build()
    for number, name in enumerate(turns):
        ctx = RuntimeContext(session_id="s1", user_id="alice", session=store)
        call = agents[name].call(f"word{number:02}", ctx)
        await call
        sent = " ".join(message.text for message in model.requests[-1].messages)
        assert [each for each in range(number + 1) if f"word{each:02}" not in sent] == []
        assert not [warning for warning in call.warnings if "different ways" in warning]
    for agent in agents.values():
        if await agent.sessions("alice").list():
            assert (await agent.sessions("alice").verify("s1")).ok
        await agent.aclose()
