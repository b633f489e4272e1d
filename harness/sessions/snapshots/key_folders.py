"""Whose a folder of track 1 is, and removing all folders of one namespace and agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.errors import FileMissing, InvalidId, SessionDamaged
from harness.filesystem import disk
from harness.sessions.snapshots.state_json import decode
from harness.state import SessionKey
from harness.text import dumps

__all__ = ["KEY_FILE", "check_key", "drop_folders", "key_bytes", "noted_key"]

KEY_FILE = "_key.json"


def key_bytes(key: SessionKey) -> bytes:
    """The note of a key, for its folder."""
    return dumps({"namespace": list(key.namespace), "agent": key.agent, "session": key.session}) + b"\n"


def noted_key(folder: Path) -> SessionKey | None:
    """The key noted in a folder; None where nothing readable is noted."""
    try:
        noted = decode(disk.read(folder / KEY_FILE)) or {}
        return SessionKey(tuple(noted["namespace"]), noted["agent"], noted["session"])
    except (FileMissing, KeyError, TypeError, InvalidId):
        return None


def check_key(folder: Path, key: SessionKey) -> None:
    """Raise `SessionDamaged` where another key is noted in a folder."""
    noted = noted_key(folder)
    if noted is not None and noted != key:
        raise SessionDamaged(
            f"{folder / KEY_FILE} says that this folder belongs to {noted}, but {key} was asked for; "
            "nothing was changed: move one of the two to another store"
        )


def drop_folders(parent: Path, namespace: tuple[str, ...], agent: str, is_named: Callable[[Path], bool]) -> None:
    """Remove the folders of keys in `parent`, those that were set aside among them, and it and the one above if empty.

    is_named   whether the name of a folder can be that of a key of this namespace and agent

    Left are folders in which another key is noted, or that hold folders: those are no keys'.
    """
    for item in disk.list_folder(parent):
        folder = parent / item.name
        noted = noted_key(folder) if item.is_dir else None
        # No name of a key has a dot; behind one stands that it was set aside.
        is_ours = (noted.namespace, noted.agent) == (namespace, agent) if noted else is_named(_named(folder))
        if item.is_dir and is_ours and not any(inner.is_dir for inner in disk.list_folder(folder)):
            disk.remove_tree(folder)
    if disk.remove_empty(parent):
        disk.remove_empty(parent.parent)
    disk.sync_folder(next(place for place in (parent, *parent.parents) if disk.mark(place) is not None))


def _named(folder: Path) -> Path:
    return folder.with_name(folder.name.partition(".")[0] or folder.name)
