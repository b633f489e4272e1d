"""What a refusal says of a model's window may be wrong, and what a model says of itself too: no session gets stuck."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, ledger, of_kind
from fitkit import Windowed
from wskit import LONG, WorkingSet, assert_exact, long_answer, say

from harness.errors import ConfigError, ContextOverflow
from harness.hooks import CompactionConfig
from harness.messages import Usage
from harness.models import ModelRequest, RetryPolicy, estimate_request
from harness.testing import ScriptedModel

POLICIES: dict[str, dict[str, Any]] = {
    "working set": {"working_set": WorkingSet()},
    "compaction": {"compaction": CompactionConfig()},
}
policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


class Liar(Windowed):
    """Takes 3 000 tokens, says that it takes 200 000, and names another number when it refuses."""

    def __init__(self, named: Any, window: int = 3_000, usage: Usage | None = None) -> None:
        super().__init__(window, long_answer)
        self.context_window = 200_000
        self.named, self.usage = named, usage

    async def stream(self, request: ModelRequest) -> Any:
        if (size := estimate_request(request)) > self.window:
            self.refused.append(size)
            raise ContextOverflow("too long", window=self.named)
        async for chunk in super().stream(request):
            yield chunk


@policies
@pytest.mark.parametrize("named", [200_000, 13_000, 0, -5, 3, float("nan"), float("inf"), "many", True, 10**30])
async def test_a_number_that_explains_nothing_is_no_number(workspace: Path, policy: Any, named: Any) -> None:
    model = Liar(named)
    async with agent_of(workspace, model, **policy) as agent:
        await say(agent, range(16))
        await assert_exact(agent)
    assert 0 < len(model.refused) <= 4


@policies
async def test_after_two_refusals_in_one_call_the_next_one_begins_with_less(workspace: Path, policy: Any) -> None:
    model = Liar(None, window=100_000)
    async with agent_of(workspace, model, retry=RetryPolicy(attempts=1), **policy) as agent:
        await say(agent, range(30))
        model.window = 700
        failed = 0
        for number in range(5):
            try:
                await say(agent, [number])
            except ContextOverflow:
                failed += 1
    assert failed <= 2
    windows = [entry["data"]["window"] for entry in of_kind(ledger(workspace), "capacity") if "window" in entry["data"]]
    assert windows == sorted(windows, reverse=True)


@policies
async def test_a_small_number_is_not_believed_once_something_larger_was_answered(workspace: Path, policy: Any) -> None:
    model = Liar(300)
    async with agent_of(workspace, model, **policy) as agent:
        await say(agent, range(12))
        first = len(model.refused)
        model.window = 100_000
        await agent.call("word " * 4_000, ALICE)
        await say(agent, range(20, 23))
    known = [entry["data"]["window"] for entry in of_kind(ledger(workspace), "capacity") if "window" in entry["data"]]
    assert (first, known[0]) == (1, 300)
    assert known[-1] > 9_000


async def test_counts_that_cannot_be_do_not_unlearn_what_a_refusal_taught(workspace: Path) -> None:
    answers = ScriptedModel([f"answer {LONG}"] * 80, usage=Usage(input=1, output=1))

    class Wrong(Windowed):
        async def stream(self, request: ModelRequest) -> Any:
            if estimate_request(request) * 1.5 > self.window:
                self.refused.append(1)
                raise ContextOverflow("too long", window=self.window)
            async for chunk in answers.stream(request):
                yield chunk

    Wrong.provider, Wrong.name = answers.provider, answers.name
    model = Wrong(8_000, declares=True)
    async with agent_of(workspace, model, working_set=WorkingSet()) as agent:
        await say(agent, range(40))
    assert len(model.refused) <= 2


@pytest.mark.parametrize("odd", ["8000", float("nan"), float("inf"), True, -1, 0, 8_000.0, 10**30])
def test_a_window_that_can_be_none_is_refused_where_the_model_is_bound(workspace: Path, odd: Any) -> None:
    model = ScriptedModel(["hi"], provider="acme", name="odd", context_window=odd)
    with pytest.raises(ConfigError, match=r"acme:odd says that its context_window is "):
        agent_of(workspace, model)
    with pytest.raises(ConfigError, match="acme:odd"):
        agent_of(workspace, ScriptedModel(["hi"]), compaction=CompactionConfig(model=model))
    agent = agent_of(workspace, ScriptedModel(["hi"]))
    with pytest.raises(ConfigError, match="acme:odd"):
        agent.call("hello", ALICE, model=model)
