"""Folders that are looked through for sessions: one that may not be listed costs itself, and is said."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import PersistenceError
from harness.filesystem import disk
from harness.filesystem.disk import DirItem
from harness.transcripts.refusing import path_text

__all__ = ["Look"]

_log = logging.getLogger("harness.transcripts")


@dataclass(slots=True)
class Look:
    """One look through folders. `closed` are those that were passed over: they may not be listed, or are no folders."""

    closed: list[str] = field(default_factory=list)

    def items(self, folder: Path) -> list[DirItem]:
        """The entries of a folder in the order of their names; none where it had to be passed over."""
        try:
            return disk.list_folder(folder)
        except (PersistenceError, ValueError) as error:  # ValueError: no system has a name with NUL in it
            _log.debug("a folder is passed over: %s", error)
            self.closed.append(path_text(folder))
            return []
