"""The gate by itself: who holds a session, who is next, and that nobody is forgotten."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import until

from harness.agent import gate as gate_module
from harness.agent.gate import Gate, SessionPlace
from harness.errors import SessionBusy

PLACE = SessionPlace("/ws/tenants/alice/agents/notes/sessions", "s1")
OTHER = SessionPlace("/ws/tenants/bob/agents/notes/sessions", "s1")


class Visits:
    """Tasks that pass through a gate, one after the other, when they are let."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.inside: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.leave: dict[str, asyncio.Event] = {}

    async def enter(self, name: str, place: SessionPlace = PLACE, timeout: float = 30) -> None:
        """Start a visit and let it come as far as it can."""
        self.leave[name] = asyncio.Event()
        self.tasks[name] = asyncio.ensure_future(self._visit(name, place, timeout))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _visit(self, name: str, place: SessionPlace, timeout: float) -> None:
        async with self.gate.hold(place, name, timeout):
            self.inside.append(name)
            await self.leave[name].wait()

    async def end(self, *names: str) -> None:
        for name in names:
            self.leave[name].set()
        await asyncio.gather(*(self.tasks[name] for name in names))


@pytest.fixture
def visits() -> Visits:
    return Visits(Gate())


async def test_who_comes_first_is_served_first(visits: Visits) -> None:
    for name in "abcde":
        await visits.enter(name)
    assert visits.inside == ["a"]
    await visits.end(*"abcde")
    assert visits.inside == list("abcde")


async def test_other_sessions_never_wait(visits: Visits) -> None:
    await visits.enter("a")
    await visits.enter("b", OTHER)
    await visits.enter("c", SessionPlace(PLACE.folder, "s2"))
    assert visits.inside == ["a", "b", "c"]
    await visits.end(*"abc")


async def test_sixteen_may_wait_and_the_next_is_refused_at_once(visits: Visits) -> None:
    names = [str(n) for n in range(17)]
    for name in names:
        await visits.enter(name)
    await visits.enter("too many")
    with pytest.raises(SessionBusy, match="16 waiting"):
        await visits.tasks["too many"]
    await visits.end(*names)
    assert visits.inside == names


async def test_a_place_in_the_queue_that_was_given_up_is_free_again(visits: Visits) -> None:
    names = [str(n) for n in range(17)]
    for name in names:
        await visits.enter(name)
    visits.tasks["3"].cancel()
    await asyncio.wait([visits.tasks["3"]])
    await visits.enter("late")
    await visits.end(*[name for name in names if name != "3"], "late")
    assert visits.inside == [*[name for name in names if name != "3"], "late"]


async def test_waiting_ends_after_its_time_and_the_message_says_what_to_do(visits: Visits) -> None:
    await visits.enter("a")
    await visits.enter("b", timeout=0.01)
    with pytest.raises(SessionBusy, match=r"after 0\.01 s; .*running\(ctx\)\.cancel\(\)"):
        await visits.tasks["b"]
    await visits.enter("c")
    await visits.end("a", "c")
    assert visits.inside == ["a", "c"]


async def test_a_visit_from_inside_a_visit_is_refused_at_once(visits: Visits) -> None:
    async with visits.gate.hold(PLACE, "outer"):
        with pytest.raises(SessionBusy, match="held by the call this one was made from"):
            async with visits.gate.hold(PLACE, "inner"):
                pass
        async with visits.gate.hold(OTHER, "elsewhere"):
            with pytest.raises(SessionBusy):
                async with visits.gate.hold(PLACE, "inner of inner"):
                    pass


async def test_a_task_started_inside_may_enter_when_the_visit_is_over(visits: Visits) -> None:
    go = asyncio.Event()

    async def later() -> str:
        await go.wait()
        async with visits.gate.hold(PLACE, "later"):
            return "entered"

    async with visits.gate.hold(PLACE, "outer"):
        task = asyncio.ensure_future(later())
        await asyncio.sleep(0)
    go.set()
    assert await task == "entered"


