"""Any conversation on any window: each request in order, within the window, proved by the ledger; all bytes within reach."""

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, call_of, ledger, of_kind
from fitkit import Windowed

from harness import HarnessAgent
from harness.hooks import CompactionConfig, TruncateArgsConfig
from harness.models import ModelRequest, RetryPolicy
from harness.sessions import safe_cuts
from harness.tools import tool

turns = st.lists(
    st.tuples(st.integers(1, 900), st.lists(st.integers(0, 9_000), max_size=4), st.booleans()), min_size=2, max_size=9
)
"""Of each turn: characters of the prompt; of the results of its tool calls; whether those are parallel."""


@st.composite
def configs(draw: st.DrawFn) -> CompactionConfig | None:
    if draw(st.integers(0, 3)) == 0:
        return None  # nothing but the recovery from overflows
    messages = draw(st.sampled_from([0, 3, 6, 20]))
    return (
        CompactionConfig(
            trigger_messages=messages,
            keep_messages=draw(st.integers(0, messages - 1 if messages else 30)),
            trigger_tokens=draw(st.sampled_from([0, 900, 80_000])),
            keep_tokens=draw(st.sampled_from([0, 300])) if draw(st.booleans()) else 0,
            trigger_turns=draw(st.sampled_from([0, 2])),
            truncate_args=draw(
                st.sampled_from([None, TruncateArgsConfig(trigger_messages=4, keep_messages=2, max_arg_length=50)])
            ),
        )
        if draw(st.booleans())
        else CompactionConfig(trigger_messages=messages, keep_messages=0)
    )


class Talk:
    """A model that works through the turns, and tools with results of the wanted length."""

    def __init__(self, plan: list[tuple[int, list[int], bool]]) -> None:
        self.plan = plan
        self.turn = -1
        self.waiting: list[int] = []

    def prompt(self) -> str:
        self.turn += 1
        size, results, parallel = self.plan[self.turn]
        self.waiting, self.parallel = [*results], parallel
        return f"turn {self.turn} " + "p" * size

    def answer(self, _: ModelRequest) -> Any:
        if not self.waiting:
            return f"answer {self.turn}"
        count = len(self.waiting) if self.parallel else 1
        calls = [call_of("dig", size=size, note="n" * min(size, 400)) for size in self.waiting[:count]]
        del self.waiting[:count]
        return calls


@tool
def dig(size: int, note: str) -> str:
    """Dig."""
    return f"start {'r' * size} end"


@pytest.mark.slow
@settings(max_examples=15)
@given(
    plan=turns, window=st.sampled_from([1_600, 2_500, 8_000]), config=configs(),
    declares=st.booleans(), reveals=st.booleans(), fails=st.sampled_from(["SUMMARY", "", "x" * 9_000]),
)  # fmt: skip
async def test_every_request_is_in_order_fits_or_is_made_to_fit_and_can_be_proved(
    tmp_path_factory: pytest.TempPathFactory,
    plan: Any,
    window: int,
    config: Any,
    declares: bool,
    reveals: bool,
    fails: str,
) -> None:
    workspace = tmp_path_factory.mktemp("w")
    talk = Talk(plan)
    model = Windowed(window, talk.answer, lambda _: fails, declares=declares, reveals=reveals)
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).retry(RetryPolicy(base=0))
    builder = builder.without("workspace_context", "session_tools", "memory_tools").tools(dig)
    builder = builder.compaction(config) if config else builder
    async with builder.build() as agent:
        for number, _ in enumerate(plan):
            assert (await agent.call(talk.prompt(), ALICE)).text == f"answer {number}"
        tree = await agent.sessions("alice").tree("s1")
        for entry in of_kind(ledger(workspace), "request_begin"):
            assert (await tree.context_at(entry["id"])).exact
        assert (await agent.sessions("alice").verify("s1")).ok
    messages = tree.messages()
    assert {0, len(messages)} <= set(safe_cuts(messages))
    said = [entry["message"] for entry in of_kind(ledger(workspace), "message") if entry["via"] in ("user", "tool")]
    assert sum(message["role"] == "user" for message in said) == len(plan)
    assert sum(message["role"] == "tool" for message in said) == sum(len(results) for _, results, _ in plan)


async def test_chained_compactions_do_not_grow(workspace: Path) -> None:
    model = Windowed(2_000, lambda _: "a " * 150, lambda request: request.messages[0].text[:5_000], declares=True)
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).compaction()
    async with builder.without("workspace_context", "file_tools", "session_tools", "memory_tools").build() as agent:
        for n in range(60):
            await agent.call(f"{n} {'q ' * 150}", ALICE)
    sizes = [len(entry["summary"]) for entry in of_kind(ledger(workspace), "compaction")]
    assert len(sizes) > 10
    assert max(sizes) <= 1_500  # a quarter of what triggers, in characters
    assert model.refused == []
