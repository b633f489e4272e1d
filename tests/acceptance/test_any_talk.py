"""Any conversation under any settings of either policy: requests in order, within the window, proved; all bytes in reach."""

import contextlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from longtalk import ALICE, asks_for_summary, paths_of, request_ids
from provider import Provider
from readback import read_back

from harness import CompactionConfig, HarnessAgent, WorkingSet
from harness.agent import open_session
from harness.errors import ModelError, ModelRejected
from harness.messages import Msg, ToolUse
from harness.models import ModelRequest, RetryPolicy, estimate_request
from harness.sessions.selection.recalling import recall_result, recall_turn
from harness.tools import tool

EVENTS = st.sampled_from(["", "", "", "", "restart", "compact", "branch", "policy", "model"])
TURNS = st.lists(
    st.tuples(st.integers(0, 700), st.lists(st.integers(0, 9_000), max_size=4), st.booleans(), EVENTS),
    min_size=2,
    max_size=30,
)
"""Of each turn: characters of the prompt; of the results of its tool calls; whether those are parallel; what comes before."""
SUMMARIES = st.sampled_from(["They go on.", "long " * 3_000, "</turns>", "", ModelRejected("no")])


@st.composite
def policies(draw: st.DrawFn) -> Any:
    if draw(st.integers(0, 2)):
        return WorkingSet(
            max_full_tokens=draw(st.sampled_from([0, 600, 12_000])),
            batch=draw(st.sampled_from([1, 3, 8])),
            checkpoint_turns=draw(st.sampled_from([8, 9, 64])),
            max_boundaries=draw(st.sampled_from([1, 2, 8])),
            max_packet_tokens=draw(st.sampled_from([50, 200, 800])),
        )
    messages = draw(st.sampled_from([0, 3, 9]))
    return CompactionConfig(trigger_messages=messages, keep_messages=draw(st.integers(0, max(messages - 1, 0))))


