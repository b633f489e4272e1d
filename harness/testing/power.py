"""A power cut at any moment: record what a conversation does to the disk, then make the disks that may be left.

    recorder = DiskRecorder(workspace)
    with recorder.recording():
        …                               # a conversation
        recorder.promise(turn)          # from here on this turn must not be lost
    for point in range(recorder.points + 1):
        recorder.leave(point, Loss(seed=point), place)      # the disk after a power cut at that point
        …                               # open it, compare with recorder.promised(point)

What was synced is there: the bytes of a file by a sync of the file, its name by a sync of its folder.
Of the rest anything may be there or not, each file and folder for itself: later writes of one file while
earlier ones of another are lost, names without bytes, bytes without names, half a write at the end.
Bytes may only be missing from the end of a file, unless `Loss(holes=True)`.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ConfigError
from harness.filesystem import disk

__all__ = ["DiskRecorder", "Loss"]


@dataclass(frozen=True, slots=True)
class Loss:
    """What a power cut takes of that which was not synced: all of it, or for a `seed` something at random.

    holes  a file may also lose bytes before others that stay; there are zeros then
    """

    seed: int | None = None
    holes: bool = False


@dataclass(frozen=True, slots=True)
class _Op:
    """One operation. `file` is its number; a folder is known by its path. `data` is None for a cut."""

    kind: str
    file: int = -1
    path: Path = Path()
    target: Path = Path()
    offset: int = 0
    data: bytes | None = None

    @property
    def folder(self) -> Path:
        return (self.target if self.kind == "rename" else self.path).parent


@dataclass(slots=True)
class _Open:
    """What is known of a descriptor."""

    file: int = -1
    folder: Path | None = None
    append: bool = False
    offset: int = 0


@dataclass(slots=True)
class _Disk:
    """The state while it is recorded: numbers by path, and the size of each file."""

    files: dict[Path, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    open: dict[int, _Open] = field(default_factory=dict)

    def new_file(self, path: Path) -> int:
        self.sizes.append(0)
        self.files[path] = len(self.sizes) - 1
        return self.files[path]


_WATCHED = ("open", "close", "write", "fdatasync", "fsync", "ftruncate", "mkdir", "rmdir", "link", "unlink")
_RENAMES = ("replace", "rename")


class DiskRecorder:
    """Records every change below a folder that does not exist yet; one recorder, one recording."""

    def __init__(self, root: Path) -> None:
        if disk.mark(root) is not None:
            raise ConfigError(f"{root} is there already; a recording begins with nothing")
        self._root = root
        self._ops: list[_Op] = []
        self._promises: list[tuple[int, Any]] = []
        self._disk = _Disk()
        self._lock = threading.RLock()

    @property
    def points(self) -> int:
        """How many changes were made; a cut can come before the first and after each."""
        return len(self._ops)

    def promise(self, what: Any) -> None:
        """Say that what happened so far has been promised to somebody."""
        with self._lock:
            self._promises.append((len(self._ops), what))

    def promised(self, point: int) -> list[Any]:
        """What was promised before a point."""
        return [what for at, what in self._promises if at <= point]

    def describe(self, point: int) -> str:
        """The last change before a point, for messages."""
        if not point:
            return "nothing yet"
        op = self._ops[point - 1]
        return f"{op.kind} {op.target if op.kind == 'rename' else op.path}"

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Stand in for the functions of `os` by which the library changes what is on disk."""
        real = {name: getattr(os, name) for name in (*_WATCHED, *_RENAMES)}
        for name, function in real.items():
            note = getattr(self, "_rename" if name in _RENAMES else f"_{name}")
            setattr(os, name, self._stand_in(function, note))
        try:
            yield
        finally:
            for name, function in real.items():
                setattr(os, name, function)

    def _stand_in(self, real: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def stand_in(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                result = real(*arguments, **options)
                note(result, *arguments)
                return result

        return stand_in

    # ---- noting; the first argument is what the real function gave

    def _ours(self, path: Any) -> bool:
        return not isinstance(path, int) and Path(path).is_relative_to(self._root.parent)

    def _open(self, descriptor: int, path: Any, flags: int, *_: Any) -> None:
        self._disk.open.pop(descriptor, None)  # of a file that was closed by other means
        if not self._ours(path):
            return
        path = Path(path)
        if flags & getattr(os, "O_DIRECTORY", 0):
            self._disk.open[descriptor] = _Open(folder=path)
            return
        file = self._disk.files.get(path)
        if file is None and flags & os.O_CREAT:
            file = self._disk.new_file(path)
            self._ops.append(_Op("create", file, path))
        if file is not None:
            self._disk.open[descriptor] = _Open(file, append=bool(flags & os.O_APPEND))

    def _close(self, _: None, descriptor: int) -> None:
        self._disk.open.pop(descriptor, None)

    def _write(self, count: int, descriptor: int, data: Any) -> None:
        place = self._disk.open.get(descriptor)
        if place is None or place.file < 0:
            return
        offset = self._disk.sizes[place.file] if place.append else place.offset
        self._ops.append(_Op("write", place.file, self._path(place.file), offset=offset, data=bytes(data[:count])))
        place.offset = offset + count
        self._disk.sizes[place.file] = max(self._disk.sizes[place.file], place.offset)

    def _ftruncate(self, _: None, descriptor: int, size: int) -> None:
        place = self._disk.open.get(descriptor)
        if place is not None:
            self._ops.append(_Op("cut", place.file, self._path(place.file), offset=size))
            self._disk.sizes[place.file] = size

    def _fsync(self, _: None, descriptor: int) -> None:
        place = self._disk.open.get(descriptor)
        if place is not None and place.folder is not None:
            self._ops.append(_Op("sync names", path=place.folder / "*"))
        elif place is not None:
            self._ops.append(_Op("sync", place.file, self._path(place.file)))

    _fdatasync = _fsync

    def _mkdir(self, _: None, path: Any, *__: Any) -> None:
        if self._ours(path):
            self._ops.append(_Op("mkdir", path=Path(path)))

    def _rmdir(self, _: None, path: Any, *__: Any) -> None:
        if self._ours(path):
            self._ops.append(_Op("rmdir", path=Path(path)))

    def _link(self, _: None, source: Any, target: Any) -> None:
        if self._ours(target):
            file = self._disk.files[Path(source)]
            self._disk.files[Path(target)] = file
            self._ops.append(_Op("create", file, Path(target)))

    def _unlink(self, _: None, path: Any) -> None:
        if self._ours(path) and self._disk.files.pop(Path(path), None) is not None:
            self._ops.append(_Op("unlink", path=Path(path)))

    def _rename(self, _: None, source: Any, target: Any) -> None:
        if self._ours(target) and (file := self._disk.files.pop(Path(source), None)) is not None:
            self._disk.files[Path(target)] = file
            self._ops.append(_Op("rename", file, Path(source), Path(target)))

    def _path(self, file: int) -> Path:
        return next((path for path, number in self._disk.files.items() if number == file), Path("unlinked"))

    # ---- leaving

    def leave(self, point: int, loss: Loss, place: Path) -> None:
        """Make what is left of the recorded folder after a power cut at a point; `place` must not exist."""
        chance = random.Random(loss.seed)  # noqa: S311 - for choosing, not for secrets
        done = self._ops[:point]
        names = _names(_kept_names(done, chance, loss))
        contents = {file: _content(done, file, chance, loss) for file in sorted({*names.values()} - {-1})}
        for path in sorted(names):
            there = place.joinpath(*path.relative_to(self._root).parts)
            if names[path] < 0:
                disk.make_folder(there)
            elif disk.mark(there.parent) is not None:
                disk.create(there, contents[names[path]], sync=False)


_NAMING = frozenset({"create", "unlink", "rename", "mkdir", "rmdir"})


def _kept_names(done: Sequence[_Op], chance: random.Random, loss: Loss) -> list[_Op]:
    """The changes of names that are left, in order: of each folder the synced ones and some that followed."""
    synced = {op.folder: at for at, op in enumerate(done) if op.kind == "sync names"}
    later: dict[Path, list[int]] = {}
    for at, op in enumerate(done):
        if op.kind in _NAMING and at > synced.get(op.folder, -1):
            later.setdefault(op.folder, []).append(at)
    lost = {at for ats in later.values() for at in ats[_some(len(ats), chance, loss) :]}
    return [op for at, op in enumerate(done) if op.kind in _NAMING and at not in lost]


def _names(ops: Sequence[_Op]) -> dict[Path, int]:
    """What stands under each path: the number of a file, or -1 for a folder."""
    names: dict[Path, int] = {}
    for op in ops:
        if op.kind in ("unlink", "rmdir"):
            names.pop(op.path, None)
        else:
            names.pop(op.path, None)
            names[op.target if op.kind == "rename" else op.path] = op.file
    return {path: file for path, file in names.items() if _has_folders(path, names, ops)}


def _has_folders(path: Path, names: dict[Path, int], ops: Sequence[_Op]) -> bool:
    made = {op.path for op in ops if op.kind == "mkdir"}
    top = min((len(op.path.parts) for op in ops if op.kind == "mkdir"), default=0)
    return all(parent in names for parent in path.parents if len(parent.parts) >= top and (made or parent in names))


def _content(done: Sequence[_Op], file: int, chance: random.Random, loss: Loss) -> bytes:
    """The bytes of a file: what was synced, and some of what followed, the last piece perhaps in part."""
    synced = max((at for at, op in enumerate(done) if op.kind == "sync" and op.file == file), default=-1)
    changes = [(at, op) for at, op in enumerate(done) if op.file == file and op.kind in ("write", "cut")]
    later = [op for at, op in changes if at > synced]
    kept = later[: _some(len(later), chance, loss)]
    if loss.holes and loss.seed is not None:
        kept = [op for op in kept if chance.random() < 0.7]
    data = bytearray()
    for op in [*(op for at, op in changes if at <= synced), *kept]:
        _apply(data, op, torn=op is (kept[-1] if kept else None) and loss.seed is not None, chance=chance)
    return bytes(data)


def _apply(data: bytearray, op: _Op, *, torn: bool, chance: random.Random) -> None:
    if op.data is None:
        del data[op.offset :]
        return
    piece = op.data[: chance.randint(0, len(op.data))] if torn and chance.random() < 0.3 else op.data
    data.extend(bytes(max(0, op.offset - len(data))))
    data[op.offset : op.offset + len(piece)] = piece


def _some(count: int, chance: random.Random, loss: Loss) -> int:
    """How many of the unsynced changes are left."""
    return 0 if loss.seed is None else chance.choice((0, count, chance.randint(0, count)))
