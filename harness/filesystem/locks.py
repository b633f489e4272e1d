"""Locks between processes, on files.

The lock is the kernel's (`flock`) on an open descriptor: it dies with its process, and neither the
existence nor the content of the lock file means anything. `flock`, because the other kind of file
lock vanishes when any descriptor of the file is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from harness.errors import ConfigError, FileMissing, PersistenceError, SessionBusy
from harness.filesystem import disk

try:
    import fcntl
except ImportError as error:
    raise ConfigError(
        "sessions on files need a POSIX system (Linux, macOS, WSL), since they are locked with flock; run it there"
    ) from error

__all__ = ["FileLock"]

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("harness.filesystem.locks")
_POLL = 0.025  # seconds
_PATIENCE = 1.0
"""Seconds of waiting after which the log says what for."""
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class FileLock:
    """An exclusive lock on the file `path`, held by at most one `FileLock` of all processes.

    The file and its folder are made when they are missing, and stay. Not reentrant. With `in_folder` the
    folder must be there, for whoever makes it in a way of its own: a missing one is `FileMissing`.
    """

    def __init__(self, path: Path, *, in_folder: bool = False) -> None:
        self.path = path
        self._in_folder = in_folder
        self._descriptor = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._at_work = 0
        self._leaving = False

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            warnings.warn(f"the lock {self.path} was never released", ResourceWarning, source=self, stacklevel=2)
            self.release()

    @property
    def held(self) -> bool:
        """Whether this object holds the lock now."""
        return self._descriptor >= 0

    async def acquire(self, timeout: float) -> None:
        """Take the lock, waiting up to `timeout` seconds without blocking the event loop.

        Where that loop is closed before the lock is released, it goes to who asks for it next in this process.
        Raises `SessionBusy` when time is up, or at once if this object holds the lock already, and `PersistenceError`.
        """
        self._refuse_second_hold()
        tell_at = time.monotonic() + _PATIENCE
        deadline = time.monotonic() + timeout
        while not self._try_once() and not (_free_lost(self.path) and self._try_once()):
            self._check_time(deadline, timeout)
            if time.monotonic() >= tell_at:
                _log.info("waiting up to %g s for the lock %s, which another process or call holds", timeout, self.path)
                tell_at = deadline
            await asyncio.sleep(_POLL)
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def hold(self, timeout: float) -> Iterator[None]:
        """Hold the lock for a short critical section in a worker thread; blocks, so never on an event loop.

        Raises `SessionBusy` when the lock is not had within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not self.take():
            self._check_time(deadline, timeout)
            time.sleep(_POLL)
        try:
            yield
        finally:
            self.release()

    def take(self) -> bool:
        """Take the lock if it is free, without waiting; whether it was.

        Raises `SessionBusy` if this object holds it already.
        """
        self._refuse_second_hold()
        return self._try_once()

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
            if self._descriptor < 0 or self._leaving:
                return
            descriptor, self._descriptor = self._descriptor, -1
            _held.discard(self)
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

    def _try_once(self) -> bool:
        descriptor = self._open()
        try:
            if not _lock_now(descriptor, self.path) or not _is_at(descriptor, self.path):
                os.close(descriptor)
                return False
        except BaseException:
            os.close(descriptor)
            raise
        with _guard.lock:
            self._descriptor = descriptor
            _held.add(self)
        return True

    def _open(self) -> int:
        try:
            try:
                return os.open(self.path, _OPEN, 0o600)
            except (FileNotFoundError, NotADirectoryError) as error:
                if self._in_folder:
                    raise FileMissing(f"{self.path.parent} is no folder; make it, then take the lock") from error
                disk.make_folder(self.path.parent)
                return os.open(self.path, _OPEN, 0o600)
        except OSError as error:
            raise PersistenceError(
                f"cannot open the lock file {self.path}: {error.strerror}; give this process access to its folder"
            ) from error

    def _refuse_second_hold(self) -> None:
        if self.held:
            raise SessionBusy(f"this object holds the lock {self.path} already; release it first")

    def _check_time(self, deadline: float, timeout: float) -> None:
        if time.monotonic() >= deadline:
            raise SessionBusy(
                f"another process or call holds the lock {self.path} and did not release it within {timeout:g} s; "
                "try again when it has ended"
            )

    def _is_lost(self, path: Path) -> bool:
        closed = self._loop is not None and self._loop.is_closed()
        return closed and self.path == path and not self._at_work

    def _drop(self) -> None:
        """Close without unlocking: in a forked child the lock is the parent's."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


class _Guard:
    """Keeps threads from changing what is held at the same time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a lock may be collected, and released, while another one is taken


_held: weakref.WeakSet[FileLock] = weakref.WeakSet()
_guard = _Guard()


def _free_lost(path: Path) -> bool:
    """Release a lock of this process whose event loop was closed: nobody is left to do it. Whether there was one."""
    with _guard.lock:
        lost = [lock for lock in _held if lock._is_lost(path)]
        for lock in lost:
            _log.warning("the lock %s is taken from a call that was lost: its event loop was closed", path)
            lock.release()
    return bool(lost)


def _drop_all() -> None:
    _guard.lock = threading.RLock()  # another thread of the parent may have held it
    for lock in list(_held):
        lock._drop()
    _held.clear()


os.register_at_fork(after_in_child=_drop_all)


def _lock_now(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise PersistenceError(
            f"cannot lock {path}: {error.strerror}; put the workspace on a file system that has flock"
        ) from error
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one at `path`: its last holder may have removed it."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    ours = os.fstat(descriptor)
    return (ours.st_ino, ours.st_dev) == (there.st_ino, there.st_dev)
