"""How fast sessions of other harnesses are read, against the least it can cost.

    python benchmarks/transcripts.py [--large] [--folder DIR] [--json FILE] [SESSION ...]

The floor is `orjson.loads` of every line of the same file, in the same run. `--large` adds a file and
a database of 1 GB each: they need that much disk below `--folder`. Each row that tells of memory ran
in a process of its own. Sessions that are named are read, too; of those only lines of JSON can be
compared. A short one is written several times, under ids of its own each time, until it has 1 MB:
else the opening of the file would be most of what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from harness.transcripts import in_worker, page, read, summary

MEGABYTE = 1_000_000
ROUNDS = 7
IDS = {
    *("id", "uuid", "parentId", "parentUuid", "messageId"),
    *("call_id", "callID", "toolCallId", "tool_call_id", "tool_use_id"),
}
WORDS = [
    "the",
    "file",
    "has",
    "a",
    "test",
    "that",
    "fails",
    "because",
    "one",
    "line",
    "is",
    "read",
    "twice",
    "and",
    "the",
    "other",
    "is",
    "not",
    "read",
    "at",
    "all",
]


def lines(seed: int) -> Iterator[bytes]:
    """A session of Claude Code without an end: prompts, reasoning, calls, results, and what the program notes."""
    chance = random.Random(seed)
    number, second = 0, 0

    def text(size: int) -> str:
        return " ".join(chance.choices(WORDS, k=max(1, size // 5)))

    def code(size: int) -> str:
        rows = (
            f'    {number}\tvalue["{word}"] = f("{word}é", {number})' for word in chance.choices(WORDS, k=size // 34)
        )
        return "\n".join(rows)

    def line(kind: str, **fields: Any) -> bytes:
        nonlocal number, second
        number, second = number + 1, second + 1
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_770_000_000 + second))
        common = {"uuid": f"u{number:08}", "sessionId": "bench", "timestamp": stamp, "cwd": "/srv/demo"}
        return orjson.dumps({"type": kind, **common, "version": "2.1.40", "gitBranch": "main", **fields}) + b"\n"

    def answer(key: str, block: dict[str, Any]) -> bytes:
        usage = {"input_tokens": 9, "output_tokens": 120, "cache_read_input_tokens": 9000}
        message = {"id": key, "role": "assistant", "model": "demo-model-1", "content": [block], "usage": usage}
        return line("assistant", message=message)

    while True:
        yield line("user", message={"role": "user", "content": text(600)})
        for step in range(chance.randint(1, 6)):
            key, call = f"m{number}", f"call{number}-{step}"
            yield answer(key, {"type": "thinking", "thinking": text(300), "signature": "c2ln" * 40})
            yield answer(
                key, {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": f"/srv/{step}.py"}}
            )
            yield line("progress", data={"type": "hook_progress", "command": text(100)})
            result = {"type": "tool_result", "tool_use_id": call, "content": code(4000)}
            mirror = {"file": {"content": code(4000)}}
            yield line("user", message={"role": "user", "content": [result]}, toolUseResult=mirror)
        yield answer(f"m{number}", {"type": "text", "text": text(1200)})


def generate(path: Path, size: int) -> None:
    """A file of about `size` bytes."""
    block = b"".join(part for part, _ in zip(lines(7), range(20_000), strict=False))
    with path.open("wb") as file:
        written = 0
        while written < size:
            # Ids have to differ from one block to the next: a message's lines are one by its id.
            mark = f"{written:x}".encode()
            part = block.replace(b'"id":"m', b'"id":"m' + mark).replace(b'"call', b'"call' + mark)
            part = part[: part.rfind(b"\n", 0, size - written + 1) + 1] if written + len(part) > size else part
            if not part:
                break
            file.write(part)
            written += len(part)


def repeated(path: Path, folder: Path) -> Path:
    """A session again and again, until it has 1 MB; the file itself where it has that."""
    if path.stat().st_size >= MEGABYTE * 0.7:
        return path
    records = [
        orjson.loads(raw) for raw in path.read_bytes().splitlines() if raw.startswith(b"{") and raw.endswith(b"}")
    ]
    longer = folder / path.name
    with longer.open("wb") as file:
        for number in range(MEGABYTE // path.stat().st_size + 1):
            file.write(b"".join(orjson.dumps(with_ids(record, f"-{number}")) + b"\n" for record in records))
    return longer


def with_ids(value: Any, mark: str) -> Any:
    """A record with a mark at the end of each of its ids."""
    if isinstance(value, list):
        return [with_ids(member, mark) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        name: member + mark if name in IDS and isinstance(member, str) else with_ids(member, mark)
        for name, member in value.items()
    }


def milliseconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of a few runs."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        found.append((time.perf_counter() - begun) * 1000)
    return statistics.median(found)


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds by the clock and of the processor. On a busy machine only the second tells of the work."""
    begun, used = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - begun) * 1000, (time.process_time() - used) * 1000


