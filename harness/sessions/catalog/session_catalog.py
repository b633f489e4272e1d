"""All sessions of one tenant and agent: list, read back, search, delete."""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import (
    FileMissing,
    HarnessError,
    PersistenceError,
    SessionBusy,
    SessionDamaged,
    SessionNotFound,
)
from harness.filesystem import disk, pool
from harness.filesystem.disk import DirItem
from harness.filesystem.locks import FileLock
from harness.filesystem.namespaces import check_tenant_file
from harness.ids import timestamp
from harness.messages import MessageDict
from harness.sessions.catalog.history import read_history, read_told
from harness.sessions.catalog.index import (
    INDEX,
    Listed,
    SessionInfo,
    counted_on,
    encode_index,
    info_of_file,
    list_ledger,
    lost_sessions,
    page_of,
    read_index,
    session_files,
    time_of,
    title_of,
)
from harness.sessions.catalog.search import SearchHit, rank, search_ledger, search_words
from harness.sessions.checking.strict import gone_is_not_found, not_found
from harness.sessions.ledger.deleting import remove_session
from harness.sessions.lines.entries import EntryDict
from harness.sessions.lines.headers import require_owner
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.skimming import read_entries
from harness.sessions.view.query import checked_query
from harness.text import dumps

__all__ = ["SessionCatalog"]

_log = logging.getLogger("harness.sessions")
_LOCK_SECONDS = 10.0
_AT_ONCE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Change:
    """Something to put into the list: a whole entry, a title, or that there may be more turns."""

    listed: Listed | None = None
    prompt: str = ""
    summary: str = ""
    when: str = ""
    title: str = ""

    def apply(self, listed: Listed) -> Listed:
        """The entry after the change, but for the number of its turns."""
        if self.listed is not None:
            return self.listed
        info = listed.info
        changed = replace(
            info,
            title=self.title or info.title or title_of(self.prompt),
            summary=self.summary or info.summary,
            updated_at=max(info.updated_at, self.when),
        )
        return replace(listed, info=changed)


_Changes = Mapping[str, Sequence[_Change]]


