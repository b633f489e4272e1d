"""Removing what the Java harness left of one user, so that nothing of it is taken over again.

What is removed is what would be taken over: transcripts and memories that `JavaWorkspace` gives to this user, and the
user's long-term memory. A folder of the workspace that only has the user's name stays: it may be anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import PersistenceError
from harness.filesystem import disk
from harness.filesystem.local_tree import LocalTree
from harness.filesystem.paths import Parts, join
from harness.sessions.moving.java_workspace import JavaWorkspace

__all__ = ["JavaRemoval", "has_java", "remove_java"]


@dataclass(frozen=True, slots=True)
class JavaRemoval:
    """How many files went, their bytes, and paths of the workspace that may be the user's too and stay."""

    files: int = 0
    bytes: int = 0
    left: tuple[str, ...] = ()


def remove_java(workspace: Path, namespace: tuple[str, ...], agents: Iterable[str]) -> JavaRemoval:
    """Remove it, whatever agents it was with, those named here among them. Blocking. Raises `PersistenceError`."""
    tree, there = LocalTree(workspace), _of_all_agents(workspace, namespace, agents)
    if not there.has_folders:
        return JavaRemoval()
    removed = [*_remove(tree, [(*there.base, *parts) for parts in there.memory_files()])]
    kept: set[str] = set()
    touched = {(), *there.own_folders()}
    while ids := there.session_ids():
        before = len(removed)
        for session_id in ids:
            mine, shared = there.places(session_id)
            removed += _remove(tree, mine)
            touched |= {parts[:-1] for parts in mine}
            kept |= {join(parts) for parts in shared}
        if len(removed) == before:
            raise PersistenceError(
                f"session {ids[0]!r} of the Java harness is still in {workspace} after its files were removed; "
                "remove them by hand, then delete the user again"
            )
    removed += _remove(tree, there.lists())
    for parts in there.own_folders():
        disk.remove_empty(workspace.joinpath(*parts))
    for folder in (workspace.joinpath(*parts) for parts in touched):
        if disk.mark(folder) is not None:
            disk.sync_folder(folder)  # after a power cut nothing may be there to be taken over
    kept |= {join(parts) for parts in there.own_folders()[-1:]}
    return JavaRemoval(len(removed), sum(removed), tuple(sorted(kept)))


def has_java(workspace: Path, namespace: tuple[str, ...], agents: Iterable[str]) -> bool:
    """Whether there may be something to remove. Blocking."""
    return _of_all_agents(workspace, namespace, agents).has_folders


def _of_all_agents(workspace: Path, namespace: tuple[str, ...], agents: Iterable[str]) -> JavaWorkspace:
    known = [*agents]
    return JavaWorkspace(workspace, namespace, [*known, *JavaWorkspace(workspace, namespace, known).agents_there()])


def _remove(tree: LocalTree, places: Iterable[Parts]) -> Iterator[int]:
    """The sizes of the files that went."""
    for parts in places:
        node = tree.stat(parts)
        if node is not None:
            sizes = [node.size] if not node.is_dir else [child.size for child in tree.children(parts)]
            tree.discard(parts)
            yield from sizes