def floor(path: Path) -> None:
    """Every line parsed, nothing kept."""
    with path.open("rb") as file:
        for raw in file:
            orjson.loads(raw)


def parse(path: Path) -> dict[str, float]:
    """A full parse against the floor, in milliseconds; `cpu_` tells of the processor's time.

    Without the garbage collector, as in the worker process that reads for a service; `collected_ratio` is with it.
    `capped_ratio` is for 20 000 characters of each block: pictures are counted and not decoded.
    `quiet_ratio` compares the fastest round of each: what is left when other programs do not get in the way.
    """
    lines_of = read(path).stats()["lines"]
    rounds = max(ROUNDS, min(60, int(30 * MEGABYTE / path.stat().st_size)))
    gc.collect()
    gc.disable()
    parsed = [(spent(lambda: floor(path)), spent(lambda: read(path))) for _ in range(rounds)]
    capped = [(spent(lambda: floor(path)), spent(lambda: read(path, cap=20_000))) for _ in range(rounds)]
    gc.enable()
    collected = [(spent(lambda: floor(path)), spent(lambda: read(path))) for _ in range(rounds)]
    return {
        "MB": path.stat().st_size / MEGABYTE,
        "lines": lines_of,
        "floor_ms": statistics.median(one for (one, _), _ in parsed),
        "full_ms": statistics.median(other for _, (other, _) in parsed),
        "ratio": statistics.median(other / one for (one, _), (other, _) in parsed),
        "cpu_floor_ms": statistics.median(one for (_, one), _ in parsed),
        "cpu_full_ms": statistics.median(other for _, (_, other) in parsed),
        "cpu_ratio": cpu_ratio(parsed),
        "quiet_ratio": min(other for _, (_, other) in parsed) / min(one for (_, one), _ in parsed),
        "capped_ratio": cpu_ratio(capped),
        "collected_ratio": cpu_ratio(collected),
    }


def cpu_ratio(rounds: list[tuple[tuple[float, float], tuple[float, float]]]) -> float:
    """The median of what the second took of the processor, for one of the first in the same round."""
    return statistics.median(other / one for (_, one), (_, other) in rounds)


def measure(path: Path) -> dict[str, float]:
    """Full parse, first window and next window of one file, in milliseconds."""
    parsed = parse(path)
    cursor = page(path).before
    return {
        **parsed,
        "first_ms": milliseconds(lambda: page(path)),
        "next_ms": milliseconds(lambda: page(path, where="before", cursor=cursor)),
        "head_ms": milliseconds(lambda: page(path, where="head")),
    }


def windows_only(path: Path) -> dict[str, float]:
    """First and next window of a file too large to be read as a whole here."""
    first = page(path)
    return {
        "MB": path.stat().st_size / MEGABYTE,
        "first_ms": milliseconds(lambda: page(path)),
        "next_ms": milliseconds(lambda: page(path, where="before", cursor=first.before)),
        "head_ms": milliseconds(lambda: page(path, where="head")),
    }


