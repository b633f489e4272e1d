"""How far a long reading has come: told in bytes that only grow, up to all of them, across processes too."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from growing import Claude, Opencode

from harness.errors import ConfigError
from harness.transcripts import find, in_worker, read, summary
from harness.transcripts.export import convert
from harness.transcripts.telling import part_of
from harness.transcripts.worker import told_by_worker


def test_reading_tells_how_many_bytes_lie_behind_it(tmp_path: Path) -> None:
    session = Claude(tmp_path)
    session.say(300)
    said: list[tuple[int, int]] = []
    read(session.path, tell=lambda done, total: said.append((done, total)))
    size = session.path.stat().st_size
    assert len(said) > 3
    assert said == sorted(said)
    assert (said[0], said[-1]) == ((0, size), (size, size))


def test_rows_of_a_database_are_told_to_their_end(tmp_path: Path) -> None:
    session = Opencode(tmp_path)
    session.say(3)
    said: list[tuple[int, int]] = []
    read(session.path, tell=lambda done, total: said.append((done, total)))
    session.close()
    assert said[-1][0] == said[-1][1] > 0


async def test_a_worker_tells_what_it_has_read(tmp_path: Path) -> None:
    session = Claude(tmp_path)
    session.say(20)
    said: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        said.append((done, total))

    size = session.path.stat().st_size
    made = await told_by_worker(tell, convert, session.path, "markdown", tmp_path / "out.md")
    assert (made.target, said[-1]) == ("markdown", (size, size))
    said.clear()
    counted = await told_by_worker(tell, summary, session.path)
    assert (counted.stats["prompts"], said[-1]) == (20, (size, size))
    said.clear()
    found = await told_by_worker(tell, find, session.path, None, "prompt 7.")
    assert (len(found.hits), said[-1]) == (1, (size, size))
    # Who is told of nothing gets the same.
    assert await in_worker(summary, session.path) == counted


async def test_a_function_that_fails_after_it_told_fails_here(tmp_path: Path) -> None:
    session = Claude(tmp_path)
    session.say(20)
    said: list[tuple[int, int]] = []
    with pytest.raises(ConfigError):
        await told_by_worker(lambda *so: said.append(so), convert, session.path, "nothing", tmp_path / "out.md")


def test_a_part_tells_of_the_whole() -> None:
    said: list[tuple[int, int]] = []
    tell = part_of(lambda done, total: said.append((done, total)), 100, 300)
    tell(50, 200)
    assert said == [(150, 300)]
