"""How close persisting a turn is to the floor: `python benchmarks/persist_turn.py [--json FILE]`.

A real agent with everything that is on by default answers with a model that takes no time. What is
counted as persisting is every moment in which the call is inside the session layer: taking the lock and
giving it back, reading track 1, building the lines of the ledger (serialising, hashing), the commits with
their hops to a worker, and the snapshot. Measured inside, since a call without persistence does not
exist: the conversation that a call sees is the one that was logged.

The floor is what nobody who keeps a ledger can leave out: for the very lines that the turn has just
written, serialise, hash, one write and, where the turn synced, one fdatasync, at the same commit points,
each in a hop to the same pool. It is measured right after its turn, since disks change their mood by the minute.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests/acceptance")]

from ledger import fill_fast  # noqa: E402
from workload import DiskCount, build, fill, take_turns  # noqa: E402 - from beside the tests, which hold its shape

from harness.agent import HarnessAgent, session_call  # noqa: E402
from harness.filesystem import pool  # noqa: E402
from harness.sessions.ledger.appending import Ledger  # noqa: E402
from harness.sessions.snapshots.snapshot import SnapshotWriter  # noqa: E402
from harness.sessions.tree.session_tree import SessionTree  # noqa: E402

_BY_THE_AGENT = 2000
PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "lock": ((SessionTree, "lock"), (SessionTree, "release")),
    "read track 1": ((session_call, "restore"),),
    "build lines": tuple(
        (SessionTree, name)
        for name in ("add_message", "add", "add_card", "bind", "begin_request", "end_request", "append_compaction")
    ),
    "commit": ((SessionTree, "commit"),),
    "snapshot": ((SnapshotWriter, "save"), (SnapshotWriter, "save_with_commit")),
}
"""The session layer as a call sees it; what one of them calls of another, or what runs beside it, is counted once,
for the one that began first."""


@dataclass
class Turn:
    """What one turn took, in milliseconds, and the lines it wrote, commit by commit."""

    parts: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    commits: list[tuple[list[bytes], bool]] = field(default_factory=list)
    whole: float = 0.0
    floor: float = 0.0

    @property
    def persist(self) -> float:
        return sum(self.parts.values())


class Stopwatch:
    """Stands in for the methods in `PARTS`, and adds up the time spent in them."""

    def __init__(self) -> None:
        self.turn = Turn()
        self._depth = 0
        self._outer, self._start = "", 0.0

    @contextmanager
    def installed(self) -> Iterator[None]:
        places = [(owner, name, part) for part, methods in PARTS.items() for owner, name in methods]
        real = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
        write = Ledger.write
        for (owner, name, part), (_, _, function) in zip(places, real, strict=True):
            timed = self._timed_async if asyncio.iscoroutinefunction(function) else self._timed
            setattr(owner, name, timed(part, function))
        Ledger.write = self._noted(write)  # type: ignore[method-assign]
        try:
            yield
        finally:
            for owner, name, function in real:
                setattr(owner, name, function)
            Ledger.write = write  # type: ignore[method-assign]

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*arguments: Any, **options: Any) -> Any:
            self._enter(part)
            try:
                return function(*arguments, **options)
            finally:
                self._leave()

        return stand_in

    def _timed_async(self, part: str, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stand_in(*arguments: Any, **options: Any) -> Any:
            self._enter(part)
            try:
                return await function(*arguments, **options)
            finally:
                self._leave()

        return stand_in

    def _enter(self, part: str) -> None:
        # What runs at the same time counts once, from the first beginning to the last end.
        self._depth += 1
        if self._depth == 1:
            self._outer, self._start = part, time.perf_counter()

    def _leave(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.turn.parts[self._outer] += (time.perf_counter() - self._start) * 1e3

    def _noted(self, write: Callable[..., None]) -> Callable[..., None]:
        def stand_in(ledger: Ledger, lines: list[bytes], sync: bool) -> None:
            self.turn.commits.append((lines, sync))
            write(ledger, lines, sync)

        return stand_in


class Floor:
    """One file that is appended to, with nothing around it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def persist(self, commits: list[tuple[list[bytes], bool]]) -> float:
        """Write the lines again as a bare ledger would; milliseconds."""
        parsed = [([orjson.loads(line) for line in lines], sync) for lines, sync in commits]
        start = time.perf_counter()
        for entries, sync in parsed:
            lines = [orjson.dumps(entry) for entry in entries]
            for line in lines:
                hashlib.sha256(line).hexdigest()
            await pool.run(self._append, lines, sync)
        return (time.perf_counter() - start) * 1e3

    def _append(self, lines: list[bytes], sync: bool) -> None:
        os.write(self._descriptor, b"".join(line + b"\n" for line in lines))
        if sync:
            os.fdatasync(self._descriptor)


