"""A user's own tool that has the name of a built-in one takes its place."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, call_of

from harness import HarnessAgent
from harness.testing import ScriptedModel
from harness.tools import tool

LINES = "".join(f"{n:06} {'x' * 40}\n" for n in range(2_500))


@tool
def recall(what: str) -> str:
    """Recall a customer.

    Args:
        what: who
    """
    return f"{what} likes tea" if what != "everything" else LINES


async def test_it_is_the_one_that_the_model_is_shown_and_that_runs(workspace: Path) -> None:
    model = ScriptedModel([call_of("recall", what="Ann"), "done"])
    agent = HarnessAgent.builder().model(model).workspace(workspace).tools(recall).build()
    await agent.call("Who is Ann?", ALICE)
    shown = [spec.description for spec in model.requests[0].tools if spec.name == "recall"]
    assert shown == ["Recall a customer."]
    [result] = [result for message in model.requests[1].messages for result in message.tool_results]
    assert result.text == "Ann likes tea"


async def test_a_large_result_of_it_is_kept_although_the_built_in_s_are_not(workspace: Path) -> None:
    model = ScriptedModel([call_of("recall", what="everything"), "done"])
    agent = HarnessAgent.builder().model(model).workspace(workspace).tools(recall).build()
    await agent.call("All of them.", ALICE)
    [result] = [result for message in model.requests[1].messages for result in message.tool_results]
    assert result.evicted is not None
    assert result.evicted["chars"] == len(LINES)
