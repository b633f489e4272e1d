"""Cold resume, verify, and the event loop while 50 sessions persist: `python benchmarks/ledger.py [--json FILE]`.

Everything is given as a ratio to the least that the same work can cost, medians with p10 to p90:

- cold resume of a conversation, compacted and not: to twice reading and parsing the lines that the model will
  see, and half a millisecond, in the same kind of thread hop (design promise 5 allows 1.0)
- cold resume of compacted conversations of all sizes whose model sees just as much: to that of the one with
  1,000 messages, in turns (design promise 4 allows 1.5)
- verify: to SHA-256 and orjson over the same lines
- the longest that one callback holds the event loop, and that a coroutine beside them has to wait, while 50
  sessions take turns at once
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests/acceptance")]

from workload import CTX, build, prompt_of, take_turns  # noqa: E402 - from beside the tests, which hold its shape

from harness.context import RuntimeContext  # noqa: E402
from harness.filesystem import pool  # noqa: E402
from harness.messages import MessageDict  # noqa: E402
from harness.sessions import SessionTree, verify_session  # noqa: E402
from harness.sessions.lines.layout import Owner  # noqa: E402

SESSIONS, STALL_TURNS = 50, 6
ALIKE = 30  # turns after which both the compactions and the tool calls begin anew: one in ten, one in three


def tree_in(workspace: Path) -> SessionTree:
    """A handle that knows nothing yet, as of a new process."""
    folder = workspace / "tenants/alice/agents/floor/sessions"
    return SessionTree(folder, "long", agent="floor", namespace=("alice",), durability="none")


async def fill_fast(workspace: Path, messages: int, *, compaction: bool) -> int:
    """A long history by the pen alone, in the shape of the workload; the number of its turns.

    With compaction it ends where the model sees a summary and ten turns, the same ones as at every other size.
    """
    tree, kept = tree_in(workspace), 0
    turns = (messages * 3 + 7) // 8
    if compaction:
        turns = max(1, round(turns / ALIKE)) * ALIKE
    async with tree.writing():
        for number in range(turns):
            write_turn(tree, number)
            kept += 1
            if compaction and kept == 15:
                seen = tree.view().turns
                tree.append_compaction("summary " * 100, seen[0].id, seen[-6].id, "instant", 20_000)
                kept = 5
            if number % 20 == 19:
                await tree.commit(sync=False)
    return turns


def write_turn(tree: SessionTree, number: int) -> None:
    """The lines of one turn; its ids are as long as those of any other."""
    name = f"{number:06}"
    tree.add_message(message(f"u{name}", "user", prompt_of(number)), via="user")
    if number % 3 == 0:
        call = {"type": "toolUse", "id": f"call{name}", "name": "look_up", "input": {"place": "somewhere"}}
        answer(tree, f"c{name}", [call])
        text = [{"type": "text", "text": "result " * 571}]
        result = {"type": "toolResult", "id": f"call{name}", "name": "look_up", "content": text, "isError": False}
        tree.add_message({"id": f"r{name}", "role": "tool", "content": [result]}, via="tool")
    answer(tree, f"a{name}", [{"type": "text", "text": "answer " * 171}])


def message(message_id: str, role: str, text: str) -> MessageDict:
    return {"id": message_id, "role": role, "content": [{"type": "text", "text": text}]}


def answer(tree: SessionTree, message_id: str, content: list[dict[str, Any]]) -> None:
    binding = tree.bind([{"name": "prompt", "text": "Be brief."}], [], "instant", "test", {})
    request = tree.begin_request("execute", 1, binding, [], tree.turn, "compaction")
    tree.add_message({"id": message_id, "role": "assistant", "content": content}, via="model", request=request)
    tree.end_request(request, "completed", "stop", {"input": 10, "cacheRead": 0, "cacheWrite": 0, "output": 10})


async def resume(folder: Path, messages: int, *, compaction: bool, rounds: int) -> dict[str, Any]:
    """Loading what the model sees with a new handle, against reading and parsing its lines."""
    workspace = folder / f"{messages}-{compaction}"
    await fill_fast(workspace, messages, compaction=compaction)
    context = tree_in(workspace).files.context
    taken, floor = [], []
    for _ in range(rounds):
        tree = tree_in(workspace)
        taken.append(await timed(tree.load))
        floor.append(await timed(lambda: pool.run(parse_lines, context)))
    ratios = [one / (2 * other + 0.5) for one, other in zip(taken, floor, strict=True)]
    return {
        "messages": messages,
        "compacted": compaction,
        "visibleKB": context.stat().st_size / 1000,
        "ledgerMB": tree_in(workspace).files.ledger.stat().st_size / 1e6,
        "resumeMs": spread(taken),
        "floorMs": spread(floor),
        "ofAllowed": spread(ratios),
    }


async def flat(folder: Path, sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    """Loading compacted conversations of every size in turns, each against the one of 1,000 messages."""
    taken: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            taken[size].append(await timed(tree_in(folder / f"{size}-True").load))
    base = taken.get(1000)
    return [
        {
            "messages": size,
            "visibleKB": tree_in(folder / f"{size}-True").files.context.stat().st_size / 1000,
            "resumeMs": spread(times),
            "toThousand": spread([one / other for one, other in zip(times, base or times, strict=True)]),
        }
        for size, times in taken.items()
    ]


def parse_lines(path: Path) -> int:
    return len([orjson.loads(line) for line in path.read_bytes().split(b"\n")[:-1]])


async def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1e3


async def verify(folder: Path, messages: int, rounds: int) -> dict[str, Any]:
    """Verifying a whole session from disk, against hashing and parsing its lines."""
    files = tree_in(folder / f"{messages}-True").files
    owner, size = Owner("long", "floor", ("alice",)), files.ledger.stat().st_size / 1e6
    taken, floor = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        report = verify_session(files, owner)
        taken.append(time.perf_counter() - start)
        assert report.ok, report.findings  # noqa: S101 - a benchmark of something broken is worth nothing
        start = time.perf_counter()
        for line in files.ledger.read_bytes().split(b"\n")[:-1]:
            hashlib.sha256(line).hexdigest()
            orjson.loads(line)
        floor.append(time.perf_counter() - start)
    return {
        "messages": messages,
        "ledgerMB": size,
        "verifyMBs": spread([size / each for each in taken]),
        "floorMBs": spread([size / each for each in floor]),
        "ratio": spread([one / other for one, other in zip(taken, floor, strict=True)]),
    }


async def stall(folder: Path) -> dict[str, Any]:
    """How long the loop is held by one callback, and by all that are ready, while many sessions persist at once."""
    late: list[float] = []
    held: list[float] = []
    async with build(folder / "stall") as agent:
        contexts = [RuntimeContext(session_id=f"s{n}", user_id=CTX.user_id) for n in range(SESSIONS)]
        await asyncio.gather(*(take_turns(agent, 1, 1, ctx) for ctx in contexts))
        ticking = asyncio.create_task(tick(late))
        start = time.perf_counter()
        with callbacks_timed(held):
            await asyncio.gather(*(take_turns(agent, 1, STALL_TURNS, ctx) for ctx in contexts))
        seconds = time.perf_counter() - start
        ticking.cancel()
    ordered = sorted(late)
    return {
        "sessions": SESSIONS,
        "turnsPerSecond": SESSIONS * STALL_TURNS / seconds,
        "longestCallbackMs": max(held),
        "longestWaitMs": ordered[-1],
        "p99WaitMs": ordered[len(ordered) * 99 // 100],
    }


@contextmanager
def callbacks_timed(held: list[float]) -> Iterator[None]:
    """Note how long each callback of the event loop takes."""
    real = asyncio.Handle._run  # type: ignore[attr-defined]

    def timed_run(handle: asyncio.Handle) -> None:
        start = time.perf_counter()
        real(handle)
        held.append((time.perf_counter() - start) * 1e3)

    asyncio.Handle._run = timed_run  # type: ignore[attr-defined]
    try:
        yield
    finally:
        asyncio.Handle._run = real  # type: ignore[attr-defined]


async def tick(late: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(0.001)
        late.append((time.perf_counter() - start) * 1e3 - 1)


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "p10": ordered[len(ordered) // 10],
        "median": statistics.median(ordered),
        "p90": ordered[len(ordered) * 9 // 10],
    }


def tables(results: dict[str, Any]) -> str:
    lines = ["| cold resume at | view | ledger MB | visible KB | resume ms | floor ms | resume / (2 floor + 0.5 ms) |"]
    lines.append("|---|---|---|---|---|---|---|")
    lines += [
        f"| {r['messages']:,} | {'compacted' if r['compacted'] else 'whole'} | {r['ledgerMB']:.1f} "
        f"| {r['visibleKB']:.0f} | {r['resumeMs']['median']:.2f} | {r['floorMs']['median']:.2f} "
        f"| {shown(r['ofAllowed'])} |"
        for r in results["resume"]
    ]
    lines += ["", "| compacted, at | visible KB | resume ms | to 1,000 messages |", "|---|---|---|---|"]
    lines += [
        f"| {r['messages']:,} | {r['visibleKB']:.1f} | {r['resumeMs']['median']:.2f} | {shown(r['toThousand'])} |"
        for r in results["flat"]
    ]
    lines += ["", "| verify | ledger MB | MB/s | sha256 + orjson MB/s | ratio |", "|---|---|---|---|---|"]
    lines += [
        f"| {r['messages']:,} | {r['ledgerMB']:.1f} | {r['verifyMBs']['median']:.0f} | {r['floorMBs']['median']:.0f} "
        f"| {shown(r['ratio'])} |"
        for r in results["verify"]
    ]
    s = results["stall"]
    lines += ["", "| sessions at once | turns a second | longest callback ms | longest wait ms | p99 wait ms |"]
    lines += ["|---|---|---|---|---|"]
    lines.append(
        f"| {s['sessions']} | {s['turnsPerSecond']:.0f} | {s['longestCallbackMs']:.1f} | {s['longestWaitMs']:.1f} "
        f"| {s['p99WaitMs']:.1f} |"
    )
    return "\n".join(lines)


def shown(values: dict[str, float]) -> str:
    return f"{values['median']:.1f} ({values['p10']:.1f} to {values['p90']:.1f})"


async def measure(folder: Path, sizes: list[int], rounds: int) -> dict[str, Any]:
    whole = [size for size in sizes if size <= 10_000]
    return {
        "resume": [
            *[await resume(folder, size, compaction=True, rounds=rounds) for size in sizes],
            *[await resume(folder, size, compaction=False, rounds=rounds) for size in whole],
        ],
        "flat": await flat(folder, sizes, rounds),
        "verify": [await verify(folder, size, max(3, rounds // 10)) for size in sizes if size >= 1000],
        "stall": await stall(folder),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--rounds", type=int, default=50, help="measurements of each")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000], help="messages")
    parser.add_argument("--folder", type=Path, help="where to work; its disk is the one that is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = asyncio.run(measure(Path(folder), options.sizes, options.rounds))
    print(tables(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
