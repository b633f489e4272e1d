"""The shape of persisting a turn: how many syncs and replaces, and bytes that do not grow. No clock is asked."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from workload import DiskCount, build, fill, take_turns

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="which file a descriptor is of is asked of /proc, which is not here"
)


async def count_turns(workspace: Path, first: int, turns: int, *, compaction: bool = True) -> list[DiskCount]:
    """What each of some turns does to the disk, from turn `first` on; one turn before them is not counted."""
    counts = []
    async with build(workspace, compaction=compaction) as agent:
        await take_turns(agent, first, 1)
        for turn in range(first + 1, first + 1 + turns):
            count = DiskCount()
            with count.counting():
                await take_turns(agent, turn, 1)
            counts.append(count)
    return counts


async def test_a_plain_turn_is_one_sync_and_no_replace(tmp_path: Path) -> None:
    [count] = await count_turns(tmp_path, 0, 1)
    assert count.syncs == {".log.jsonl": 1}
    assert (count.operations["replace"], count.operations["rename"], count.operations["link"]) == (0, 0, 0)


async def test_a_turn_with_a_tool_is_a_sync_for_each_completed_request_and_no_replace(tmp_path: Path) -> None:
    [_, _, count] = await count_turns(tmp_path, 0, 3)
    assert count.syncs == {".log.jsonl": 2}
    assert count.operations["replace"] == 0


async def test_a_turn_that_compacts_syncs_once_more_and_replaces_both_copies(tmp_path: Path) -> None:
    counts = await count_turns(tmp_path, 0, 40)
    compacting = [count for count in counts if count.operations["replace"] > 1]
    assert len(compacting) >= 2
    assert {(count.total_syncs, count.operations["replace"]) for count in compacting} <= {(2, 2), (3, 2)}


async def test_no_turn_writes_a_file_more_than_its_own_lines(tmp_path: Path) -> None:
    counts = await count_turns(tmp_path, 0, 40, compaction=False)
    plain = [count for count in counts if count.total_syncs == 1]
    assert len(plain) >= 20
    # The list of sessions is replaced behind the replies, once a second.
    assert {kind for count in plain for kind in count.bytes} - {"temporary"} == {
        ".log.jsonl", ".jsonl", ".head.json", "memory_messages.jsonl", "memory.json",
    }  # fmt: skip
    assert max(count.total_bytes for count in plain) <= 1.05 * min(count.total_bytes for count in plain)


@pytest.mark.slow
async def test_bytes_and_syncs_of_a_turn_do_not_depend_on_the_length_of_the_history(tmp_path: Path) -> None:
    means: list[Counter[str]] = []
    for messages in (100, 2_000):
        workspace = tmp_path / str(messages)
        counts = await count_turns(workspace, await fill(workspace, messages), 200)
        means.append(
            Counter(bytes=sum(count.total_bytes for count in counts), syncs=sum(count.total_syncs for count in counts))
        )
    short, long = means
    assert long["bytes"] <= 1.2 * short["bytes"]
    assert long["syncs"] <= 1.2 * short["syncs"]
    assert long["syncs"] <= 1.5 * 200
