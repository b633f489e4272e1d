"""Locks between processes, on files.

The lock is the kernel's (`flock`) on an open descriptor: it dies with its process, and neither the
existence nor the content of the lock file means anything. `flock`, because the other kind of file
lock vanishes when any descriptor of the file is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import threading
import time
import warnings
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from harness.errors import ConfigError, FileMissing, PersistenceError, RemovalUnfinished, SessionBusy
from harness.filesystem import disk, pool

try:
    import fcntl
except ImportError as error:
    raise ConfigError(
        "sessions on files need a POSIX system (Linux, macOS, WSL), since they are locked with flock; run it there"
    ) from error

__all__ = ["FileLock", "is_up"]

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("harness.filesystem.locks")
_POLL = 0.025  # seconds
_PATIENCE = 1.0
"""Seconds of waiting after which the log says what for."""
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class FileLock:
    """An exclusive lock on the file `path`, held by at most one `FileLock` of all processes.

    The file and its folder, with `sync` durably, are made when they are missing, and stay. Not reentrant. With
    `in_folder` the folder must be there, for whoever makes it in a way of its own: a missing one is `FileMissing`.
    Nothing waits for a lock in a worker: a full pool of waiters would stop everyone. While another `FileLock` holds
    the file `barrier` this one is not had, and where that file says that its holder was cut off, `RemovalUnfinished`.
    """

    def __init__(self, path: Path, *, in_folder: bool = False, sync: bool = False, barrier: Path | None = None) -> None:
        self.path = path
        self.held = False
        """Whether this object holds the lock now; set here alone. No property: every line of a turn asks for it."""
        self._name = str(path)
        self._in_folder = in_folder
        self._sync = sync
        self._barrier = None if barrier is None else str(barrier)
        self._descriptor = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._at_work = 0
        self._leaving = False

    def __del__(self) -> None:
        if getattr(self, "held", False):
            self.release()  # first: a warning may be made an error
            warnings.warn(f"the lock {self.path} was never released", ResourceWarning, source=self, stacklevel=2)

    async def acquire(self, timeout: float) -> None:
        """Take the lock, waiting up to `timeout` seconds without blocking the event loop.

        Where that loop is closed before the lock is released, it goes to who asks for it next in this process.
        Raises `SessionBusy` when time is up, or at once if this object holds the lock already, and `PersistenceError`.
        """
        if not self.take():
            await self._wait(timeout)
        self._loop = asyncio.get_running_loop()

    @contextlib.asynccontextmanager
    async def held_for(self, timeout: float) -> AsyncIterator[FileLock]:
        """Hold the lock for the block, in which workers do with `work` what needs it; waits and raises as `acquire`."""
        await self.acquire(timeout)
        try:
            yield self
        finally:
            self.release()

    async def run(self, timeout: float, what: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something in a worker that takes the lock and gives it back; what waits up to `timeout` seconds is this.

        Raises `SessionBusy` when time is up, with nothing done, and `PersistenceError`.
        """
        deadline = time.monotonic() + timeout
        work = functools.partial(what, *args, **kwargs)
        while (done := await pool.run(self._do_if_free, work)) is None:
            self._check_time(deadline, timeout)
            await asyncio.sleep(_POLL)
        return done[0]

    def take(self) -> bool:
        """Take the lock if it is free, without waiting; whether it was.

        One whose event loop was closed is free: nobody is left to release it. Raises `SessionBusy` if this object
        holds it already.
        """
        if self.held:
            raise SessionBusy(f"this object holds the lock {self.path} already; release it first")
        return self._try_once() or self._try_lost()

    def work(self, what: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do in a worker what needs the lock, which stays for so long. Raises `PersistenceError` if it is gone."""
        with _guard.lock:
            if not self.held:
                raise PersistenceError(
                    f"the lock {self.path} went to another call, since the event loop of this one was closed; "
                    "nothing was written: call again"
                )
            self._at_work += 1
        try:
            return what(*args, **kwargs)
        finally:
            with _guard.lock:
                self._at_work -= 1
                is_left = self._leaving and not self._at_work
            if is_left:
                self.release()

    def release(self) -> None:
        """Give the lock back, once a worker that is at what needs it has ended; fine if it is not held."""
        with _guard.lock:
            self._leaving = self._at_work > 0
            if not self.held or self._leaving:
                return
            descriptor = self._let_go()
            _held.pop(id(self), None)
        self._loop = None
        try:
            # A forked child may still own a copy of the descriptor: closing ours would not unlock.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def unlink_and_release(self) -> None:
        """Remove the lock file while holding it, then release. Only for deleting what it guards.

        Those who wait on the removed file notice, and go to the new one of the same name.
        """
        if not self.held:
            raise SessionBusy(f"{self.path} can be removed only by the holder of its lock; acquire it first")
        try:
            disk.remove(self.path)
        finally:
            self.release()

    def _do_if_free(self, work: Callable[[], T]) -> tuple[T] | None:
        if not self.take():
            return None
        try:
            return (work(),)
        finally:
            self.release()

    async def _wait(self, timeout: float) -> None:
        tell_at = time.monotonic() + _PATIENCE
        deadline = time.monotonic() + timeout
        is_taken = False
        while not is_taken:
            self._check_time(deadline, timeout)
            if time.monotonic() >= tell_at:
                _log.info(
                    "waiting up to %s for the lock %s, which another process or call holds",
                    _told(timeout),
                    self._hindrance(),
                )
                tell_at = deadline
            await asyncio.sleep(_POLL)
            is_taken = self._try_once() or self._try_lost()

    def _try_lost(self) -> bool:
        return _free_lost(self._name) and self._try_once()

    def _try_once(self) -> bool:
        descriptor = self._open()
        try:
            # In this order: who put the barrier up looks at the locks behind it, and then moves them away.
            if not _lock_now(descriptor, self.path) or self._is_barred() or not _is_at(descriptor, self._name):
                os.close(descriptor)
                return False
        except BaseException:
            os.close(descriptor)
            raise
        with _guard.lock:
            self._descriptor, self.held = descriptor, True
            _held[id(self)] = weakref.ref(self)
        return True

    def _is_barred(self) -> bool:
        return self._barrier is not None and is_up(self._barrier)

    def _open(self) -> int:
        try:
            try:
                return os.open(self._name, _OPEN, 0o600)
            except (FileNotFoundError, NotADirectoryError) as error:
                if self._in_folder:
                    raise FileMissing(f"{self.path.parent} is no folder; make it, then take the lock") from error
                disk.make_folder(self.path.parent, sync=self._sync)
                return os.open(self._name, _OPEN, 0o600)
        except OSError as error:
            raise PersistenceError(
                f"cannot open the lock file {self.path}: {error.strerror}; give this process access to its folder"
            ) from error

    def _check_time(self, deadline: float, timeout: float) -> None:
        if time.monotonic() >= deadline:
            raise SessionBusy(
                f"another process or call holds the lock {self._hindrance()} and did not release it within "
                f"{_told(timeout)}; try again when it has ended"
            )

    def _hindrance(self) -> str:
        return f"{self._barrier} (the user is being removed)" if self._is_barred() else self._name

    def _is_lost(self, path: str) -> bool:
        closed = self._loop is not None and self._loop.is_closed()
        # By the file itself: one place has many spellings, and a folder that was swapped has the same one.
        return closed and not self._at_work and _is_at(self._descriptor, path)

    def _drop(self) -> None:
        """Close without unlocking: in a forked child the lock is the parent's."""
        os.close(self._let_go())

    def _let_go(self) -> int:
        descriptor, self._descriptor, self.held = self._descriptor, -1, False
        return descriptor


class _Guard:
    """Keeps threads from changing what is held at the same time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a lock may be collected, and released, while another one is taken


_held: dict[int, weakref.ref[FileLock]] = {}
"""By the id of the lock. References that keep nothing alive: a lock that was forgotten warns, and is released."""
_guard = _Guard()


def _all_held() -> list[FileLock]:
    # A lock may be collected, and so leave, in every step of this.
    return [lock for known in list(_held.values()) if (lock := known()) is not None]


def _free_lost(path: str) -> bool:
    """Release a lock of this process whose event loop was closed: nobody is left to do it. Whether there was one."""
    with _guard.lock:
        lost = [lock for lock in _all_held() if lock._is_lost(path)]
        for lock in lost:
            _log.warning("the lock %s is taken from a call that was lost: its event loop was closed", path)
            lock.release()
    return bool(lost)


def _drop_all() -> None:
    _guard.lock = threading.RLock()  # another thread of the parent may have held it
    for lock in _all_held():
        lock._drop()
    _held.clear()


os.register_at_fork(after_in_child=_drop_all)


def _lock_now(descriptor: int, path: Path, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise PersistenceError(
            f"cannot lock {path}: {error.strerror}; put the workspace on a file system that has flock"
        ) from error
    return True


def is_up(barrier: str) -> bool:
    """Whether somebody holds the lock on this file. Blocking, for a moment.

    One that nobody holds is of no account while it is empty. Raises `RemovalUnfinished` if it is not: its holder had
    begun what must be finished.
    """
    try:
        descriptor = os.open(barrier, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise PersistenceError(
            f"cannot open the lock file {barrier}: {error.strerror}; give this process access to its folder"
        ) from error
    try:
        # Shared: those who only look do not hinder each other.
        if not _lock_now(descriptor, Path(barrier), fcntl.LOCK_SH):
            return True
        # A removal that ended since leaves its byte in a file that stands behind nothing any more.
        if _is_at(descriptor, barrier) and os.fstat(descriptor).st_size:
            raise RemovalUnfinished(
                f"the removal of the user whose files are in {Path(barrier).parents[1]} was begun and cut off; "
                "delete the user once more, and it is finished"
            )
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child forked just now has a copy of the descriptor
        return False
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    """Whether the locked file is still the one at `path`: its last holder may have removed it."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    ours = os.fstat(descriptor)
    return (ours.st_ino, ours.st_dev) == (there.st_ino, there.st_dev)


def _told(timeout: float) -> str:
    """Seconds as somebody set them: what is left of them may be some microseconds less."""
    return f"{round(timeout, 2):g} s"
