"""The longest real conversations on a window of 16 000 tokens: every request is in order, every result can be read back."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from longtalk import request_ids
from provider import Provider
from readback import read_back

from harness import CompactionConfig, HarnessAgent, RuntimeContext, WorkingSet
from harness.models import RetryPolicy
from harness.sessions.selection.recalling import recall_turn
from harness.testing import ReplayModel
from harness.tools import Toolkit
from harness.transcripts import read

WINDOW = 16_000
ALICE = RuntimeContext(session_id="trace", user_id="alice")
LONGEST = (
    "claude/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl",
    "claude/session-3fe1b6bc.jsonl",
    "claude/a7da6a22-facc-4fcd-8bab-f83c87862004.jsonl",
    "codex/rollout-2026-05-11T11-26-55-019e1625-789d-76c0-80ab-3724b5ddb799.jsonl",
)
"""Those with the most tokens and prompts of Claude Code, and of Codex."""
NO_OUTPUT = "[no output]"


def agent_of(workspace: Path, policy: str, model: Any, side: Provider, tools: Toolkit | None = None) -> HarnessAgent:
    made = HarnessAgent.builder().name("replay").model(model).workspace(workspace).toolkit(tools or Toolkit())
    made = made.without("workspace_context", "memory_tools").max_steps(1_000).retry(RetryPolicy(base=0))
    if policy == "working_set":
        return made.working_set(WorkingSet(model=side)).build()
    return made.compaction(CompactionConfig(model=side, trigger_messages=0, keep_messages=1_000)).build()


@pytest.mark.slow
@pytest.mark.parametrize("name", LONGEST)
@pytest.mark.parametrize("policy", ["compaction", "working_set"])
async def test_every_request_is_one_that_a_provider_takes_and_every_result_is_recalled(
    workspace: Path, shared: Path, policy: str, name: str
) -> None:
    recorded = ReplayModel(read(shared / "traces" / name))
    model = Provider(WINDOW, recorded, name=recorded.name, provider=recorded.provider)
    side = Provider(WINDOW, lambda _: "They worked on the project.", name="cheap")
    async with agent_of(workspace, policy, model, side, Toolkit(*recorded.tools())) as agent:
        await recorded.replay(agent, ALICE)
        assert model.wrong == []
        assert side.wrong == []
        assert (await agent.sessions("alice").verify("trace")).ok
        tree = await agent.sessions("alice").tree("trace")
        asked = [*request_ids(workspace / "tenants/alice/agents/replay/sessions/trace.log.jsonl")]
        for request in asked[:: max(len(asked) // 12, 1)]:
            assert (await tree.context_at(request)).exact
        results = await all_results(tree, len(recorded.prompts()))
        given = {call: result.text or NO_OUTPUT for call, result in recorded._script.results.items()}
        assert {call: results[call][1] for call in given} == given
        longest = max(results.values(), key=lambda each: len(each[1]))
        assert await read_back(agent, ALICE, longest[0]) == longest[1]


async def all_results(tree: Any, turns: int) -> dict[str, tuple[str, str]]:
    """The evidence id and the whole text of every result, by the id of its call."""
    found = [recall_turn(tree.files, number) for number in range(1, turns + 1)]
    return {result.call: (result.evidence, result.text) for each in found for result in each.results}