def apart(path: Path, code: str) -> dict[str, float]:
    """Seconds and peak memory (MB, the interpreter and the library included) of a piece of work in a new process."""
    done = subprocess.run(  # noqa: S603 - this file itself
        [sys.executable, __file__, "--apart", code, str(path)], capture_output=True, check=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run_apart(code: str, path: Path) -> None:
    """The other side of `apart`."""
    before = peak_memory()
    begun = time.perf_counter()
    work: dict[str, Callable[[], object]] = {
        "first": lambda: page(path),
        "full": lambda: read(path, cap=20_000),
        "counted": lambda: summary(path),
        "overview": lambda: page_figures(path),
        "nothing": lambda: None,
    }
    work[code]()
    seconds = time.perf_counter() - begun
    print(json.dumps({"seconds": seconds, "peak_MB": peak_memory(), "before_MB": before}))


def page_figures(path: Path) -> object:
    """What the viewer's page of a whole session needs; not imported above, as it would count as memory everywhere."""
    from harness.viewer.overview import overview

    return overview(path, path.stem)


def peak_memory() -> float:
    """The most memory this process has had, in MB: its own high-water mark, not that of the one it came from."""
    for row in Path("/proc/self/status").read_text().splitlines():
        if row.startswith("VmHWM:"):
            return int(row.split()[1]) * 1024 / MEGABYTE
    return float("nan")


async def stalls(path: Path) -> dict[str, dict[str, float]]:
    """How long the event loop was held up at most, in milliseconds, while a file was read in a worker.

    For a summary, for a page as large as there is, and for the whole session with all its turns; and for a loop
    with nothing to do: what the machine does by itself. See `longest_stall`.
    """
    work: dict[str, Callable[[], Awaitable[object]]] = {
        "summary": lambda: in_worker(summary, path),
        "page of 8 MB": lambda: in_worker(page, path, window=8 * 1024 * 1024),
        "all turns": lambda: in_worker(read, path, cap=20_000),
        "nothing": lambda: asyncio.sleep(0.3),
    }
    await in_worker(len, "the worker's start is not the reading")
    return {f"event loop, {name}": await longest_stall(begin()) for name, begin in work.items()}


async def longest_stall(work: Awaitable[object]) -> dict[str, float]:
    """What stood between two turns of the loop at most, during a piece of work.

    `stall_ms` is by the clock, and on a busy machine tells of the others; `process_ms` is what all threads of this
    process worked in between, which is as long as they can have kept the loop waiting; `loop_ms` the loop's own.
    """
    found = {"stall_ms": 0.0, "process_ms": 0.0, "loop_ms": 0.0}

    async def tick() -> None:
        while True:
            begun, used, own = time.perf_counter(), time.process_time(), time.thread_time()
            await asyncio.sleep(0.001)
            found["stall_ms"] = max(found["stall_ms"], (time.perf_counter() - begun) * 1000 - 1)
            found["process_ms"] = max(found["process_ms"], (time.process_time() - used) * 1000)
            found["loop_ms"] = max(found["loop_ms"], (time.thread_time() - own) * 1000)

    ticking = asyncio.create_task(tick())
    await work
    ticking.cancel()
    return found


def generate_database(path: Path, size: int) -> None:
    """A database of opencode's shape with one session of about `size` bytes: prompts, calls and results of 5 KB."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "pragma journal_mode = off; pragma synchronous = off;"
        "create table session(id text primary key, title text, directory text, time_created int, time_updated int);"
        "create table message(id text primary key, session_id text, time_created int, data text);"
        "create table part(id text primary key, message_id text, session_id text, data text);"
        "create index by_session on message(session_id, time_created, id);"
        "create index by_message on part(message_id, id);"
        "insert into session values('s', 'Large', '/srv', 1770000000000, 1770000000001);"
    )
    output = " ".join(WORDS * 60)
    for number in range(size // 5_400):
        key, role = f"msg_{number:08}", "assistant" if number % 2 else "user"
        info = {"role": role, "time": {"created": 1_770_000_000_000 + number}, "modelID": "m", "providerID": "p"}
        call = {
            "type": "tool",
            "tool": "bash",
            "callID": f"c{number}",
            "state": {"status": "completed", "output": output},
        }
        part = call if number % 2 else {"type": "text", "text": output}
        connection.execute("insert into message values(?, 's', ?, ?)", (key, number, json.dumps(info)))
        connection.execute("insert into part values(?, ?, 's', ?)", (f"prt_{number:08}", key, json.dumps(part)))
    connection.commit()
    connection.close()


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--large", action="store_true", help="also a file of 1 GB")
    options.add_argument("--folder", type=Path, help="where the files are made, and removed again")
    options.add_argument("--json", type=Path, help="write the figures there too")
    options.add_argument("sessions", nargs="*", type=Path, help="files to parse as well")
    options.add_argument("--apart", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.apart:
        run_apart(chosen.apart[0], Path(chosen.apart[1]))
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        found = figures(Path(folder), large=chosen.large)
        for path in chosen.sessions:
            found[path.name] = parse(repeated(path, Path(folder)))
    for name, row in found.items():
        print(name, {key: round(value, 2) for key, value in row.items()})
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))


def figures(folder: Path, *, large: bool) -> dict[str, dict[str, float]]:
    """Every row of the table."""
    small = folder / "small.jsonl"
    generate(small, 10 * MEGABYTE)
    found = {
        "10 MB": measure(small),
        "10 MB, first window, new process": apart(small, "first"),
        "10 MB, full, new process": apart(small, "full"),
        "the library alone, new process": apart(small, "nothing"),
        **asyncio.run(stalls(small)),
    }
    if large:
        big = folder / "big.jsonl"
        generate(big, 1000 * MEGABYTE)
        found["1 GB"] = windows_only(big)
        found["1 GB, first window, new process"] = apart(big, "first")
        found["1 GB, counted, new process"] = apart(big, "counted")
        found["1 GB, the page's figures, new process"] = apart(big, "overview")
        rows = folder / "opencode.db"
        generate_database(rows, 1000 * MEGABYTE)
        found["database of 1 GB"] = windows_only(rows)
        found["database of 1 GB, first window, new process"] = apart(rows, "first")
        found["1 GB to 10 MB"] = {"first_window": found["1 GB"]["first_ms"] / found["10 MB"]["first_ms"]}
    return found


if __name__ == "__main__":
    main()
