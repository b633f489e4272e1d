"""How fast sessions of other harnesses are read, against the least it can cost.

    python benchmarks/transcripts.py [--large] [--folder DIR] [--json FILE] [SESSION ...]

The floor is `orjson.loads` of every line of the same file, in the same run. `--large` adds a file of
1 GB: it needs that much disk below `--folder`. Each row that tells of memory ran in a process of its own.
Sessions that are named are read, too; of those only lines of JSON can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
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
    """A full parse against the floor, in milliseconds; `cpu_` tells of the processor's time."""
    read(path)
    parsed = [(spent(lambda: floor(path)), spent(lambda: read(path))) for _ in range(ROUNDS)]
    return {
        "MB": path.stat().st_size / MEGABYTE,
        "floor_ms": statistics.median(one for (one, _), _ in parsed),
        "full_ms": statistics.median(other for _, (other, _) in parsed),
        "ratio": statistics.median(other / one for (one, _), (other, _) in parsed),
        "cpu_floor_ms": statistics.median(one for (_, one), _ in parsed),
        "cpu_full_ms": statistics.median(other for _, (_, other) in parsed),
        "cpu_ratio": statistics.median(other / one for (_, one), (_, other) in parsed),
    }


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
        "nothing": lambda: None,
    }
    work[code]()
    seconds = time.perf_counter() - begun
    print(json.dumps({"seconds": seconds, "peak_MB": peak_memory(), "before_MB": before}))


def peak_memory() -> float:
    """The most memory this process has had, in MB: its own high-water mark, not that of the one it came from."""
    for row in Path("/proc/self/status").read_text().splitlines():
        if row.startswith("VmHWM:"):
            return int(row.split()[1]) * 1024 / MEGABYTE
    return float("nan")


async def stalls(path: Path) -> dict[str, float]:
    """The longest time the event loop was held up, in milliseconds, while a file was read in a worker.

    `idle_stall_ms` is that of the same loop with nothing to do, for as long: what the machine does by itself.
    `loop_cpu_ms` is the most that the loop's thread worked between two of its turns while the file was read.
    """
    await in_worker(page, path)  # the worker's start is not the reading
    begun = time.perf_counter()
    longest, worked = await longest_stall(in_worker(summary, path))
    idle, _ = await longest_stall(asyncio.sleep(time.perf_counter() - begun))
    return {"longest_stall_ms": longest, "idle_stall_ms": idle, "loop_cpu_ms": worked}


async def longest_stall(work: Awaitable[object]) -> tuple[float, float]:
    """How long the loop was held up at most during a piece of work, and the most that its own thread did meanwhile."""
    longest = worked = 0.0

    async def tick() -> None:
        nonlocal longest, worked
        while True:
            begun, used = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, (time.perf_counter() - begun) * 1000 - 1)
            worked = max(worked, (time.thread_time() - used) * 1000)

    ticking = asyncio.create_task(tick())
    await work
    ticking.cancel()
    return longest, worked


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
    found |= {path.name: parse(path) for path in chosen.sessions}
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
        "event loop": asyncio.run(stalls(small)),
    }
    if large:
        big = folder / "big.jsonl"
        generate(big, 1000 * MEGABYTE)
        found["1 GB"] = windows_only(big)
        found["1 GB, first window, new process"] = apart(big, "first")
        found["1 GB to 10 MB"] = {"first_window": found["1 GB"]["first_ms"] / found["10 MB"]["first_ms"]}
    return found


if __name__ == "__main__":
    main()