class SessionCatalog:
    """The sessions in a folder `sessions/`; `agent` and `namespace` are checked when one is read.

    Changes to the list are written in the background, at least `interval` seconds apart, and by
    `aclose`. One object may serve several tasks, of several event loops too.
    """

    def __init__(self, folder: Path, agent: str, namespace: tuple[str, ...], *, interval: float = 1.0) -> None:
        self.folder = folder
        self._agent = agent
        self._namespace = tuple(namespace)
        self._interval = interval
        self._changes: dict[str, list[_Change]] = {}
        self._writer: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._told = False
        self._unread: set[str] = set()
        self._whose = {"agent": agent, "tenant": [*namespace]}

    async def list(
        self, limit: int | None = None, after: str | None = None, *, newest_first: bool = False
    ) -> builtins.list[SessionInfo]:
        """The sessions as the index and the files have them, in pages; see `page_of`. Reads no ledger that it knows.

        An index that is damaged, or lacks a session, is made right on the way, where it can be written to. After a
        process was killed `turns` may stay too small for the turns it had not written yet, until the next one.
        What is another owner's is listed as one that cannot be read. Raises `SessionDamaged` where the folder is.
        """
        await pool.run(self._check_folder)
        try:
            infos = await self._write_changes()
        except PersistenceError as error:
            if not self._told:
                _log.warning("the list of sessions in %s is only read: %s", self.folder, error)
            self._told = True
            infos = await pool.run(lambda: self._merged(dict(self._changes), rebuild=False)[0])
        return page_of(infos.values(), limit, after, newest_first=newest_first)

    async def lost(self) -> builtins.list[str]:
        """The ids of sessions whose ledger is gone, although nobody deleted them; `list` does not have them."""
        await pool.run(self._check_folder)
        return await pool.run(lost_sessions, self.folder)

    async def exists(self, session_id: str) -> bool:
        """Whether the session has a ledger. Raises `InvalidId`."""
        found = await pool.run(disk.mark, self._files(session_id).ledger)
        return found is not None and found.size > 0

    async def history(self, session_id: str, last_n: int) -> builtins.list[MessageDict]:
        """The last messages, oldest first, compacted ones too. Raises `SessionNotFound`, `SessionDamaged`."""
        return await pool.run(self._history, session_id, last_n)

    async def read(self, session_id: str, last_n: int) -> AsyncIterator[MessageDict]:
        """The same as `history`, message by message, so that none is held longer than it is looked at."""
        async for line in self.read_lines(session_id, last_n):
            yield line["message"]

    async def read_lines(self, session_id: str, last_n: int) -> AsyncIterator[EntryDict]:
        """The same, each as its line of the ledger has it: with the time at which it was written."""
        files = await pool.run(self._checked, session_id)
        lines = read_told(files, last_n)
        while part := await pool.run(_some, lines, files, session_id):
            for line in part:
                yield line

    async def search(self, query: str, limit: int = 10, session_id: str | None = None) -> builtins.list[SearchHit]:
        """The best matches for the words of `query`, in all sessions or in one; best first.

        A message matches that holds any of the words, as a part of a word too; case does not matter. Searches of one
        tenant take turns. Raises `ConfigError` for a query that is longer than can be looked for in time.
        """
        words = search_words(checked_query(query))
        if not words:
            return []
        if session_id is not None:
            there = await self.exists(session_id)
            found = await pool.run_alone(self._namespace, self._search_one, session_id, words) if there else []
            return rank(found, limit)
        hits: builtins.list[SearchHit] = []
        for each in await pool.run(session_files, self.folder):
            hits = rank([*hits, *await pool.run_alone(self._namespace, self._search_any, each, words)], limit)
        return hits

    async def delete(self, session_id: str, *, timeout: float = 30) -> bool:
        """Remove a session with all its files; False if there was none. Waits for its writer.

        The id of the ledger stays behind, so that a snapshot which is kept elsewhere cannot bring it back.
        Raises `SessionBusy` when a call keeps the session longer than `timeout`, and `SessionDamaged`, with nothing
        removed, where it is another owner's.
        """
        files = self._files(session_id)
        await pool.run(self._check_folder)
        lock = FileLock(files.lock, barrier=files.barrier)
        await lock.acquire(timeout)
        try:
            existed = await remove_session(lock, files, self._owner(session_id))
            self._changes.pop(session_id, None)
        except BaseException:
            lock.release()
            raise
        try:
            lock.unlink_and_release()
        except PersistenceError as error:  # the session is gone, and that a lock's file is there means nothing
            _log.warning("session %r is deleted, and the file of its lock stayed behind: %s", session_id, error)
        await self.flush_or_tell()
        return existed

    def note(self, info: SessionInfo) -> None:
        """Put this into the list, soon: it replaces what the list says of the session."""
        self._note(info.id, _Change(Listed(info)))

    def note_turn(self, session_id: str, *, prompt: str = "", summary: str = "") -> None:
        """Count the turns that a session has more, soon; its first prompt is its title. Call it after the commit."""
        self._note(session_id, _Change(None, prompt, summary, timestamp()))

    async def renew(self, session_id: str) -> None:
        """Make the entry of a session in the list anew from its ledger, by reading all of it."""
        listed = await pool.run(self._list_own, session_id)
        self._note(session_id, _Change(listed))
        await self.flush()

    def note_title(self, session_id: str, title: str) -> None:
        """Put a title that somebody gave into the list, soon. Call it after the commit."""
        self._note(session_id, _Change(when=timestamp(), title=title_of(title)))

    async def flush(self) -> None:
        """Write noted changes now. Raises `PersistenceError`; then they stay noted."""
        if self._changes:
            await self._write_changes()

    async def aclose(self) -> None:
        """Write what is noted and stop writing in the background. The list is a copy: that it cannot be is logged."""
        writer, self._writer = self._writer, None
        if writer is not None and not writer.get_loop().is_closed():
            await _stop(writer)
        if self._changes:
            await self.flush_or_tell()

    async def flush_or_tell(self) -> None:
        """Write noted changes now; the list is a copy, so where it cannot be written the log says so."""
        try:
            await self._write_changes()
        except (PersistenceError, SessionBusy) as error:
            _log.warning("the list of sessions in %s could not be written, it is made anew: %s", self.folder, error)

    def _note(self, session_id: str, change: _Change) -> None:
        with self._lock:
            self._changes.setdefault(session_id, []).append(change)
        if self._writer is None or self._writer.done() or self._writer.get_loop().is_closed():
            self._writer = asyncio.get_running_loop().create_task(
                self._write_soon(),
                context=contextvars.Context(),  # of nobody: it serves all, and keeps no call alive
            )

    async def _write_soon(self) -> None:
        """Waiting comes first, so that two writes are never closer than the interval."""
        while self._changes:
            await asyncio.sleep(self._interval)
            try:
                await self.flush()
            except (PersistenceError, SessionBusy) as error:
                _log.warning("the list of sessions in %s could not be written, trying again: %s", self.folder, error)

    async def _write_changes(self) -> dict[str, SessionInfo]:
        lock = FileLock(self.folder / "sessions.json.lock", in_folder=True)
        try:
            return await lock.run(_LOCK_SECONDS, self._merge_noted)
        except FileMissing:
            if await pool.run(disk.mark, self.folder) is not None:
                raise
            with self._lock:  # there is no folder, and so no session
                self._changes.clear()
            return {}

    def _merge_noted(self) -> dict[str, SessionInfo]:
        with self._lock:
            changes, self._changes = self._changes, {}
        try:
            return self._merge(changes)
        except HarnessError:
            with self._lock:
                for key, later in self._changes.items():
                    changes.setdefault(key, []).extend(later)
                self._changes = changes
            raise

    def _files(self, session_id: str) -> SessionFiles:
        return SessionFiles.of(self.folder, session_id)

    def _owner(self, session_id: str) -> Owner:
        return Owner(session_id, self._agent, self._namespace)

    def _check_folder(self) -> None:
        """Raise `SessionDamaged` where the tenant's folder, with what is in it, is another's, moved or linked here."""
        check_tenant_file(self.folder.parent.parent.parent, self._namespace)

    def _checked(self, session_id: str) -> SessionFiles:
        """Every reading of one session begins here."""
        self._check_folder()
        files = self._files(session_id)
        if not require_owner(files, self._owner(session_id)):
            raise not_found(session_id)
        return files

    def _list_own(self, session_id: str) -> Listed:
        files = self._files(session_id)
        require_owner(files, self._owner(session_id))
        return list_ledger(session_id, files.ledger)

    def _history(self, session_id: str, last_n: int) -> builtins.list[MessageDict]:
        files = self._checked(session_id)
        with gone_is_not_found(files, session_id):
            return [*read_history(files, last_n)]

    def _search_one(self, session_id: str, words: tuple[str, ...]) -> builtins.list[SearchHit]:
        try:
            return search_ledger(session_id, read_entries(self._checked(session_id).ledger), words)
        except (FileMissing, SessionNotFound):
            return []  # deleted meanwhile

    def _search_any(self, session_id: str, words: tuple[str, ...]) -> builtins.list[SearchHit]:
        """One session among others: a damaged one must not hide what the others hold."""
        try:
            return self._search_one(session_id, words)
        except HarnessError as error:
            _log.warning("a session was left out of the search: %s", error)
            return []

    @property
    def _index(self) -> Path:
        return self.folder / INDEX

    def _merge(self, changes: _Changes) -> dict[str, SessionInfo]:
        """Bring index, files and changes together, while the lock is held; write the index if it was not right."""
        if not disk.is_file_or_nothing(self._index):
            disk.set_aside(self._index)
        infos, fresh = self._merged(changes, rebuild=True)
        if fresh is not None:
            disk.replace(self._index, fresh, sync=False)
        return infos

    def _merged(self, changes: _Changes, *, rebuild: bool) -> tuple[dict[str, SessionInfo], bytes | None]:
        """The list, and the bytes of its file where they are not there yet; `rebuild` sets a damaged one aside."""
        try:
            raw, known = self._read_index(rebuild)
        except SessionDamaged as error:
            _log.warning("the list of sessions %s is neither read nor written: %s", self._index, error)
            raw, known, changes = None, {}, {}
        files = session_files(self.folder)
        current = ((key, self._current(key, item, known.get(key), changes)) for key, item in files.items())
        listed = {key: found for key, found in current if found is not None}
        fresh = raw if raw is None else encode_index(listed, self._whose)
        infos = {key: found.info for key, found in listed.items()}
        unread = {key: info_of_file(key, item) for key, item in files.items() if key not in infos}
        # What was written since is seen by the time of the file, without reading it.
        seen = {key: replace(info, updated_at=max(info.updated_at, time_of(files[key]))) for key, info in infos.items()}
        seen |= unread  # not into the file: what they are called is seen once they can be read again
        return seen, fresh if fresh != raw and (infos or raw) else None

    def _read_index(self, rebuild: bool) -> tuple[bytes, dict[str, Listed]]:
        try:
            raw = disk.read(self._index)
        except FileMissing:
            return b"", {}
        known = read_index(raw, self._whose)
        if known is None and rebuild:
            aside = disk.set_aside(self._index)
            _log.warning("the list of sessions was damaged; it was kept as %s and made anew from the sessions", aside)
        return raw, known or {}

    def _current(self, key: str, item: DirItem, known: Listed | None, changes: _Changes) -> Listed | None:
        """The entry of one session among others; None where its ledger cannot be read, which is logged once."""
        noted, path = changes.get(key, ()), self.folder / item.name
        try:
            listed = known or self._list_own(key)
            for change in noted:
                listed = change.apply(listed)
            # An entry that was made just now has them all.
            more = known is not None and any(change.listed is None for change in noted)
            return counted_on(listed, path) if more else listed
        except HarnessError as error:
            if key not in self._unread:
                _log.warning("session %r is listed without its title: %s", key, error)
            self._unread.add(key)
            return None


def _some(lines: Iterator[EntryDict], files: SessionFiles, session_id: str) -> list[EntryDict]:
    """The next few lines, not many more bytes than `_AT_ONCE`; none at the end."""
    found: list[EntryDict] = []
    size = 0
    with gone_is_not_found(files, session_id):
        for line in lines:
            found.append(line)
            size += len(dumps(line["message"]))
            if size > _AT_ONCE:
                break
    return found


async def _stop(writer: asyncio.Task[None]) -> None:
    """Cancel a task and see it to its end, also one of another loop: a script's calls have a loop of their own."""
    ended: Future[None] = Future()

    def stop() -> None:
        writer.add_done_callback(lambda _: ended.set_result(None))
        writer.cancel()

    writer.get_loop().call_soon_threadsafe(stop)
    await asyncio.wait([asyncio.wrap_future(ended)], timeout=_LOCK_SECONDS)
