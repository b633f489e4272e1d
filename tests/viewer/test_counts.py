"""A session in figures: worked out once for all who ask, stopped with the last who goes, kept while nothing changes."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lines import answer, append, keys, prompt, visiting, write

from harness.viewer import desk
from harness.viewer.counts import Count, Counts


class Work:
    """Work that ends when it is told to, and notes what becomes of it."""

    def __init__(self) -> None:
        self.begun, self.stopped = 0, 0
        self.gate = asyncio.Event()

    async def __call__(self, count: Count) -> bytes:
        self.begun += 1
        count.tell(1, 2)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return b"found"


async def asked(counts: Counts, make: Callable[[Count], Awaitable[bytes]], state: object = 1) -> bytes:
    found = await counts.known("place", state)
    return await counts.begun("place", state, make) if found is None else found


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0)


async def test_who_asks_meanwhile_waits_for_the_same() -> None:
    counts, work = Counts(), Work()
    waiting = [asyncio.create_task(asked(counts, work)) for _ in range(12)]
    await until(lambda: counts.so_far("place") == (1, 2))
    work.gate.set()
    assert (await asyncio.gather(*waiting), work.begun) == ([b"found"] * 12, 1)
    assert counts.so_far("place") is None
    assert (await asked(counts, work), work.begun) == (b"found", 1)


async def test_it_is_stopped_when_the_last_who_waits_has_gone_and_not_before() -> None:
    counts, work = Counts(), Work()
    first, second = (asyncio.create_task(asked(counts, work)) for _ in range(2))
    await until(lambda: work.begun == 1)
    first.cancel()
    await asyncio.wait((first,))
    assert (work.stopped, counts.so_far("place")) == (0, (1, 2))
    second.cancel()
    await asyncio.wait((second,))
    assert (work.stopped, counts.so_far("place")) == (1, None)
    work.gate.set()
    assert (await asked(counts, work), work.begun) == (b"found", 2)


async def test_what_fails_fails_for_all_who_wait_and_is_tried_again() -> None:
    counts, work = Counts(), Work()

    async def broken(count: Count) -> bytes:
        await work(count)
        raise OSError("gone")

    waiting = [asyncio.create_task(asked(counts, broken)) for _ in range(3)]
    await until(lambda: work.begun == 1)
    work.gate.set()
    assert [str(each) for each in await asyncio.gather(*waiting, return_exceptions=True)] == ["gone"] * 3
    assert (await asked(counts, work), work.begun) == (b"found", 2)


async def test_another_state_is_another_count() -> None:
    counts, work = Counts(), Work()
    work.gate.set()
    assert [await asked(counts, work, state) for state in (1, 2, 2, 1)] == [b"found"] * 4
    assert work.begun == 3


@pytest.mark.parametrize(("kept", "begun"), [(10, 2), (9, 4), (4, 4)])
async def test_so_many_bytes_are_kept_those_asked_for_last(kept: int, begun: int) -> None:
    counts, work = Counts(kept), Work()
    work.gate.set()
    for place in ("a", "b", "a", "b"):
        if await counts.known(place, 1) is None:
            await counts.begun(place, 1, work)
    assert work.begun == begun


async def test_a_session_is_counted_once_for_all_who_open_it_and_again_when_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[object] = []
    real = desk.told_by_worker

    async def counts(*given: object) -> bytes:
        counted.append(given)
        return await real(*given)

    monkeypatch.setattr(desk, "told_by_worker", counts)
    file = write(tmp_path / "s.jsonl", [prompt("hi"), answer("x")])
    async with visiting(tmp_path) as visitor:
        address = f"/api/sessions/{(await keys(visitor))['s']}"
        answers = await asyncio.gather(*[visitor.get(address) for _ in range(12)])
        assert (len({each.text for each in answers}), len(counted)) == (1, 1)
        assert (await visitor.get(address)).text == answers[0].text
        assert len(counted) == 1
        append(file, prompt("more", "u2"))
        assert (await visitor.get(address)).json()["stats"]["prompts"] == 2
        assert len(counted) == 2
