"""The order of events, as drawn in README.md."""

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, call_of

from harness import hooks
from harness.errors import ModelRejected, ModelUnavailable
from harness.models import RetryPolicy, TextDelta
from harness.testing import ScriptedModel

_BLOCK = re.compile(r"<!-- event-order:start -->\n```text\n(.*?)```\n<!-- event-order:end -->", re.DOTALL)
_NAME = re.compile(r"[├└]── ([A-Z][A-Za-z]+)( \*)?( …)?$")
STEP_WITH_TOOL = ["PreReasoning", "ReasoningChunk", "PostReasoning", "PreActing", "PostActing"]
LAST_STEP = ["PreReasoning", "ReasoningChunk", "PostReasoning"]


def trees(root: Path) -> list[str]:
    found = _BLOCK.search((root / "README.md").read_text(encoding="utf-8"))
    assert found is not None, "README.md draws the order of events between the event-order comments"
    return found[1].split("\n\n")


def drawn(tree: str) -> list[str]:
    return [found[1] for line in tree.splitlines() if (found := _NAME.search(line))]


class Watcher:
    """Keeps the class of every event; runs of chunks count as one."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_event(self, event: Any) -> None:
        self.heard.append(type(event).__name__)

    @property
    def order(self) -> list[str]:
        return [name for name, _ in groupby(self.heard)]


def look() -> Iterator[str]:
    yield "one "
    yield "two"


async def test_a_call_with_a_tool_is_as_the_first_tree_draws_it(workspace: Path, root: Path) -> None:
    watcher = Watcher()
    async with agent_of(workspace, ScriptedModel([call_of("look"), "all done"]), look, hooks=[watcher]) as agent:
        await agent.call("hi", ALICE)
    assert watcher.order == drawn(trees(root)[0])


async def test_a_call_at_its_limit_is_as_the_second_tree_draws_it(workspace: Path, root: Path) -> None:
    watcher = Watcher()

    def quiet() -> str:
        return "x"

    model = ScriptedModel([call_of("quiet"), "that was all"])
    async with agent_of(workspace, model, quiet, hooks=[watcher], max_steps=1) as agent:
        await agent.call("hi", ALICE)
    assert watcher.order == drawn(trees(root)[1])


async def test_a_call_that_fails_is_as_the_third_tree_draws_it(workspace: Path, root: Path) -> None:
    watcher = Watcher()
    model = ScriptedModel([[TextDelta("so far"), ModelRejected("no")]])
    async with agent_of(workspace, model, hooks=[watcher]) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("hi", ALICE)
    assert watcher.order == drawn(trees(root)[2])


def test_the_trees_mark_exactly_the_events_that_may_be_changed(root: Path) -> None:
    marked = {
        found[1]: bool(found[2]) for tree in trees(root) for line in tree.splitlines() if (found := _NAME.search(line))
    }
    assert marked == {name: bool(getattr(hooks, name).changeable) for name in marked}
    assert len(marked) == 12


def test_the_trees_mark_exactly_the_events_that_come_in_pieces(root: Path) -> None:
    pieces = {
        found[1] for tree in trees(root) for line in tree.splitlines() if (found := _NAME.search(line)) and found[3]
    }
    assert pieces == {"ReasoningChunk", "ActingChunk", "SummaryChunk"}


async def test_consumers_see_the_same_order_as_hooks(workspace: Path) -> None:
    watcher = Watcher()
    async with agent_of(workspace, ScriptedModel([call_of("look"), "done"]), look, hooks=[watcher]) as agent:
        seen = [event.event async for event in agent.call("hi", ALICE)]
    assert seen == [getattr(hooks, name).event_name() for name in watcher.heard]


async def test_parallel_tools_are_all_prepared_before_the_first_runs(workspace: Path) -> None:
    watcher = Watcher()

    def quiet() -> str:
        return "x"

    model = ScriptedModel([[call_of("quiet"), call_of("quiet")], "done"])
    async with agent_of(workspace, model, quiet, hooks=[watcher]) as agent:
        await agent.call("hi", ALICE)
    acting = [name for name in watcher.heard if "Acting" in name]
    assert acting == ["PreActing", "PreActing", "PostActing", "PostActing"]


async def test_a_retry_shows_as_a_notice_within_the_step(workspace: Path) -> None:
    watcher = Watcher()
    model = ScriptedModel([ModelUnavailable("busy"), "done"])
    async with agent_of(workspace, model, hooks=[watcher], retry=RetryPolicy(base=0)) as agent:
        await agent.call("hi", ALICE)
    assert watcher.order == ["PreCall", "PreReasoning", "Notice", "ReasoningChunk", "PostReasoning", "PostCall"]


async def test_each_step_of_a_turn_repeats_the_same_events(workspace: Path) -> None:
    watcher = Watcher()

    def quiet() -> str:
        return "x"

    model = ScriptedModel([call_of("quiet"), call_of("quiet"), "done"])
    async with agent_of(workspace, model, quiet, hooks=[watcher]) as agent:
        await agent.call("hi", ALICE)
    assert watcher.order == ["PreCall", *STEP_WITH_TOOL, *STEP_WITH_TOOL, *LAST_STEP, "PostCall"]