class Talk:
    """A model that works through the turns, and what it has been given so far."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.parallel = False
        self.number = 0
        self.given: list[list[str]] = []

    def prompt(self, size: int, results: list[int], parallel: bool) -> str:
        self.number += 1
        self.waiting, self.parallel = [*results], parallel
        return f"turn {self.number} {'日本' if self.number % 3 == 0 else ''}" + "p" * size

    def answer(self, _: ModelRequest) -> Any:
        if not self.waiting:
            return f"answer {self.number}"
        count = len(self.waiting) if self.parallel else 1
        sizes, self.waiting = self.waiting[:count], self.waiting[count:]
        # Providers differ in whether ids come again; each turn uses the same few here.
        left = len(self.waiting)
        return [ToolUse(id=f"c-{left}-{n}", name="dig", input={"size": size}) for n, size in enumerate(sizes)]


@tool
def dig(size: int) -> str:
    """Dig."""
    return f"start {'r' * size} end"


class Played:
    """A conversation that is played turn by turn, through agents that come and go."""

    def __init__(self, workspace: Path, window: int, policy: Any, summary: Any, *, keep: bool = False) -> None:
        self.workspace, self.policy = workspace, policy
        self.talk = Talk()

        def answer(request: ModelRequest) -> Any:
            return summary if asks_for_summary(request) else self.talk.answer(request)

        self.model = Provider(window, answer, count=estimate_request, keep=keep)
        self.other = Provider(9_000, answer, count=estimate_request, keep=keep, name="other", provider="elsewhere")
        self.models = [self.model, self.other]
        self.path: list[tuple[str, list[int]]] = []
        """Of each turn of the active path: the line of its reply, and the sizes of its results."""

    def agent(self) -> HarnessAgent:
        made = HarnessAgent.builder().name("notes").model(self.model).workspace(self.workspace)
        made = made.without("workspace_context", "memory_tools").tools(dig).retry(RetryPolicy(base=0))
        if isinstance(self.policy, WorkingSet):
            return made.working_set(self.policy).build()
        return made.compaction(self.policy).build()

    async def play(self, plan: Any) -> HarnessAgent:
        agent = self.agent()
        for size, results, parallel, event in plan:
            if event in ("restart", "policy"):
                await agent.aclose()
                open_session._cache._open.clear()
                if event == "policy":
                    self.policy = CompactionConfig() if isinstance(self.policy, WorkingSet) else WorkingSet(batch=2)
                agent = self.agent()
            elif event == "model":
                self.models.reverse()
            elif event and self.path:
                await self._do(agent, event, size)
            call = agent.call(self.talk.prompt(size, results, parallel), ALICE, model=self.models[0])
            assert (await call).text == f"answer {self.talk.number}"
            self.path.append((str(call.entry_id), results))
        return agent

    async def _do(self, agent: HarnessAgent, event: str, pick: int) -> None:
        if event == "branch":
            back = pick % len(self.path)
            await agent.sessions("alice").branch("long", self.path[back][0])
            del self.path[back + 1 :]
            return
        with contextlib.suppress(ModelError):  # a summariser that fails is part of the play
            await agent.sessions("alice").compact("long")


@pytest.mark.slow
@settings(max_examples=40)
@given(plan=TURNS, window=st.sampled_from([2_600, 4_000, 16_000]), policy=policies(), summary=SUMMARIES)
async def test_every_request_is_in_order_fits_and_is_proved_and_every_result_is_recalled(
    tmp_path_factory: pytest.TempPathFactory, plan: Any, window: int, policy: Any, summary: Any
) -> None:
    workspace = tmp_path_factory.mktemp("w")
    played = Played(workspace, window, policy, summary)
    agent = await played.play(plan)
    for model in played.models:
        assert (model.wrong, model.refused) == ([], [])
    sessions = agent.sessions("alice")
    assert (await sessions.verify("long")).ok
    tree = await sessions.tree("long")
    for request in request_ids(paths_of(workspace)[0]):
        assert (await tree.context_at(request)).exact
    for number, (_, sizes) in enumerate(played.path, start=1):
        found = recall_turn(tree.files, number)
        assert [result.text for result in found.results] == [f"start {'r' * size} end" for size in sizes]
        assert [result.evidence for result in found.results] == [f"{number}.{k}" for k in range(1, len(sizes) + 1)]
    largest = max(((max(sizes), n, sizes) for n, (_, sizes) in enumerate(played.path, start=1) if sizes), default=None)
    if largest:
        size, number, sizes = largest
        evidence = f"{number}.{sizes.index(size) + 1}"
        assert await read_back(agent, ALICE, evidence) == f"start {'r' * size} end"
    await agent.aclose()


NAMED = re.compile(r"\[evidence:(\d+)\.(\d+) — (\d+) chars; call recall to expand\]")
CARD = re.compile(r"^#(\d+) asked: turn (\d+)", re.MULTILINE)


@pytest.mark.slow
@settings(max_examples=15)
@given(plan=TURNS, window=st.sampled_from([2_600, 4_000, 16_000]), policy=policies())
async def test_what_a_request_names_by_number_is_recalled_by_that_number(
    tmp_path_factory: pytest.TempPathFactory, plan: Any, window: int, policy: Any
) -> None:
    played = Played(tmp_path_factory.mktemp("w"), window, policy, "They go on.", keep=True)
    # Without going back, the turns of the path are those that were played.
    agent = await played.play([(*rest, "restart" if event == "branch" else event) for *rest, event in plan])
    files = (await agent.sessions("alice").tree("long")).files
    await agent.aclose()
    shown = "\n".join(
        "\n".join([message.text, *(result.text for result in message.tool_results)])
        for request in [*played.model.requests, *played.other.requests]
        for message in request.messages
    )
    assert {number for number, said in CARD.findall(shown) if number != said} == set()
    for number, ordinal, chars in set(NAMED.findall(shown)):
        found = recall_result(files, int(number), int(ordinal))
        assert (found.evidence, len(found.text)) == (f"{number}.{ordinal}", int(chars))


@pytest.mark.slow
@pytest.mark.parametrize("policy", [CompactionConfig(), WorkingSet()], ids=["compaction", "working_set"])
async def test_a_summariser_that_repeats_all_it_is_shown_makes_nothing_grow(workspace: Path, policy: Any) -> None:
    """Chained summaries converge: each is made of the one before."""
    played = Played(workspace, 2_600, policy, lambda request: "\n".join(m.text for m in request.messages))
    agent = await played.play([(600, [], False, "")] * 90)
    await agent.aclose()
    assert (played.model.wrong, played.model.refused) == ([], [])
    sizes = [len(text) for text in summaries(workspace)]
    assert len(sizes) > 5
    assert max(sizes) <= 3_600


def summaries(workspace: Path) -> list[str]:
    entries = [json.loads(raw) for raw in paths_of(workspace)[0].read_bytes().split(b"\n") if raw]
    held = [entry.get("data", {}).get("text") for entry in entries if entry.get("kind") == "packet"]
    return [*held, *(entry["summary"] for entry in entries if entry["type"] == "compaction")]


def test_the_checker_finds_what_it_is_there_for() -> None:
    from provider import complaints

    user, call = Msg.user("a"), ToolUse(id="c", name="dig", input={})
    bad = {
        "there are no messages": (),
        "the first message is of role assistant": (Msg.assistant("x"), user),
        "the last message is the model's own": (user, Msg.assistant("x")),
        "message 2: results [] where ['c'] wait": (user, Msg.assistant(call), user),
        "message 2: two answers in a row": (user, Msg.assistant("x"), Msg.assistant("y"), user),
        "message 1: it is empty": (user, Msg.assistant(), user),
        "calls ['c'] have no result": (user, Msg.assistant(call)),
    }
    assert [what in complaints(ModelRequest(messages)) for what, messages in bad.items()] == [True] * len(bad)
    assert complaints(ModelRequest((user, Msg.assistant("x"), user))) == []
