"""Track 1 on disk: one folder a key, one file a name.

    <folder of the key>/<name>.json      a single value: one JSON object, replaced whole, or where it is sealed
                                         a block that is overwritten in place
                        <name>.jsonl     a list: one JSON object a line, appended or replaced whole
                        _key.json        the full key, only where a name in the path was shortened
                        .hold            the lock of those who write lists; its content means nothing

Where the folder of a key is, a `Layout` says. File names are `encode_name(name)`, so no name of a
state can meet `_key.json`, `.hold` or a temporary file.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from harness.errors import FileMissing, SessionBusy
from harness.filesystem import disk, pool
from harness.filesystem.locks import FileLock
from harness.sessions.lines.sealed import is_sealed, seal, unseal
from harness.sessions.snapshots.key_folders import KEY_FILE, check_key, drop_folders, key_bytes, noted_key
from harness.sessions.snapshots.list_file import Known, ListFile, Recent
from harness.sessions.snapshots.place import LIST, VALUE, Place
from harness.sessions.snapshots.state_json import decode, encode
from harness.state import SessionKey, State

__all__ = ["FileSession", "Layout"]

_HOLD_SECONDS = 10.0
_POLL_SECONDS = 0.01
_LOOKS, _LOOK_SECONDS = 4, 0.001
# Some 300 bytes an entry; pushing one out costs its list one more counting.
_REMEMBERED = 20_000
_log = logging.getLogger("harness.sessions")


class Layout(Protocol):
    """Where keys have their folders. Every method may raise `InvalidId`; the last two are blocking."""

    def folder(self, key: SessionKey) -> Path:
        """The folder of a key."""
        ...

    def parent(self, namespace: tuple[str, ...], agent: str) -> Path:
        """The folder in which the folders of an agent's sessions are."""
        ...

    def session(self, agent: str, name: str) -> str | None:
        """The session id behind the name of a folder; None if it was shortened or is not that agent's."""
        ...

    def is_shortened(self, folder: Path) -> bool:
        """Whether a name in the path of a folder was shortened, so that it does not tell the key."""
        ...

    def check(self, namespace: tuple[str, ...]) -> None:
        """Check that what lies above the folder belongs to the namespace; `SessionDamaged` if not."""
        ...

    def claim(self, namespace: tuple[str, ...]) -> None:
        """The same before the first write, noting whose it is."""
        ...


