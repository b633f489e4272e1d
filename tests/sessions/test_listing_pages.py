"""Long lists of sessions: in pages, in two orders, without a look into any ledger."""

import os
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SessionNotFound
from harness.sessions import SessionCatalog
from harness.sessions.catalog.index import Listed, SessionInfo, encode_index
from harness.sessions.lines.entries import Position

MANY = 10_000


def ids(infos: list[SessionInfo]) -> list[str]:
    return [info.id for info in infos]


def made(folder: Path, count: int) -> SessionCatalog:
    """Sessions whose ledgers nobody could read; the one with the smallest id was written last."""
    folder.mkdir(parents=True)
    listed = {}
    for number in range(count):
        name, when = f"s{number:05}", f"2026-01-01T00:00:00.{count - number:06}Z"
        (folder / f"{name}.log.jsonl").write_bytes(b"x")
        os.utime(folder / f"{name}.log.jsonl", (0, 0))
        listed[name] = Listed(SessionInfo(name, f"Title {number}", "", when, when, 1), Position(2, 1))
    (folder / "sessions.json").write_bytes(encode_index(listed, {}))
    return SessionCatalog(folder, "notes", ("alice",))


async def test_ten_thousand_sessions_are_listed_without_a_look_into_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, opened, real = made(folder, MANY), [], os.open

    def seen(path: Any, *rest: Any, **options: Any) -> int:
        opened.append(os.path.basename(path))
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "open", seen)
    assert len(await catalog.list()) == MANY
    assert ids(await catalog.list(3, "s04999")) == ["s05000", "s05001", "s05002"]
    assert {name for name in opened if "log" in name} == set()


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 7, 8])
async def test_pages_hold_each_session_once_in_the_order_of_the_whole_list(
    folder: Path, limit: int, newest_first: bool
) -> None:
    catalog = made(folder, 7)
    whole = ids(await catalog.list(newest_first=newest_first))
    pages, after = [], None
    while page := ids(await catalog.list(limit, after, newest_first=newest_first)):
        assert len(page) <= limit
        pages += page
        after = page[-1]
    assert pages == whole == [f"s{number:05}" for number in range(7)]


async def test_a_page_by_id_begins_behind_a_session_that_is_gone_and_one_by_time_cannot(folder: Path) -> None:
    catalog = made(folder, 3)
    assert ids(await catalog.list(1, "s00000-gone")) == ["s00001"]
    with pytest.raises(SessionNotFound, match="list from the beginning again"):
        await catalog.list(1, "s00000-gone", newest_first=True)
