"""Conversations of every kind, played through an agent: parallel calls, errors, branches, compactions, crashes."""

import contextlib
import shutil
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from harness import HarnessAgent, RuntimeContext, tool
from harness.agent import open_session
from harness.errors import ModelError, ModelMalformed, ModelRejected, ModelTimeout, NotATurnEnd
from harness.hooks import CompactionConfig, PostReasoning, PreReasoning
from harness.messages import Msg, ToolUse
from harness.models import RetryPolicy
from harness.testing import ScriptedModel

CTX = RuntimeContext(session_id="s", user_id="alice")
PLACE = "tenants/alice/agents/notes"

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.integers(0, 3)),
        st.tuples(st.just("tools_twice"), st.integers(1, 3)),
        st.tuples(st.just("rejected"), st.integers(0, 2)),
        st.tuples(st.just("broken_off"), st.integers(0, 1)),
        st.tuples(st.just("falls_back"), st.integers(0, 2)),
        st.tuples(st.just("steered"), st.just(0)),
        st.tuples(st.just("large"), st.just(0)),
        st.tuples(st.just("branch"), st.integers(0, 30)),
        st.tuples(st.just("compact"), st.just(0)),
        st.tuples(st.just("crash"), st.integers(0, 4)),
        st.tuples(st.just("cut"), st.integers(0, 400)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("retry"), st.just(0)),
    ),
    min_size=1,
    max_size=9,
)


@tool
def look(n: int) -> str:
    """Look something up."""
    if n == 2:
        raise ValueError("nothing there")
    return f"found {n}"


class Hooks:
    """Adds to every second request, and rewrites some answers."""

    def __init__(self) -> None:
        self.asked = 0

    def on_event(self, event: Any) -> Any:
        if isinstance(event, PreReasoning):
            self.asked += 1
            if self.asked % 2:
                return event.change(additions=(Msg.user(f"note {self.asked}"),))
        if isinstance(event, PostReasoning) and event.message.text == "rewrite me":
            return event.change(message=Msg.assistant("rewritten"))
        return None


class RandomTalk:
    """Plays steps; `requests` are those of the last step, in the order in which they went out."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.copy = workspace.with_name("copy")
        self.number = 0
        self.last_key: str | None = None
        self.crashed = False
        self._start()

    def _start(self) -> None:
        open_session._cache._open.clear()
        self.model = ScriptedModel(name="m-1", provider="p-1")
        self.spare = ScriptedModel(name="m-2", provider="p-2")
        builder = HarnessAgent.builder().name("notes").model(self.model).workspace(self.workspace)
        builder = builder.without("workspace_context", "file_tools", "session_tools", "memory_tools")
        builder = builder.fallback_models(self.spare).retry(RetryPolicy(base=0, attempts=2)).tools(look).hooks(Hooks())
        self.agent = builder.compaction(CompactionConfig(trigger_messages=9, keep_messages=3)).build()

    @property
    def ledger(self) -> Path:
        return self.workspace / PLACE / "sessions" / "s.log.jsonl"

    def data(self) -> bytes:
        return self.ledger.read_bytes() if self.ledger.exists() else b""

    @property
    def sessions(self) -> Any:
        return self.agent.sessions("alice")

    def take_requests(self) -> list[Any]:
        """The requests since this was asked before."""
        taken = [*self.model.requests, *self.spare.requests]
        self.model.requests.clear()
        self.spare.requests.clear()
        return taken

    async def play(self, step: str, size: int) -> None:
        self.number += 1
        self.crashed = False
        await getattr(self, step)(size)

    async def turn(self, calls: int) -> None:
        answers: list[Any] = [self._calls(calls)] if calls else []
        await self._say(*answers, f"answer {self.number}")

    async def tools_twice(self, calls: int) -> None:
        await self._say(self._calls(calls), self._calls(1), "rewrite me")

    async def rejected(self, calls: int) -> None:
        await self._say(*([self._calls(calls)] if calls else []), ModelRejected("no"), spare=[ModelRejected("no")])

    async def broken_off(self, whole: int) -> None:
        broken = [["half of ", ModelTimeout("cut")], ["again ", ModelTimeout("cut")]]
        await self._say(*broken, spare=["the spare"] if whole else [ModelMalformed("no")] * 2)

    async def falls_back(self, calls: int) -> None:
        odd = [ToolUse(id=f"call|{self.number}.{n}", name="look", input={"n": n}) for n in range(calls)]
        await self._say(ModelRejected("no"), "done", spare=[odd or "spare answer", "spare done"])

    async def steered(self, _: int) -> None:
        async def steer(_request: Any) -> str:
            running = self.agent.running(CTX)
            assert running is not None
            running.steer("and hurry")
            return "a draft"

        await self._say(steer, "hurried")

    async def large(self, _: int) -> None:
        await self._say("long" * 100_000, text="x" * 300_000)

    async def branch(self, pick: int) -> None:
        if not self.data():
            return
        tree = await self.sessions.tree("s")
        entries = [entry.id for entry in tree._store.conversation.path]
        with contextlib.suppress(NotATurnEnd):
            await self.sessions.branch("s", entries[pick % len(entries)])
            left = (await self.sessions.tree("s")).view()
            # A turn that got no answer ends with its results.
            assert left.open_turn is None or left.turns[-1].messages[-1]["role"] == "tool"
            assert left.open_calls == ()

    async def compact(self, _: int) -> None:
        if self.data():
            self.model.add("a summary by hand")
            await self.sessions.compact("s")

    async def crash(self, calls: int) -> None:
        """The process dies while the model, or a tool, is at work: what is on disk then is what there is."""

        async def die(_request: Any) -> Any:
            shutil.rmtree(self.copy, ignore_errors=True)
            shutil.copytree(self.workspace, self.copy)
            return "never heard"

        self.last_key = f"key {self.number}"
        await self._say(*([self._calls(calls)] if calls else []), die, key=self.last_key)
        shutil.rmtree(self.workspace)
        self.copy.rename(self.workspace)
        self.crashed = True
        await self.restart(0)

    async def cut(self, size: int) -> None:
        """The end of the ledger is lost, and track 1 knows more, or not."""
        if self.data():
            if size % 2:
                shutil.rmtree(self.workspace / PLACE / "context", ignore_errors=True)
            self.ledger.write_bytes(self.data()[: -1 - size] if size < len(self.data()) - 600 else self.data())
            self.crashed = True
        await self.restart(0)

    async def restart(self, _: int) -> None:
        self._start()

    async def retry(self, _: int) -> None:
        if self.last_key:
            await self._say("answer to the retry", key=self.last_key)

    @staticmethod
    def _calls(count: int) -> list[ToolUse]:
        return [ScriptedModel.tool_call("look", n=n) for n in range(count)]

    async def _say(self, *answers: Any, spare: Any = (), text: str | None = None, key: str | None = None) -> None:
        queue = [*answers]

        def answer(request: Any) -> Any:
            if request.messages[-1].text.startswith("Summarise the conversation"):
                return f"summary {self.number}"
            return queue.pop(0) if queue else "fallen behind"

        async def step(request: Any) -> Any:
            made = answer(request)
            return await made(request) if callable(made) else made

        self.model._steps, self.model._next = [step] * 40, 0
        self.spare._steps, self.spare._next = [*spare, *["spare"] * 40], 0
        with contextlib.suppress(ModelError):
            await self.agent.call(text or f"question {self.number}", CTX, idempotency_key=key)
