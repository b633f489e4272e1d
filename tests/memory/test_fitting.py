"""Memory is kept with models that take little, and nothing of it is lost for that."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ContextOverflow
from harness.filesystem import LocalFilesystem
from harness.memory import MaintenanceConfig, MemoryFiles, both_ends, maintain
from harness.memory.fitting import Fitting
from harness.models.tokens import estimate_tokens

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


class Small:
    """Takes so many tokens. Answers with the memory it is shown and the bullets of the notes."""

    def __init__(self, window: int) -> None:
        self.window, self.sizes, self.refused = window, list[int](), 0
        self.systems: list[str] = []

    async def __call__(self, system: str, prompt: str) -> str:
        size = estimate_tokens(system) + estimate_tokens(prompt)
        if size > self.window:
            self.refused += 1
            raise ContextOverflow("too long")
        self.sizes.append(size)
        self.systems.append(system)
        lines = [line.strip() for line in prompt.split("\n")]
        return "\n".join(line for line in lines if line.startswith("- ")) or "NO_REPLY"


async def told(_kind: str, _details: Any) -> None:
    """Nobody listens."""


async def kept(tmp_path: Any, model: Small, room: int | None, lines: int = 400) -> str:
    files = LocalFilesystem(tmp_path / "w").for_namespace(("alice",))
    await files.write("MEMORY.md", "".join(f"- known for long, number {n}\n" for n in range(lines)))
    for day in range(1, 6):
        text = "\n".join(f"- day {day} fact {n}" for n in range(40))
        await MemoryFiles(files).append_daily(text, NOW.replace(day=day))
    await maintain(files, model, MaintenanceConfig(), NOW, told, room=room)
    return await MemoryFiles(files).read_memory()


@pytest.mark.parametrize("room", [1_500, 2_500, 4_800])
async def test_no_request_is_larger_than_the_room_and_nothing_known_is_lost(tmp_path: Any, room: int) -> None:
    model = Small(room)
    memory = await kept(tmp_path, model, room)
    assert model.refused == 0
    assert memory.startswith("- known for long, number 0\n")
    assert all(f"- known for long, number {n}\n" in memory for n in range(400))
    assert all(f"- day {day} fact {n}\n" in memory for day in range(1, 6) for n in range(40))


async def test_a_request_that_is_refused_as_too_long_is_made_half_as_large(tmp_path: Any) -> None:
    model = Small(4_000)
    memory = await kept(tmp_path, model, None)
    assert model.refused == 2
    assert "- day 5 fact 39\n" in memory
    assert memory.count("- known for long") == 400


async def test_a_model_that_takes_nothing_is_an_overflow_and_the_file_stays(tmp_path: Any) -> None:
    with pytest.raises(ContextOverflow):
        await kept(tmp_path, Small(10), None)
    files = LocalFilesystem(tmp_path / "w").for_namespace(("alice",))
    assert (await MemoryFiles(files).read_memory()).count("- known for long") == 400


async def test_who_is_shown_the_end_only_is_told_so(tmp_path: Any) -> None:
    model = Small(1_500)
    await kept(tmp_path, model, 1_500)
    assert "you are shown the end only" in model.systems[0]
    model = Small(30_000)
    await kept(tmp_path / "other", model, None)
    assert "you are shown the end only" not in model.systems[0]


@given(st.text(max_size=400), st.text(max_size=100), st.integers(0, 2_000))
def test_a_memory_that_is_divided_is_whole(memory: str, notes: str, room: int) -> None:
    fitting = Fitting(4_000, 16_000, room)
    assert "".join(fitting.divided(memory, notes)) == memory


@given(st.text(max_size=2_000), st.integers(30, 500))
def test_both_ends_fit_and_say_what_is_missing(text: str, tokens: int) -> None:
    cut = both_ends(text, tokens, "the log")
    assert estimate_tokens(cut) <= tokens
    if cut != text:
        head, _, rest = cut.partition("[cut: ")
        missing = int(rest.partition(" ")[0])
        tail = rest.partition("the log has them]")[2]
        assert len(head.rstrip("\n")) + missing + len(tail.lstrip("\n")) <= len(text) <= len(head + tail) + missing
