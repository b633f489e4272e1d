"""One agent, many users at once, each with a canary: nothing crosses (B03)."""

import asyncio
import logging
import random
import re
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import agent_of, ledger

from harness import HarnessAgent, RuntimeContext
from harness.context import CallScope, current_scope
from harness.errors import ModelRejected
from harness.filesystem import AbstractFilesystem
from harness.hooks import Event, PreActing, PreCall
from harness.messages import Msg, ToolUse
from harness.models import Chunk, Done, ModelRequest, TextDelta
from harness.tools import Toolkit, tool

CANARY = re.compile(r"canary-(\d+)-")


def canary(user: str, n: int) -> str:
    return f"canary-{user[1:]}-{n:04d}"


class Wandering:
    """A model that pauses at random and makes its user's tools do a round: write, search, remember, read."""

    provider, name, context_window = "test", "wandering", None

    def __init__(self, operations: "Operations") -> None:
        self.operations = operations
        self._random = random.Random(7)
        self.crossed: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        for _ in range(self._random.randrange(3)):
            await asyncio.sleep(0)
        owners = set(CANARY.findall(str([message.to_dict() for message in request.messages])))
        if len(owners) != 1:
            self.crossed.append(f"a request shows {owners}")
        self.operations.count += 1
        last = request.messages[-1]
        word = next(message.text.split()[0] for message in reversed(request.messages) if message.role == "user")
        if last.role == "user":
            if word.endswith("1"):  # a neighbour's call fails now and then
                raise ModelRejected(f"no {word}")
            uses = [ToolUse(id=f"{word}-{kind}", name=kind, input={"word": word}) for kind in ("keep", "look", "who")]
            yield Done(Msg.assistant(*uses, provider="test", model="wandering"))
        else:
            yield TextDelta(word)
            results = ",".join(result.text for result in last.tool_results)
            yield Done(Msg.assistant(f"{word}: {results}", provider="test", model="wandering"))


class Operations:
    """Counts what was done, and keeps what belongs to somebody else than the one who asked."""

    def __init__(self) -> None:
        self.count = 0
        self.crossed: list[str] = []
        self._lock = threading.Lock()

    def check(self, what: str, user: str | None, text: str = "") -> None:
        with self._lock:
            self.count += 1
            scope = current_scope()
            if scope.user_id != user or any(f"u{found}" != user for found in CANARY.findall(text)):
                self.crossed.append(f"{what}: {user} met {scope.user_id} and {text!r}")


def tools_of(operations: Operations) -> Toolkit:
    @tool
    async def keep(word: str, files: AbstractFilesystem, ctx: RuntimeContext) -> str:
        """Write a canary, and read it back."""
        await asyncio.sleep(0)
        await files.write_bytes("notes/mine.txt", word.encode())
        operations.check("write", ctx.user_id, word)
        text = (await files.read("notes/mine.txt")).text
        operations.check("file", ctx.user_id, text)
        return text

    @tool
    async def look(word: str, files: AbstractFilesystem, scope: CallScope) -> str:
        """Search everything."""
        found = await files.grep("canary-")
        operations.check("search", scope.user_id, str(found))
        return "looked"

    @tool
    def who(word: str, ctx: RuntimeContext) -> str:
        """Say who is asking, from a thread."""
        operations.check("thread", ctx.user_id, word)
        return str(current_scope().user_id)

    return Toolkit(keep, look, who)


class Watching:
    """A hook that awaits, and checks whose event it is."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def on_event(self, event: Event) -> Any:
        user = event.ctx.user_id
        await asyncio.sleep(0)
        if isinstance(event, PreCall):
            self._operations.check("hook", user, event.messages[0].text)
            return event.change(context=(f"for {user}",))
        if isinstance(event, PreActing):
            self._operations.check("hook", user, str(event.tool_use.input))
        return None


def watched(workspace: Path) -> tuple[HarnessAgent, Operations, Wandering]:
    operations = Operations()
    model = Wandering(operations)
    agent = agent_of(workspace, model, tools_of(operations), hooks=[Watching(operations)])
    return agent, operations, model


async def one_call(agent: HarnessAgent, user: str, n: int, operations: Operations, *, streamed: bool) -> None:
    word = canary(user, n)
    call = agent.call(word, RuntimeContext(session_id="same-name", user_id=user))
    try:
        if streamed:
            events = [event async for event in call]
            assert set(CANARY.findall(str([event.data for event in events]))) == {user[1:]}
        reply = (await call).text
        assert reply == f"{word}: {word},looked,{user}"
    except ModelRejected:
        assert word.endswith("1")
    operations.count += 1


def assert_nothing_crossed(workspace: Path, operations: Operations, model: Wandering, users: list[str]) -> None:
    assert operations.crossed == []
    assert model.crossed == []
    for user in users:
        root = workspace / "tenants" / user
        everything = b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())
        assert {f"u{found.decode()}" for found in re.findall(rb"canary-(\d+)-", everything)} == {user}
        assert ledger(workspace, "same-name", user)[0]["tenant"] == [user]


@pytest.mark.slow
async def test_ten_thousand_interleaved_operations_of_a_hundred_users_do_not_cross(workspace: Path) -> None:
    agent, operations, model = watched(workspace)
    users = [f"u{n}" for n in range(100)]
    rng = random.Random(11)

    async def many_calls(user: str) -> None:
        for n in range(12):
            await one_call(agent, user, n, operations, streamed=rng.random() < 0.3)

    await asyncio.gather(*(many_calls(user) for user in users))
    await agent.aclose()
    assert operations.count >= 10_000
    assert_nothing_crossed(workspace, operations, model, users)


def test_threads_with_loops_of_their_own_do_not_cross(workspace: Path) -> None:
    agent, operations, model = watched(workspace)
    users = [f"u{n}" for n in range(8)]
    failures: list[BaseException] = []

    def many_calls(user: str) -> None:
        try:
            for n in range(2, 6):
                asyncio.run(one_call(agent, user, n, operations, streamed=bool(n % 2)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=many_calls, args=(user,)) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert_nothing_crossed(workspace, operations, model, users)


async def test_log_records_name_the_user_whose_call_they_are_about(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent, operations, _ = watched(workspace)
    with caplog.at_level(logging.DEBUG, logger="harness.trace"):
        await asyncio.gather(*(one_call(agent, f"u{n}", 2, operations, streamed=False) for n in range(10)))
    await agent.aclose()
    seen = defaultdict(set)
    for record in caplog.records:
        if record.name == "harness.trace":
            seen[vars(record)["harness_user"]].update(CANARY.findall(record.getMessage()))
    assert {user: {f"u{found}" for found in owners} for user, owners in seen.items()} == {
        f"u{n}": {f"u{n}"} for n in range(10)
    }