async def measure(folder: Path, messages: int, turns: int) -> dict[str, Any]:
    """The figures of one more turn in a conversation of so many messages."""
    workspace = folder / str(messages)
    first = await history(workspace, messages)
    floor, stopwatch = Floor(folder / f"floor-{messages}"), Stopwatch()
    disk = DiskCount()
    async with build(workspace) as agent:
        await take_turns(agent, first, 3)
        with stopwatch.installed():
            taken = [await one_turn(agent, number, stopwatch, floor) for number in range(first + 3, first + 3 + turns)]
        with disk.counting():
            await take_turns(agent, first + 3 + turns, turns)
    return figures(messages, taken, disk)


async def history(workspace: Path, messages: int) -> int:
    """A conversation that long; the long ones by the pen alone, and their last turns by the agent."""
    if messages <= _BY_THE_AGENT:
        return await fill(workspace, messages)
    first = await fill_fast(workspace, messages, compaction=True)
    async with build(workspace, durability="none") as agent:
        await take_turns(agent, first, 40)
    return first + 40


async def one_turn(agent: HarnessAgent, number: int, stopwatch: Stopwatch, floor: Floor) -> Turn:
    stopwatch.turn = turn = Turn()
    start = time.perf_counter()
    await take_turns(agent, number, 1)
    turn.whole = (time.perf_counter() - start) * 1e3
    turn.floor = await floor.persist(turn.commits)
    return turn


def figures(messages: int, taken: list[Turn], disk: DiskCount) -> dict[str, Any]:
    ratios = sorted(turn.persist / turn.floor for turn in taken)
    return {
        "messages": messages,
        "turns": len(taken),
        "floorMs": spread([turn.floor for turn in taken]),
        "persistMs": spread([turn.persist for turn in taken]),
        "wholeCallMs": spread([turn.whole for turn in taken]),
        "ratio": spread(ratios),
        "ratioOfSums": sum(turn.persist for turn in taken) / sum(turn.floor for turn in taken),
        "partsMs": {part: statistics.median(turn.parts[part] for turn in taken) for part in PARTS},
        "bytesPerTurn": disk.total_bytes / len(taken),
        "ledgerBytesPerTurn": disk.bytes[".log.jsonl"] / len(taken),
        "syncsPerTurn": disk.total_syncs / len(taken),
        "writesPerTurn": disk.operations["write"] / len(taken),
        "replacesPerTurn": disk.operations["replace"] / len(taken),
    }


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "p10": ordered[len(ordered) // 10],
        "median": statistics.median(ordered),
        "p90": ordered[len(ordered) * 9 // 10],
    }


def table(results: list[dict[str, Any]]) -> str:
    head = "| messages | floor ms | persist ms | ratio (p10 to p90) | whole call ms "
    head += "| KB a turn | syncs | writes | replaces |"
    rows = [
        f"| {r['messages']:,} | {r['floorMs']['median']:.2f} | {r['persistMs']['median']:.2f} "
        f"| {r['ratio']['median']:.1f} ({r['ratio']['p10']:.1f} to {r['ratio']['p90']:.1f}) "
        f"| {r['wholeCallMs']['median']:.2f} | {r['bytesPerTurn'] / 1000:.1f} | {r['syncsPerTurn']:.2f} "
        f"| {r['writesPerTurn']:.1f} | {r['replacesPerTurn']:.2f} |"
        for r in results
    ]
    parts = "| messages | " + " | ".join(f"{part} ms" for part in PARTS) + " |"
    part_rows = [
        f"| {r['messages']:,} | " + " | ".join(f"{ms:.2f}" for ms in r["partsMs"].values()) + " |" for r in results
    ]
    return "\n".join([head, _rule(head), *rows, "", parts, _rule(parts), *part_rows])


def _rule(head: str) -> str:
    return "|---" * (head.count("|") - 1) + "|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--turns", type=int, default=300, help="turns to measure at each size")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000], help="messages before them"
    )
    parser.add_argument("--folder", type=Path, help="where to work; its disk is the one that is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = [asyncio.run(measure(Path(folder), size, options.turns)) for size in options.sizes]
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
