"""Where an export goes: what may give way to it, and files that are there whole or as they were."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ConfigError, FileExists
from harness.filesystem import disk
from harness.filesystem.lowlevel import temporary_name
from harness.transcripts.formats import format_named
from harness.transcripts.reader import Transcript
from harness.transcripts.source import is_folder

__all__ = ["WrittenFile", "check_free", "check_plain", "in_its_place", "put", "spare_source"]


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that an export wrote."""

    path: Path
    bytes: int
    sha256: str


def check_free(place: Path, *, wants_folder: bool, overwrite: bool) -> None:
    """Nothing is lost by an export: what is there already is in the way. Raises `FileExists`."""
    is_there = disk.mark(place) is not None
    is_a_folder = is_there and is_folder(place)
    if is_there and is_a_folder != wants_folder:
        wanted = "a folder" if wants_folder else "a file"
        raise FileExists(f"{place} is in the way: {wanted} is to be written there; name another place")
    is_full = bool(disk.list_folder(place)) if is_a_folder else is_there
    if is_full and not overwrite:
        raise FileExists(f"{place} is there already; name another place, or say that it may be overwritten")


def check_plain(*places: Path) -> None:
    """Only files give way to files: a device, a pipe or a link would be gone, and what it led to not written."""
    for place in places:
        if not disk.is_file_or_nothing(place):
            raise FileExists(f"{place} is no plain file and stays as it is; name another place")


def spare_source(transcript: Transcript, *places: Path) -> None:
    """What is being read is not overwritten, not even where that was allowed: the copy holds less than it.

    Raises `ConfigError`.
    """
    own = {path.resolve() for path in format_named(transcript.format).files(transcript.source)}
    for place in places:
        if place.resolve() in own:
            raise ConfigError(f"{place} is of the session that is read and stays as it is; name another place")


def put(folder: Path, files: Mapping[Path, bytes], gone: Iterable[Path], *, overwrite: bool) -> tuple[WrittenFile, ...]:
    """Write files in or below a folder, and take away those of an earlier export that are not among them.

    All of them lie whole in the folder before the first is moved to its place: what ends this sooner, a kill or a
    full disk, leaves what was there. Raises `FileExists` where one is in the way, `PersistenceError`.
    """
    if not overwrite:
        return _new(files)
    staged: dict[Path, Path] = {}
    try:
        for path, data in files.items():
            disk.make_folder(path.parent)
            staged[path] = folder / temporary_name()
            disk.replace(staged[path], data, sync=False)
        for path in files:
            disk.rename(staged.pop(path), path)
    finally:
        _remove(staged.values())
    _remove(path for path in gone if path not in files and disk.is_file_or_nothing(path))
    return _told(files)


@contextmanager
def in_its_place(place: Path, *, overwrite: bool) -> Iterator[Path]:
    """Where the block writes one file, which is at `place` once it is whole. Raises `FileExists`."""
    check_free(place, wants_folder=False, overwrite=overwrite)
    check_plain(place)
    disk.make_folder(place.parent)
    if not overwrite:
        yield place
        return
    staged = place.parent / temporary_name()
    try:
        yield staged
        disk.rename(staged, place)
    finally:
        _remove([staged])


def _new(files: Mapping[Path, bytes]) -> tuple[WrittenFile, ...]:
    """Files that were not there; all of them or, where one cannot be written, none."""
    made: list[Path] = []
    try:
        for path, data in files.items():
            disk.make_folder(path.parent)
            if not disk.create(path, data, sync=False):
                raise FileExists(f"{path} appeared while it was about to be written; name another place")
            made.append(path)
    except BaseException:
        _remove(made)
        raise
    return _told(files)


def _told(files: Mapping[Path, bytes]) -> tuple[WrittenFile, ...]:
    return tuple(WrittenFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items())


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        disk.remove(path)