class FileSession:
    """A `Session` on files. Its two public kinds differ in their `Layout` only.

    Safe to share between tasks, event loops, threads and processes. The work runs in the file pool.
    Lists are written under a short lock between processes: `SessionBusy` if it is not had in 10 s.
    """

    def __init__(self, layout: Layout, *, sync: bool) -> None:
        self._layout = layout
        self._sync = sync
        self._lists: Recent[Known] = Recent(_REMEMBERED)
        self._places: Recent[Place] = Recent(_REMEMBERED)

    async def save(self, key: SessionKey, name: str, value: State) -> None:
        """Replace the single value `name`; nothing is written if it is there already.

        Raises `PersistenceError`, with the old value in place, when the disk refuses.
        """
        # Encoded here: on another thread a live value could change meanwhile.
        await pool.run(self._save, key, name, encode(value, f"the state {name!r}"))

    async def get(self, key: SessionKey, name: str) -> State | None:
        """The single value, or None. A damaged one is set aside, reported to the log, and None."""
        return await pool.run(self._get, key, name)

    async def append(self, key: SessionKey, name: str, items: Sequence[State], expect_count: int) -> None:
        """Add to the end of a list that has `expect_count` items now, without reading it.

        Raises `ListMoved` if it has not, and `PersistenceError` when the disk refuses; the file is
        then as it was.
        """
        added = tuple(items)
        await self._alone(key, lambda place: self._list(place, name).append(added, expect_count))

    async def replace(self, key: SessionKey, name: str, items: Sequence[State]) -> None:
        """Replace the whole list at once; a copy of a damaged one is kept beside it."""
        put = tuple(items)
        await self._alone(key, lambda place: self._list(place, name).replace(put))

    async def save_together(
        self,
        key: SessionKey,
        values: Mapping[str, State],
        name: str,
        items: Sequence[State],
        expect_count: int | None,
        sealed: Mapping[str, State],
    ) -> None:
        """Save values and `append` to the list `name`, or `replace` it where no count is expected, in one go.

        `sealed` are values of a few bytes that change each time: they are overwritten in place with a
        check sum, and a crash may cost one of them, which then is absent. They come last. Not one
        transaction: each other file for itself is as `save`, `append` and `replace` leave it.
        """
        await self._alone(key, self._together(values, name, items, expect_count, sealed))

    def together(
        self,
        key: SessionKey,
        values: Mapping[str, State],
        name: str,
        items: Sequence[State],
        expect_count: int | None,
        sealed: Mapping[str, State],
        *,
        alone: Place | None = None,
    ) -> Callable[[], bool]:
        """`save_together` of values that are not there yet, for a worker that is at the files anyway.

        What is returned gives False when another writer is busy there, with nothing written. `alone` is what `known`
        gave of the key, where a lock which is held keeps all other writers out, so that none need be taken here.
        """
        work = self._together(values, name, items, expect_count, sealed, fresh=True)
        return partial(self._try_alone, key, work) if alone is None else partial(_done, work, alone)

    def known(self, key: SessionKey) -> Place | None:
        """The place of a key, if this object has written there; asks no disk."""
        place = self._places.get(key)
        return place if place and place.ready else None

    def _together(
        self,
        values: Mapping[str, State],
        name: str,
        items: Sequence[State],
        expect_count: int | None,
        sealed: Mapping[str, State],
        *,
        fresh: bool = False,
    ) -> Callable[[Place], None]:
        encoded = {each: encode(value, f"the state {each!r}") for each, value in values.items()}
        blocks: dict[str, bytes] = {}
        for each, value in sealed.items():
            block = seal(value)
            if is_sealed(block):
                blocks[each] = block
            else:  # too long to be one
                encoded[each] = encode(value, f"the state {each!r}")
        put = tuple(items)

        def work(place: Place) -> None:
            if expect_count is None:
                self._list(place, name).replace(put)
            elif put:
                self._list(place, name).append(put, expect_count)
            for each, data in encoded.items():
                self._put(place.value(each), data, fresh=fresh)
            for each, block in blocks.items():
                self._put_sealed(place.value(each), block)

        return work

    async def get_list(self, key: SessionKey, name: str) -> list[State]:
        """The list; empty if there is none. Damaged items are left out and reported to the log."""
        return await pool.run(self._get_list, key, name)

    async def exists(self, key: SessionKey) -> bool:
        """Whether anything is stored under the key."""
        return await pool.run(self._exists, key)

    async def delete(self, key: SessionKey, name: str | None = None) -> None:
        """Remove one name, both kinds of it, or the whole folder of the key."""
        if await pool.run(self._is_there, key):
            await self._alone(key, lambda place: _remove(place, name))

    async def set_aside(self, key: SessionKey) -> Path:
        """Keep everything under a key for a person, under another name which this gives; the key has nothing then.

        For whoever keeps all other writers of the key out.
        """
        return await pool.run(disk.set_aside, self._opened(key).folder)

    async def list_keys(self, namespace: tuple[str, ...], agent: str) -> list[SessionKey]:
        """The keys of one namespace and agent, sorted by session id. Foreign folders are passed over."""
        return await pool.run(self._list_keys, tuple(namespace), agent)

    async def drop(self, namespace: tuple[str, ...], agent: str) -> None:
        """Remove all folders of keys of a namespace and agent, with files in them that were set aside as damaged."""
        await pool.run(self._drop, tuple(namespace), agent)

    async def aclose(self) -> None:
        """Forget what was remembered of files; none is held open, and the store can still be used."""
        self._lists.clear()
        self._places.clear()

    async def _alone(self, key: SessionKey, work: Callable[[Place], None]) -> None:
        """Do file work while no other writer of a list is in the folder. The waiting is done out here,
        since a pool full of waiters would stop everyone.
        """
        deadline = time.monotonic() + _HOLD_SECONDS
        while not await pool.run(self._try_alone, key, work):
            if time.monotonic() >= deadline:
                raise SessionBusy(
                    f"another writer held {Place(self._layout.folder(key)).hold} for {_HOLD_SECONDS:g} s; "
                    "nothing was written: try again when it has ended"
                )
            await asyncio.sleep(_POLL_SECONDS)

    def _try_alone(self, key: SessionKey, work: Callable[[Place], None]) -> bool:
        place = self._prepared(key)
        # Where whoever held the lock before has deleted the folder, the lock's file is gone too: it is not had then.
        lock = FileLock(place.hold)
        if not lock.take():
            return False
        try:
            work(place)
        finally:
            lock.release()
        return True

    def _save(self, key: SessionKey, name: str, data: bytes) -> None:
        try:
            self._put(self._prepared(key).value(name), data)
        except FileMissing:  # the folder was deleted since it was prepared
            self._put(self._prepared(key).value(name), data)

    def _put(self, path: Path, data: bytes, *, fresh: bool = False) -> None:
        if fresh or not _holds(path, data):
            disk.replace(path, data, sync=self._sync)

    def _put_sealed(self, path: Path, block: bytes) -> None:
        # Whoever wants every write synced wants the old value to be there until the new one is.
        if self._sync or not disk.overwrite(path, block):
            disk.replace(path, block, sync=self._sync)

    def _get(self, key: SessionKey, name: str) -> State | None:
        path = self._opened(key).value(name)
        mark = disk.mark(path)
        if mark is None:
            return None
        try:
            value = _value_in(path)
        except FileMissing:
            return None
        if value is None and disk.mark(path) == mark:
            _log.warning("%s is damaged; it was moved to %s and counts as absent", path, disk.set_aside(path))
        return value

    def _get_list(self, key: SessionKey, name: str) -> list[State]:
        return self._list(self._opened(key), name).read()

    def _list(self, place: Place, name: str) -> ListFile:
        known = place.lists.get(name)
        if known is None:
            known = place.lists[name] = ListFile(place.list(name), self._lists, sync=self._sync)
        return known

    def _exists(self, key: SessionKey) -> bool:
        return _has_states(self._opened(key).folder)

    def _is_there(self, key: SessionKey) -> bool:
        return disk.mark(self._opened(key).folder) is not None

    def _list_keys(self, namespace: tuple[str, ...], agent: str) -> list[SessionKey]:
        parent = self._layout.parent(namespace, agent)
        self._layout.check(namespace)
        names = [item.name for item in disk.list_folder(parent) if item.is_dir]
        found = [self._key_of(parent / name, namespace, agent) for name in names]
        return sorted((key for key in found if key), key=lambda key: key.session)

    def _drop(self, namespace: tuple[str, ...], agent: str) -> None:
        layout = self._layout

        def is_named(folder: Path) -> bool:
            return layout.is_shortened(folder) or layout.session(agent, folder.name) is not None

        drop_folders(layout.parent(namespace, agent), namespace, agent, is_named)

    def _key_of(self, folder: Path, namespace: tuple[str, ...], agent: str) -> SessionKey | None:
        if self._layout.is_shortened(folder):
            key = noted_key(folder)
        else:
            session = self._layout.session(agent, folder.name)
            key = SessionKey(namespace, agent, session) if session else None
        ours = key is not None and (key.namespace, key.agent) == (namespace, agent)
        return key if ours and _has_states(folder) else None

    def _opened(self, key: SessionKey) -> Place:
        """The place of a key, whose folder need not exist, after checking whose it is."""
        checked = self._places.get(key)
        if checked is not None:
            return checked
        folder = self._layout.folder(key)
        self._layout.check(key.namespace)
        if self._layout.is_shortened(folder):
            check_key(folder, key)
        place = Place(folder)
        self._places.put(key, place)
        return place

    def _prepared(self, key: SessionKey) -> Place:
        """The place of a key, its folder made and marked as that key's."""
        place = self._opened(key)
        folder = place.folder
        if place.ready and disk.mark(folder) is not None:
            return place
        self._layout.claim(key.namespace)
        disk.make_folder(folder, sync=self._sync)
        if self._layout.is_shortened(folder):
            disk.create(folder / KEY_FILE, key_bytes(key), sync=self._sync)
            check_key(folder, key)
        disk.remove_leftovers(folder)
        place.ready = True
        return place


def _done(work: Callable[[Place], None], place: Place) -> bool:
    work(place)
    return True


def _value_in(path: Path) -> State | None:
    """The value in a file; a block that is damaged is looked at again, since a writer may be at it."""
    for look in range(_LOOKS):
        if look:
            time.sleep(_LOOK_SECONDS)
        raw = disk.read(path)
        if not is_sealed(raw):
            return decode(raw)
        if (value := unseal(raw)) is not None:
            return value
    return None


def _holds(path: Path, data: bytes) -> bool:
    mark = disk.mark(path)
    try:
        return mark is not None and mark.size == len(data) and disk.read(path) == data
    except FileMissing:
        return False


def _remove(place: Place, name: str | None) -> None:
    if name is None:
        # The lock's file goes too: who waits for it notices, and goes to the next one.
        if disk.remove_tree(place.folder):
            # Who was told that it is gone must not meet it again after a power cut.
            disk.sync_folder(place.folder.parent)
    else:
        disk.remove(place.value(name))
        disk.remove(place.list(name))


def _has_states(folder: Path) -> bool:
    names = [item.name for item in disk.list_folder(folder) if not item.is_dir]
    return any(name.endswith((VALUE, LIST)) and name != KEY_FILE for name in names)
