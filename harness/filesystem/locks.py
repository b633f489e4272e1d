"""Locks between processes, on files.

The lock is the kernel's (`flock`) on an open descriptor: it dies with its process, and neither the
existence nor the content of the lock file means anything. `flock`, because the other kind of file
lock vanishes when any descriptor of the file is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

from harness.errors import ConfigError, PersistenceError, SessionBusy
from harness.filesystem import disk

try:
    import fcntl
except ImportError as error:
    raise ConfigError(
        "sessions on files need a POSIX system (Linux, macOS, WSL), since they are locked with flock; run it there"
    ) from error

__all__ = ["FileLock"]

_POLL = 0.025  # seconds
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class FileLock:
    """An exclusive lock on the file `path`, held by at most one `FileLock` of all processes.

    The file and its folder are made when they are missing, and stay. Not reentrant.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

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

        Raises `SessionBusy` when time is up, or at once if this object holds the lock already.
        """
        self._refuse_second_hold()
        deadline = time.monotonic() + timeout
        while not self._try_once():
            self._check_time(deadline, timeout)
            await asyncio.sleep(_POLL)

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

    def release(self) -> None:
        """Give the lock back; fine if it is not held."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        _held.discard(self)
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
        self._descriptor = descriptor
        _held.add(self)
        return True

    def _open(self) -> int:
        try:
            try:
                return os.open(self.path, _OPEN, 0o600)
            except (FileNotFoundError, NotADirectoryError):
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

    def _drop(self) -> None:
        """Close without unlocking: in a forked child the lock is the parent's."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _drop_all() -> None:
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