async def test_the_holder_is_known_while_it_holds(visits: Visits) -> None:
    assert visits.gate.holder(PLACE) is None
    await visits.enter("a")
    await visits.enter("b")
    assert visits.gate.holder(PLACE) == "a"
    await visits.end("a")
    assert visits.gate.holder(PLACE) == "b"
    await visits.end("b")
    assert visits.gate.holder(PLACE) is None


async def test_a_waiter_cancelled_in_the_moment_of_its_turn_passes_it_on(visits: Visits) -> None:
    for name in "abc":
        await visits.enter(name)
    visits.leave["a"].set()
    while visits.gate.holder(PLACE) != "b":
        await asyncio.sleep(0)
    assert "b" not in visits.inside  # handed over, but not awake yet
    visits.tasks["b"].cancel()
    await asyncio.wait([visits.tasks["b"]])
    await until(lambda: "c" in visits.inside)
    await visits.end("c")
    assert (visits.inside, visits.gate.holder(PLACE)) == (["a", "c"], None)


async def test_an_error_inside_gives_the_session_back(visits: Visits) -> None:
    with pytest.raises(ZeroDivisionError):
        async with visits.gate.hold(PLACE, "a"):
            raise ZeroDivisionError
    assert visits.gate.holder(PLACE) is None


async def test_a_waiter_whose_loop_is_gone_is_passed_over(visits: Visits) -> None:
    await visits.enter("a")

    def wait_and_close_the_loop() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(visits._visit("gone", PLACE, 30))
        visits.leave["gone"] = asyncio.Event()
        loop.call_later(0.01, loop.stop)
        loop.run_forever()
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.close()

    await asyncio.to_thread(wait_and_close_the_loop)
    await visits.enter("b")
    await visits.end("a")
    await until(lambda: "b" in visits.inside)
    await visits.end("b")
    assert visits.inside == ["a", "b"]


def test_threads_with_loops_of_their_own_queue_up_together() -> None:
    gate, inside, most = Gate(max_waiters=100), 0, 0

    async def visit() -> None:
        nonlocal inside, most
        async with gate.hold(PLACE, "somebody"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    async def visit_often() -> None:
        for _ in range(50):
            await visit()

    threads = [threading.Thread(target=lambda: asyncio.run(visit_often())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most, gate.holder(PLACE)) == (0, 1, None)


def held_by_a_lost_call(gate: Gate, place: SessionPlace = PLACE) -> list[object]:
    """Somebody inside whose event loop is closed; what is left of it, which nobody runs any more."""

    async def stay() -> None:
        async with gate.hold(place, "lost"):
            await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    work = stay()
    loop.call_soon(work.send, None)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    return [work]


async def test_a_session_whose_call_was_lost_is_free(visits: Visits) -> None:
    left = await asyncio.to_thread(held_by_a_lost_call, visits.gate)
    await visits.enter("next")
    assert visits.inside == ["next"]
    left.clear()  # it ends now, in a context of its own, and takes nothing from those who came after it
    assert visits.gate.holder(PLACE) == "next"
    await visits.enter("third")
    assert visits.inside == ["next"]
    await visits.end("next", "third")
    assert visits.inside == ["next", "third"]


async def test_who_waits_for_a_call_that_gets_lost_comes_in(visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "_LOOK_SECONDS", 0.01)
    inside, close = threading.Event(), threading.Event()
    left: list[object] = []

    def lose() -> None:
        loop = asyncio.new_event_loop()

        async def stay() -> None:
            async with visits.gate.hold(PLACE, "lost"):
                inside.set()
                await asyncio.Event().wait()

        work = stay()
        left.append(work)
        loop.call_soon(work.send, None)
        loop.call_soon(loop.stop)
        loop.run_forever()
        close.wait()
        loop.close()

    thread = threading.Thread(target=lose)
    thread.start()
    await asyncio.to_thread(inside.wait)
    await visits.enter("next")
    assert visits.inside == []
    close.set()
    await asyncio.to_thread(thread.join)
    await until(lambda: visits.inside == ["next"])
    await visits.end("next")
