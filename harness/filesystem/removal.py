"""Taking all files of one tenant away at once, so that nobody ever sees some of them.

The tenant's folder goes to a place that no reader looks at, by one rename; what is in it is removed there. Before that
it stands behind a barrier, the lock on `agents/removal.lock`, without which nobody becomes a writer of a session. A
byte in that file says that something outside the folder was removed already: then only the removal may go on.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import FileMissing, PersistenceError, SessionBusy
from harness.filesystem import disk, pool
from harness.filesystem.locks import FileLock
from harness.filesystem.namespaces import AGENTS, REMOVAL_LOCK
from harness.filesystem.paths import Parts
from harness.ids import new_id

__all__ = ["Barrier", "Kept", "TenantFolder", "walk"]

_TENANT = "tenant"
_LOCKS = (".lock", ".hold")
_TRIES, _PAUSE = 20, 0.025  # seconds


@dataclass(frozen=True, slots=True)
class Kept:
    """A file, or a link, by its path below a tenant's folder; size in bytes."""

    parts: Parts
    size: int
    is_link: bool = False


class Barrier:
    """Keeps writers of sessions out of a tenant's folder."""

    def __init__(self, root: Path) -> None:
        self.lock = FileLock(root / AGENTS / REMOVAL_LOCK)
        self.is_begun = False
        """Whether calls are kept out until the removal is finished, whatever becomes of this process."""

    async def put_up(self, timeout: float) -> None:
        """Wait for another removal, and take its place. Raises `SessionBusy`, `PersistenceError`."""
        await self.lock.acquire(timeout)
        try:
            found = await pool.run(disk.mark, self.lock.path)
        except BaseException:
            self.lock.release()  # the file stays: it may say that a removal was begun
            raise
        self.is_begun = found is not None and found.size > 0

    async def begin(self) -> None:
        """Say on disk that there is no way back. Raises `PersistenceError`; then there is one."""
        await pool.run(self.lock.work, _mark_begun, self.lock.path)
        self.is_begun = True

    def take_down(self) -> None:
        """Let writers in again, unless the removal was begun."""
        if self.is_begun:
            self.lock.release()
        else:
            self.lock.unlink_and_release()


class TenantFolder:
    """The folder of one tenant, and the place where it goes. Methods that are no coroutines are blocking."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # The name says nothing of the tenant, and none of ours begins with a dot.
        self._rooms = f".removed-{hashlib.sha256(root.name.encode()).hexdigest()[:32]}"
        self._away = root.parent / f"{self._rooms}-{new_id()}"  # of its own: another removal may end meanwhile

    def is_there(self) -> bool:
        """Whether there is a folder. Raises `PersistenceError` for a link: what it leads to is not ours to remove."""
        for place in (self.root, self.root / AGENTS):
            if disk.is_link(place):
                raise PersistenceError(
                    f"{place} is a link, and what it leads to is not removed with it; nothing was removed: put the "
                    "folder in its place, or remove both by hand"
                )
        return disk.mark(self.root) is not None

    @asynccontextmanager
    async def barred(self, timeout: float) -> AsyncIterator[Barrier]:
        """Keep writers out for the block. Raises `SessionBusy` where one is inside, or another removal goes on."""
        barrier = Barrier(self.root)
        await barrier.put_up(timeout)
        try:
            await self._wait_for_writers()
            yield barrier
        finally:
            barrier.take_down()

    def make_room(self) -> None:
        """See that the folder can go away. Raises `PersistenceError`, with nothing changed."""
        disk.make_folder(self._away, sync=True)

    def put_away(self) -> None:
        """From now on there is no such tenant. Raises `PersistenceError` if it cannot go away."""
        self.make_room()  # while it was empty it may have gone as what was left of an earlier removal
        if not disk.rename(self.root, self._away / _TENANT):
            raise PersistenceError(f"{self.root} or {self._away} is gone; look who else removes folders there")
        disk.sync_folder(self._away)
        disk.sync_folder(self.root.parent)

    async def finish(self) -> list[Kept]:
        """Remove what earlier removals that were cut off had put away; what there was.

        Raises `SessionBusy` where such a removal goes on, and `PersistenceError`.
        """
        found = await pool.run(disk.list_folder, self.root.parent)
        rooms = [self.root.parent / item.name for item in found if item.name.startswith(self._rooms)]
        return [kept for room in rooms for kept in await self._finish(room)]

    async def _finish(self, room: Path) -> list[Kept]:
        for _ in range(_TRIES):
            if (kept := await pool.run(_empty_if_left, room)) is not None:
                return kept
            await asyncio.sleep(_PAUSE)  # a call that waited at the barrier may be looking at it still
        raise SessionBusy("another call is removing this user; wait until it has ended")

    def empty(self) -> list[Kept]:
        """Remove what was put away, while the lock that went with it is held; what there was."""
        return _empty(self._away)

    async def _wait_for_writers(self) -> None:
        """A moment, for those who write lists; whoever has a session longer is a call."""
        held = await pool.run(self._first_held)
        for _ in range(_TRIES):
            if held is None:
                return
            await asyncio.sleep(_PAUSE)
            held = await pool.run(self._first_held)
        if held is not None:
            raise SessionBusy(
                f"another process or call holds the lock {held}; nothing of this user was removed: "
                "let that call end, or stop it, then delete the user again"
            )

    def _first_held(self) -> Path | None:
        locks = (item.parts for item in walk(self.root / AGENTS) if item.parts[-1].endswith(_LOCKS))
        places = (self.root.joinpath(AGENTS, *parts) for parts in locks if parts != (REMOVAL_LOCK,))
        return next((place for place in places if not _is_free(place)), None)


def walk(folder: Path) -> Iterator[Kept]:
    """The files below a folder, links among them, which are not followed; none where there is no folder."""
    yield from _below(folder, ())


def _below(folder: Path, parts: Parts) -> Iterator[Kept]:
    for item in disk.list_folder(folder):
        inner = (*parts, item.name)
        if item.is_dir:
            yield from _below(folder / item.name, inner)
        else:
            yield Kept(inner, item.size, not item.is_file and disk.is_link(folder / item.name))


def _empty_if_left(room: Path) -> list[Kept] | None:
    """Empty the room of a removal that was cut off; None, with nothing done, while its lock is held."""
    lock = FileLock(room / _TENANT / AGENTS / REMOVAL_LOCK, in_folder=True)
    try:
        if not lock.take():
            return None
    except FileMissing:  # that lock goes last
        return _empty(room)
    try:
        return _empty(room)
    finally:
        lock.release()


def _empty(room: Path) -> list[Kept]:
    tenant = room / _TENANT
    found = [*walk(tenant)]
    for folder, last in ((tenant, AGENTS), (tenant / AGENTS, REMOVAL_LOCK)):
        for item in disk.list_folder(folder):
            if item.name != last:
                disk.remove_tree(folder / item.name)
    if disk.remove_tree(room):
        disk.sync_folder(room.parent)
    if disk.mark(room) is not None:  # somebody else had a hand in it
        raise PersistenceError(f"{room} is not empty yet; delete the user again")
    return found


def _is_free(path: Path) -> bool:
    lock = FileLock(path, in_folder=True)
    try:
        if not lock.take():
            return False
    except FileMissing:
        return True
    lock.release()
    return True


def _mark_begun(path: Path) -> None:
    disk.write_block(path, b"1", sync=True)
    disk.sync_folder(path.parent)
