"""One call at a time on a session, whoever makes it and from wherever."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, BOB, Held, agent_of, call_of, logged, shown, until

from harness import HarnessAgent, RuntimeContext
from harness.errors import SessionBusy
from harness.hooks import PostCall, PreReasoning
from harness.testing import ScriptedModel


async def test_calls_on_one_session_take_turns_in_order_and_each_sees_the_one_before(workspace: Path) -> None:
    model = ScriptedModel([f"answer {n}" for n in range(5)], delay=0.001)
    async with agent_of(workspace, model) as agent:
        calls = [agent.call(f"prompt {n}", ALICE) for n in range(5)]
        replies = await asyncio.gather(*calls)
    assert [reply.text for reply in replies] == [f"answer {n}" for n in range(5)]
    assert [text for _, _, text in logged(workspace)] == [
        text for n in range(5) for text in (f"prompt {n}", f"answer {n}")
    ]
    assert [len(request.messages) for request in model.requests] == [1, 3, 5, 7, 9]


async def test_the_same_session_name_of_two_users_is_two_sessions(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held, "hello bob"])) as agent:
        call = agent.call("hi", ALICE)
        call.start()
        await held.asked.wait()
        assert (await agent.call("hi", BOB)).text == "hello bob"
        held.let_go.set()
        await call


async def test_two_agent_objects_on_one_workspace_share_the_queue(workspace: Path) -> None:
    held = Held()
    one = agent_of(workspace, ScriptedModel([held]))
    other_model = ScriptedModel(["second"])
    other = agent_of(workspace, other_model)
    first, second = one.call("first", ALICE), other.call("second", ALICE)
    first.start()
    await held.asked.wait()
    second.start()
    await asyncio.sleep(0.02)
    assert other_model.requests == []
    held.let_go.set()
    await second
    assert shown(other_model.requests[0]) == [("user", "first"), ("assistant", "held"), ("user", "second")]


@pytest.mark.parametrize("spelling", ["link", "link/../real", "real/sub/.."])
async def test_a_workspace_is_one_place_however_its_path_is_spelled(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    held = Held()
    one = agent_of(tmp_path / "real", ScriptedModel([held]))
    other = agent_of(Path(os.path.join(tmp_path, spelling)), ScriptedModel())
    call = one.call("first", ALICE)
    call.start()
    await held.asked.wait()
    assert other.running(ALICE) is call
    held.let_go.set()
    await call


async def test_an_open_workspace_stays_where_it_was_when_the_link_to_it_is_turned(tmp_path: Path) -> None:
    for name in ("blue", "green"):
        (tmp_path / name).mkdir()
    (tmp_path / "now").symlink_to("blue")
    async with agent_of(tmp_path / "now", ScriptedModel(["one", "two"])) as agent:
        await agent.call("first", ALICE)
        (tmp_path / "now").unlink()
        (tmp_path / "now").symlink_to("green")
        await agent.call("second", ALICE)
    assert [text for _, _, text in logged(tmp_path / "blue")] == ["first", "one", "second", "two"]
    assert list((tmp_path / "green").iterdir()) == []


async def test_two_agents_of_different_ids_do_not_meet(workspace: Path) -> None:
    held = Held()
    notes = agent_of(workspace, ScriptedModel([held]))
    diary = agent_of(workspace, ScriptedModel(["diary"]), agent_id="diary")
    call = notes.call("hi", ALICE)
    call.start()
    await held.asked.wait()
    assert (await diary.call("hi", ALICE)).text == "diary"
    held.let_go.set()
    await call


def test_threads_with_their_own_loops_take_turns_on_one_session(workspace: Path) -> None:
    agent = agent_of(workspace, ScriptedModel([f"answer {n}" for n in range(12)]))
    errors: list[BaseException] = []

    def three_calls() -> None:
        try:
            for _ in range(3):
                asyncio.run(ask())
        except BaseException as error:
            errors.append(error)

    async def ask() -> None:
        await agent.call("hi", ALICE)

    threads = [threading.Thread(target=three_calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    texts = [text for _, _, text in logged(workspace)]
    assert texts == [text for n in range(12) for text in ("hi", f"answer {n}")]


def test_blocking_threads_take_turns_on_one_session(workspace: Path) -> None:
    agent = agent_of(workspace, ScriptedModel([f"answer {n}" for n in range(8)]))
    threads = [threading.Thread(target=lambda: agent.call("hi", ALICE).block()) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [text for _, _, text in logged(workspace)][1::2] == [f"answer {n}" for n in range(8)]


class Nested:
    """Calls the agent on a session, and keeps what came of it."""

    def __init__(self, ctx: RuntimeContext) -> None:
        self.ctx = ctx
        self.agent: HarnessAgent | None = None
        self.came: list[Any] = []

    async def ask(self) -> None:
        assert self.agent is not None
        try:
            self.came.append((await self.agent.call("inner", self.ctx)).text)
        except SessionBusy as error:
            self.came.append(error)

    def ask_blocking(self) -> None:
        assert self.agent is not None
        try:
            self.came.append(self.agent.call("inner", self.ctx).block().text)
        except SessionBusy as error:
            self.came.append(error)


async def test_a_tool_that_calls_its_own_session_is_refused_at_once(workspace: Path) -> None:
    nested = Nested(ALICE)

    async def again() -> str:
        await nested.ask()
        return "tried"

    async with agent_of(workspace, ScriptedModel([call_of("again"), "done"]), again) as nested.agent:
        assert (await nested.agent.call("hi", ALICE)).text == "done"
    assert [type(came) for came in nested.came] == [SessionBusy]


async def test_a_sync_tool_that_blocks_on_its_own_session_is_refused_at_once(workspace: Path) -> None:
    nested = Nested(ALICE)

    def again() -> str:
        nested.ask_blocking()
        return "tried"

    async with agent_of(workspace, ScriptedModel([call_of("again"), "done"]), again) as nested.agent:
        assert (await nested.agent.call("hi", ALICE)).text == "done"
    assert [type(came) for came in nested.came] == [SessionBusy]


async def test_a_hook_that_calls_its_own_session_is_refused_at_once(workspace: Path) -> None:
    nested = Nested(ALICE)

    async def hook(event: PreReasoning) -> None:
        await nested.ask()

    async with agent_of(workspace, ScriptedModel(["done"]), hooks=[hook]) as nested.agent:
        assert (await nested.agent.call("hi", ALICE)).text == "done"
    assert [type(came) for came in nested.came] == [SessionBusy]


async def test_a_call_inside_a_call_on_another_session_works(workspace: Path) -> None:
    nested = Nested(RuntimeContext(session_id="s2", user_id="alice"))

    async def elsewhere() -> str:
        await nested.ask()
        return "asked"

    model = ScriptedModel([call_of("elsewhere"), "inner answer", "done"])
    async with agent_of(workspace, model, elsewhere) as nested.agent:
        assert (await nested.agent.call("hi", ALICE)).text == "done"
    assert nested.came == ["inner answer"]
    assert [text for _, _, text in logged(workspace, "s2")] == ["inner", "inner answer"]


async def test_a_task_that_a_hook_leaves_behind_may_call_the_session_afterwards(workspace: Path) -> None:
    nested = Nested(ALICE)
    go, tasks = asyncio.Event(), []

    async def later() -> None:
        await go.wait()
        await nested.ask()

    async def hook(event: PostCall) -> None:
        if not tasks:
            tasks.append(asyncio.create_task(later()))

    async with agent_of(workspace, ScriptedModel(["done", "inner answer"]), hooks=[hook]) as nested.agent:
        await nested.agent.call("hi", ALICE)
        go.set()
        await tasks[0]
    assert nested.came == ["inner answer"]


async def test_seventeen_calls_behind_one_are_one_too_many(workspace: Path) -> None:
    held = Held()
    model = ScriptedModel([held, *[f"answer {n}" for n in range(16)]])
    async with agent_of(workspace, model) as agent:
        calls = [agent.call(f"prompt {n}", ALICE) for n in range(18)]
        calls[0].start()
        await held.asked.wait()
        for call in calls[1:]:
            call.start()
        await until(lambda: calls[17].done)
        with pytest.raises(SessionBusy, match="16 waiting"):
            await calls[17]
        held.let_go.set()
        await asyncio.gather(*calls[:17])
    users = [text for via, _, text in logged(workspace) if via == "user"]
    assert users == [f"prompt {n}" for n in range(17)]


def test_a_session_is_free_when_the_event_loop_of_its_call_was_closed(tmp_path):
    """In a process of its own: what is left of the lost call is no concern of other tests."""
    script = f"""
import asyncio, warnings
from harness import HarnessAgent, RuntimeContext
from harness.testing import ScriptedModel
warnings.simplefilter("ignore")  # of the coroutines that nobody runs any more
ctx = RuntimeContext(session_id="s1", user_id="alice")
model = ScriptedModel(["never said", "hello"], delay=3600)
agent = HarnessAgent.builder().name("notes").model(model).workspace({str(tmp_path)!r}).gate_timeout(5).build()
call = agent.call("one", ctx)
async def begin():
    call.start()
    while not model.requests:
        await asyncio.sleep(0.01)
loop = asyncio.new_event_loop()
loop.run_until_complete(begin())
loop.close()
model.delay = 0
async def go_on():
    other = HarnessAgent.builder().name("notes").model(ScriptedModel(["hello"])).workspace({str(tmp_path)!r}).build()
    print((await other.call("two", ctx)).text, call.lost)
    print((await other.sessions("alice").verify("s1")).ok)
asyncio.run(go_on())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["hello", "True", "True"], done.stderr
