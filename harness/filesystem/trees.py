"""What a backend has to do, so that everything else is written once.

A tree does blocking work on checked paths. Its errors are those of `AbstractFilesystem` and name
paths relative to the root, never where the root is: they are shown to models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from harness.errors import FileExists, FileMissing, FilesystemError, PathRefused
from harness.filesystem.paths import Parts, join

__all__ = [
    "SHARED",
    "Layers",
    "Node",
    "ReadableTree",
    "Tree",
    "in_the_way",
    "is_folder",
    "loadable",
    "missing",
    "taken",
    "too_large",
]

T = TypeVar("T")

SHARED = frozenset({"AGENTS.md", "knowledge", "skills", "subagents"})
"""First names that every tenant sees, read-only, unless it has a file of its own there."""


@dataclass(frozen=True, slots=True)
class Node:
    """A file or folder of a tree; size in bytes, `modified` in RFC 3339 or ''."""

    parts: Parts
    is_dir: bool
    size: int
    modified: str


class ReadableTree(Protocol):
    """Files below one root that can be looked at. Blocking."""

    def stat(self, parts: Parts) -> Node | None:
        """What is there; None for nothing."""

    def children(self, parts: Parts) -> Iterable[Node]:
        """What is in a folder, in any order, without links. `FileMissing` if there is none; a missing root is empty."""

    def load(self, parts: Parts, limit: int) -> bytes:
        """A whole file; `FilesystemError` if it has more than `limit` bytes."""


class Tree(ReadableTree, Protocol):
    """The same for reading and writing. Links are refused (`PathRefused`), in the middle of a path too.

    `place` says where the tree is, the same for all that are there.
    """

    place: str

    def store(self, parts: Parts, data: bytes, *, exclusive: bool) -> None:
        """Write a whole file and the folders above it; if `exclusive`, `FileExists` when the name is taken."""

    def extend(self, parts: Parts, data: bytes, limit: int) -> int:
        """Add to the end of a file, made if need be, as a whole or not at all; the new size.

        `FilesystemError` if it would have more than `limit` bytes. Called while `turn` is held.
        """

    def discard(self, parts: Parts) -> bool:
        """Remove a file, a link, or a folder and all in it, the root too; False for nothing."""

    def shift(self, source: Parts, target: Parts) -> None:
        """Rename, replacing a file but no folder."""

    async def turn(self, work: Callable[[], T]) -> T:
        """Do in a worker what reads a file, changes it and writes it back, so that such changes take turns.

        What waits is this, not a worker: a pool full of waiters would stop every tenant. `FilesystemError` when it
        has waited too long, with nothing done.
        """


class Layers:
    """Reading through a tenant's own tree onto the shared definitions behind it.

    `laid_over` has, by first name, read-only trees in front of both: what they hold hides what else
    has that path, and nobody changes it. A path within them begins with that name.
    """

    def __init__(self, own: Tree, shared: Tree | None, laid_over: Mapping[str, ReadableTree] | None = None) -> None:
        self._own = own
        self._shared = shared
        self._laid_over = dict(laid_over or {})

    def with_tree(self, name: str, tree: ReadableTree) -> Layers:
        """These layers with one more tree laid over them."""
        return Layers(self._own, self._shared, {**self._laid_over, name: tree})

    def stat(self, parts: Parts) -> Node | None:
        """What is there, the tenant's own first."""
        over = self._over(parts)
        found = (over.stat(parts) if over else None) or self._own.stat(parts)
        if found is None and (shared := self._behind(parts)):
            found = shared.stat(parts)
        return found

    def children(self, parts: Parts) -> list[Node]:
        """All folders of that path as one, by name. Raises `FileMissing` if there is none."""
        behind, over = self._shared_children(parts), self._children_over(parts)
        others = behind is not None or over is not None
        alone = others and bool(parts) and self._own.stat(parts) is None
        own = [] if alone else self._own.children(parts)
        found = {node.parts[-1]: node for nodes in (behind or (), own, over or ()) for node in nodes}
        return [found[name] for name in sorted(found)]

    def load(self, parts: Parts, limit: int) -> bytes:
        """The file in front: one laid over, else the tenant's, else the shared one."""
        over, shared = self._over(parts), self._behind(parts)
        if over is not None and over.stat(parts) is not None:
            return over.load(parts, limit)
        if shared is None or self._own.stat(parts) is not None:
            return self._own.load(parts, limit)
        return shared.load(parts, limit)

    def refuse_shared(self, parts: Parts) -> None:
        """Raise `PathRefused` if only the shared definitions have this path: nobody removes those."""
        self.refuse_laid_over(parts)
        shared = self._behind(parts)
        if shared and self._own.stat(parts) is None and shared.stat(parts) is not None:
            raise PathRefused(f"{join(parts)} belongs to the definitions that all users share; it stays where it is")

    def refuse_laid_over(self, parts: Parts) -> None:
        """Raise `PathRefused` if a read-only tree holds this path, and it is no folder that the tenant has too."""
        over = self._over(parts)
        found = over.stat(parts) if over else None
        if found and not (found.is_dir and self._own.stat(parts) is not None):
            raise PathRefused(f"{join(parts)} is kept by the harness and read-only; write to another path")

    def _shared_children(self, parts: Parts) -> list[Node] | None:
        if not parts:
            return [n for n in self._shared.children(()) if n.parts[0] in SHARED] if self._shared else None
        shared = self._behind(parts)
        return list(shared.children(parts)) if shared and is_folder(shared.stat(parts)) else None

    def _children_over(self, parts: Parts) -> list[Node] | None:
        if not parts:
            nodes = [tree.stat((name,)) for name, tree in self._laid_over.items()]
            return [node for node in nodes if node is not None] or None
        over = self._over(parts)
        return list(over.children(parts)) if over and is_folder(over.stat(parts)) else None

    def _behind(self, parts: Parts) -> Tree | None:
        return self._shared if parts and parts[0] in SHARED else None

    def _over(self, parts: Parts) -> ReadableTree | None:
        return self._laid_over.get(parts[0]) if parts else None


def is_folder(node: Node | None) -> bool:
    """Whether there is a folder."""
    return node is not None and node.is_dir


def missing(parts: Parts) -> FileMissing:
    """The error for a path where there is nothing."""
    return FileMissing(f"{join(parts)} does not exist; list the folder to see what is there")


def taken(parts: Parts) -> FileExists:
    """The error for a name that is not free."""
    return FileExists(f"{join(parts)} exists already; edit it, or choose another name")


def in_the_way(parts: Parts, *, is_dir: bool) -> FilesystemError:
    """The error for a folder where a file is needed, or the other way round."""
    kind, needed = ("folder", "file") if is_dir else ("file", "folder")
    return FilesystemError(f"{join(parts)} is a {kind}; give the path of a {needed}")


def loadable(node: Node | None, parts: Parts, limit: int) -> Node:
    """The node at a path, if it is a file of at most `limit` bytes. Raises the error that fits if it is not."""
    if node is None:
        raise missing(parts)
    if node.is_dir:
        raise in_the_way(parts, is_dir=True)
    if node.size > limit:
        raise too_large(parts, node.size, limit)
    return node


def too_large(parts: Parts, size: int, limit: int) -> FilesystemError:
    """The error for a file that is not read in one piece; sizes in bytes."""
    return FilesystemError(f"{join(parts)} has {size} bytes, the most is {limit}; search it with grep, or split it")
