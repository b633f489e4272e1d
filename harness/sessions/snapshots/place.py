"""The folder of one key of track 1, and the names of the files in it."""

from __future__ import annotations

from pathlib import Path

from harness.ids import encode_name
from harness.sessions.snapshots.list_file import ListFile

__all__ = ["LIST", "VALUE", "Place"]

VALUE, LIST = ".json", ".jsonl"
_HOLD = ".hold"


class Place:
    """Where a key's files are. A session writes the same few each time: their names are made once."""

    __slots__ = ("_files", "folder", "hold", "lists", "ready")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hold = folder / _HOLD
        """The file whose lock writers of lists take."""
        self.lists: dict[str, ListFile] = {}
        self.ready = False
        """Whether this process made the folder, or found it made, and marked it as the key's."""
        self._files: dict[str, Path] = {}

    def value(self, name: str) -> Path:
        """The file of a single value."""
        return self._file(name, VALUE)

    def list(self, name: str) -> Path:
        """The file of a list."""
        return self._file(name, LIST)

    def _file(self, name: str, ending: str) -> Path:
        full = name + ending
        if full not in self._files:
            self._files[full] = self.folder / (encode_name(name, "state name") + ending)
        return self._files[full]
