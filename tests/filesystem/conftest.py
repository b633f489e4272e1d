"""One filesystem of each backend, and backends that behave like the worst of their kind."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from harness.filesystem import AbstractFilesystem, FsspecFilesystem, LocalFilesystem, fsspec_tree


class Store(MemoryFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """A store in memory under a protocol of its own."""

    @classmethod
    def _strip_protocol(cls, path: str) -> Any:
        return super()._strip_protocol(path.removeprefix(f"{cls.protocol}://"))


class FailingStore(Store):
    """A store whose every third call fails, as an overloaded server."""

    protocol = "failing"
    calls = 0

    def _stumble(self) -> None:
        type(self).calls += 1
        if type(self).calls % 3 == 0:
            raise TimeoutError("the store is overloaded")

    def info(self, path: str, **options: Any) -> Any:
        self._stumble()
        return super().info(path, **options)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        self._stumble()
        return super().ls(path, detail, **options)

    def cat_file(self, path: str, *arguments: Any, **options: Any) -> Any:
        self._stumble()
        return super().cat_file(path, *arguments, **options)

    def pipe_file(self, path: str, value: bytes, **options: Any) -> Any:
        self._stumble()
        return super().pipe_file(path, value, **options)

    def cp_file(self, path1: str, path2: str, **options: Any) -> Any:
        self._stumble()
        return super().cp_file(path1, path2, **options)

    def rm_file(self, path: str) -> Any:
        self._stumble()
        return super().rm_file(path)


class KeyStore(Store):
    """A store of keys: no folders of its own, no copy, no rename, no append."""

    protocol = "keys"

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing to make."""

    def rmdir(self, path: str) -> None:
        raise NotImplementedError

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        raise NotImplementedError

    def mv(self, *arguments: Any, **options: Any) -> None:
        raise NotImplementedError


for store in (FailingStore, KeyStore):
    fsspec.register_implementation(store.protocol, store, clobber=True)

_number = itertools.count()


@pytest.fixture
def empty_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process-wide store of fsspec, emptied again afterwards; no pauses between tries."""
    monkeypatch.setattr(fsspec_tree, "_PAUSES", (0.0, 0.0))
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


BACKENDS: dict[str, Callable[[Path], AbstractFilesystem]] = {
    "local": LocalFilesystem,
    "memory": lambda _: FsspecFilesystem(f"memory://place{next(_number)}/below"),
    "file": lambda folder: FsspecFilesystem(f"file://{folder}"),
    "failing": lambda _: FsspecFilesystem(f"failing://place{next(_number)}"),
    "keys": lambda _: FsspecFilesystem(f"keys://place{next(_number)}"),
}


@pytest.fixture(params=BACKENDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, empty_memory: None) -> AbstractFilesystem:
    """A workspace on each backend."""
    return BACKENDS[request.param](tmp_path / "workspace")


@pytest.fixture
def fs(place: AbstractFilesystem) -> AbstractFilesystem:
    """A tenant's part of it."""
    return place.for_namespace(("alice",))
