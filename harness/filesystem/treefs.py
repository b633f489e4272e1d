"""The contract of `AbstractFilesystem`, done once for every `Tree`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Self

from harness.errors import ConfigError, FilesystemError
from harness.filesystem import pool
from harness.filesystem.base import AbstractFilesystem, EditResult, FileInfo, FileList, FileText, GrepResult
from harness.filesystem.editing import cut_lines, decode, encode, replace_text
from harness.filesystem.paths import Parts, PathRules, join
from harness.filesystem.searching import Search, info
from harness.filesystem.trees import Layers, Node, ReadableTree, Tree, in_the_way, missing, taken

__all__ = ["MAX_FILE_BYTES", "TreeFilesystem"]

MAX_FILE_BYTES = 10 * 2**20
_MAX_LISTED = 10_000


class TreeFilesystem(AbstractFilesystem):
    """Checks paths, reads through the layers, writes to the tenant's own tree; each method is one hop to the pool.

    Base of the filesystems of this library, for backends that can be a `Tree`.
    """

    _is_tenant = False

    def __init__(self, own: Tree, shared: Tree | None, rules: PathRules, max_file_bytes: int) -> None:
        self._own = own
        self._layers = Layers(own, shared)
        self._rules = rules
        self._max = max_file_bytes

    def with_tree(self, name: str, tree: ReadableTree) -> Self:
        """The same files with a read-only tree laid over them, whose paths begin with `name`."""
        other = copy.copy(self)
        other._layers = self._layers.with_tree(name, tree)
        return other

    async def ls(self, path: str = "") -> FileList:
        """See `AbstractFilesystem`; at most 10 000 entries."""
        return await pool.run(self._ls, self._rules.folder(path))

    async def read(self, path: str, offset: int = 0, limit: int = 0) -> FileText:
        """See `AbstractFilesystem`."""
        return await pool.run(self._read, self._rules.file(path), offset, limit)

    async def write(self, path: str, content: str) -> FileInfo:
        """See `AbstractFilesystem`."""
        return await self._own.turn(partial(self._write, self._rules.for_file(path), content))

    async def edit(self, path: str, old: str, new: str, replace_all: bool = False) -> EditResult:
        """See `AbstractFilesystem`."""
        return await self._own.turn(partial(self._edit, self._rules.file(path), old, new, replace_all))

    async def append(self, path: str, text: str) -> FileInfo:
        """See `AbstractFilesystem`."""
        return await self._own.turn(partial(self._append, self._rules.for_file(path), text))

    async def grep(self, pattern: str, path: str = "", glob: str | None = None) -> GrepResult:
        """See `AbstractFilesystem`; at most 1 000 lines, 50 000 files, 256 MB and 1.5 s."""
        if not pattern or "\n" in pattern:
            raise FilesystemError("grep looks for a text within a line; give one that is not empty and has no line end")
        return await pool.run_alone(self._own.place, self._grep, self._rules.folder(path), pattern, glob)

    async def glob(self, pattern: str, base: str = "") -> FileList:
        """See `AbstractFilesystem`; at most 1 000 files out of 50 000, and 1.5 s."""
        return await pool.run_alone(self._own.place, self._glob, self._rules.folder(base), pattern)

    async def read_bytes(self, path: str) -> bytes:
        """See `AbstractFilesystem`."""
        return await pool.run(self._layers.load, self._rules.file(path), self._max)

    async def write_bytes(self, path: str, data: bytes) -> None:
        """See `AbstractFilesystem`."""
        await pool.run(self._store, self._rules.for_file(path), data, exclusive=False)

    async def delete(self, path: str) -> bool:
        """See `AbstractFilesystem`."""
        return await pool.run(self._delete, self._rules.file(path))

    async def move(self, source: str, target: str) -> None:
        """See `AbstractFilesystem`."""
        await pool.run(self._move, self._rules.file(source), self._rules.file(target))

    async def exists(self, path: str) -> bool:
        """See `AbstractFilesystem`."""
        parts = self._rules.folder(path)
        return not parts or await pool.run(self._layers.stat, parts) is not None

    @property
    def folder(self) -> Path | None:
        """The folder on this machine in which the files are; None for any other place."""
        root = getattr(self._own, "root", None)
        return root if isinstance(root, Path) else None

    async def clear(self) -> tuple[Node, ...]:
        """Remove everything that a tenant has here, what no path of a tool reaches too; the files there were.

        Raises `ConfigError` for a workspace, which is many tenants', and `FilesystemError`.
        """
        if not self._is_tenant:
            raise ConfigError("only one tenant's part is cleared; give for_namespace the tenant first")
        return await pool.run(_clear, self._own)

    def _ls(self, parts: Parts) -> FileList:
        nodes = [node for node in self._layers.children(parts) if self._rules.shows(node.parts)]
        return FileList(tuple(info(node) for node in nodes[:_MAX_LISTED]), len(nodes) > _MAX_LISTED)

    def _read(self, parts: Parts, offset: int, limit: int) -> FileText:
        path = join(parts)
        return cut_lines(path, decode(path, self._layers.load(parts, self._max)), offset, limit)

    def _write(self, parts: Parts, content: str) -> FileInfo:
        data = encode(join(parts), content)
        if self._layers.stat(parts):
            raise taken(parts)
        self._store(parts, data, exclusive=True)
        return self._stat(parts)

    def _edit(self, parts: Parts, old: str, new: str, every: bool) -> EditResult:
        path = join(parts)
        text = decode(path, self._layers.load(parts, self._max))
        changed, count = replace_text(path, text, old, new, every, self._max)
        self._store(parts, encode(path, changed), exclusive=False)
        return EditResult(path, count)

    def _append(self, parts: Parts, text: str) -> FileInfo:
        data = encode(join(parts), text)
        self._layers.refuse_laid_over(parts)
        if self._own.stat(parts) is None and self._layers.stat(parts) is not None:
            # A shared definition: the tenant gets a copy of its own, as with an edit.
            self._store(parts, self._layers.load(parts, self._max) + data, exclusive=False)
        else:
            self._own.extend(parts, data, self._max)
        return self._stat(parts)

    def _grep(self, parts: Parts, text: str, pattern: str | None) -> GrepResult:
        return self._search().grep(parts, text, pattern)

    def _glob(self, parts: Parts, pattern: str) -> FileList:
        return self._search().glob(parts, pattern)

    def _store(self, parts: Parts, data: bytes, *, exclusive: bool) -> None:
        self._layers.refuse_laid_over(parts)
        if len(data) > self._max:
            raise FilesystemError(f"{join(parts)} would have {len(data)} bytes, the most is {self._max}; write less")
        self._own.store(parts, data, exclusive=exclusive)

    def _delete(self, parts: Parts) -> bool:
        self._layers.refuse_shared(parts)
        return self._own.discard(parts)

    def _move(self, source: Parts, target: Parts) -> None:
        self._layers.refuse_shared(source)
        self._layers.refuse_laid_over(target)
        self._rules.check_kind(target, is_dir=self._stat(source).is_dir)
        if target[: len(source)] == source and target != source:
            raise FilesystemError(f"{join(source)} cannot be moved into itself; choose another target")
        there = self._own.stat(target)
        if there and there.is_dir and target != source:
            raise in_the_way(target, is_dir=True)
        if target != source:
            self._own.shift(source, target)

    def _stat(self, parts: Parts) -> FileInfo:
        node = self._own.stat(parts)
        if node is None:
            raise missing(parts)
        return info(node)

    def _search(self) -> Search:
        return Search(self._layers, self._rules.shows, self._max)


def _clear(tree: Tree) -> tuple[Node, ...]:
    files = tuple(_files(tree, ()))
    tree.discard(())
    return files


def _files(tree: Tree, parts: Parts) -> Iterator[Node]:
    for node in tree.children(parts):
        if node.is_dir:
            yield from _files(tree, node.parts)
        else:
            yield node
