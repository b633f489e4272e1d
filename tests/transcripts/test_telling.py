"""How far a long reading has come: told in bytes that only grow, up to all of them, across processes too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from growing import Claude, Opencode

from harness.transcripts import in_worker, read
from harness.transcripts.export import convert
from harness.transcripts.telling import Noticeboard


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
    board = Noticeboard(tmp_path / "done")
    assert board.look() is None
    await in_worker(convert, session.path, "markdown", tmp_path / "out.md", tell=board)
    size = session.path.stat().st_size
    assert board.look() == (size, size)
