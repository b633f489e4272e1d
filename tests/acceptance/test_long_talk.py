"""Conversations of thousands of turns on small windows: they go on, nothing is lost, nothing grows."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from longtalk import LongTalk, builder, paths_of, request_ids, said, talker
from provider import Provider

from harness import CompactionConfig, WorkingSet
from harness.models import OfflineModel, estimate_request

TURNS = int(os.environ.get("HARNESS_LONG_TURNS", "600"))
"""Set HARNESS_LONG_TURNS=5000 for the whole length."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(max(300, TURNS))]
WINDOW = 8_000
POLICIES: dict[str, Any] = {
    # By tokens alone, so that requests come close to the window.
    "compaction": lambda made: made.compaction(CompactionConfig(trigger_messages=0, keep_messages=1_000)),
    "working_set": lambda made: made.working_set(WorkingSet()),
}
CARD = re.compile(r"^#(\d+) asked: turn (\d+)", re.MULTILINE)
CONTEXT_BYTES = 300_000
"""What the context file may have, however long the conversation is."""


async def assert_nothing_is_lost(
    agent: Any, workspace: Path, talk: LongTalk, question: str, *, looks: bool = False
) -> None:
    ledger, context = paths_of(workspace)
    people, answers, results = said(ledger)
    assert people == [*map(talk.prompt, range(1, talk.turns)), question]
    assert len(answers) == talk.turns
    assert (await agent.sessions("alice").verify("long")).ok
    assert context.stat().st_size < CONTEXT_BYTES
    assert results[:-1] == [f"look-{number}" for number in range(3, talk.turns, 3) if looks]
    tree = await agent.sessions("alice").tree("long")
    every = [*request_ids(ledger)]
    for request in [*every[:: max(len(every) // 6, 1)], *every[-2:]]:
        assert (await tree.context_at(request)).exact


@pytest.mark.parametrize("policy", [*POLICIES])
async def test_on_a_window_of_8_000_tokens_it_goes_on_and_recalls_its_third_turn_at_the_last(
    workspace: Path, policy: str
) -> None:
    model, talk = Provider(WINDOW, talker, count=estimate_request), LongTalk(TURNS)
    question = "What was the code word of this project?"
    async with POLICIES[policy](builder(workspace, model)).build() as agent:
        assert (await talk.run(agent, question)).text == "It is marmalade-4711."
        assert model.wrong == []
        assert model.refused == []
        assert model.largest <= WINDOW
        named = CARD.findall("\n".join(message.text for message in model.last.messages))
        assert [number for number, _ in named] == [said for _, said in named]
        assert bool(named) is (policy == "working_set")
        await assert_nothing_is_lost(agent, workspace, talk, question, looks=True)
    print(
        f"\n{policy}: {TURNS} turns, largest request {model.largest} tokens, {model.asked} requests, "
        f"context {paths_of(workspace)[1].stat().st_size} bytes"
    )


@pytest.mark.parametrize("policy", [*POLICIES])
async def test_on_the_offline_model_it_goes_on_and_recalls_its_third_turn_at_the_last(
    workspace: Path, policy: str
) -> None:
    offline, talk = OfflineModel(context_window=WINDOW), LongTalk(TURNS)
    model = Provider(WINDOW, offline, name=offline.name, provider=offline.provider, count=estimate_request)
    question = '/tool recall {"query": "code word project", "limit": 3}'
    async with POLICIES[policy](builder(workspace, model)).build() as agent:
        reply = await talk.run(agent, question)
        assert "#3 " in reply.text
        assert "marmalade-4711" in reply.text
        assert (model.wrong, model.refused) == ([], [])
        await assert_nothing_is_lost(agent, workspace, talk, question)
