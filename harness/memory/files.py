"""The memory files of one tenant: `MEMORY.md`, and one file a day under `memory/`.

`MEMORY.md` is what is known for good; the daily files only grow, by what was worth keeping of that
day's conversations. Both are ordinary files of the tenant, which people and tools may edit meanwhile.
"""

from __future__ import annotations

from datetime import UTC, datetime

from harness.errors import FileMissing
from harness.filesystem.base import AbstractFilesystem
from harness.ids import timestamp
from harness.text import clean_text

__all__ = ["ARCHIVE_FOLDER", "DAILY_FOLDER", "MEMORY_FILE", "MemoryFiles", "daily_path"]

MEMORY_FILE = "MEMORY.md"
DAILY_FOLDER = "memory"
ARCHIVE_FOLDER = f"{DAILY_FOLDER}/archive"


def daily_path(now: datetime) -> str:
    """The daily file of a moment, by its day in UTC."""
    return f"{DAILY_FOLDER}/{now.astimezone(UTC):%Y-%m-%d}.md"


class MemoryFiles:
    """Long-term memory in a filesystem that is bound to one tenant (`for_namespace`).

    Keeps nothing in memory: what another process or a tool wrote is seen at the next read.
    """

    def __init__(self, files: AbstractFilesystem) -> None:
        self._files = files

    async def read_memory(self) -> str:
        """The text of `MEMORY.md`; empty if there is none. Bytes that are no UTF-8 show as U+FFFD.

        Raises `FilesystemError` if the file is larger than its place reads at once.
        """
        return await self._text(MEMORY_FILE)

    async def read_daily(self, now: datetime) -> str:
        """The text of that day's file, as `read_memory`."""
        return await self._text(daily_path(now))

    async def append_daily(self, text: str, now: datetime) -> str | None:
        """Add a text under a heading with the moment, and return the file's path; blank text adds nothing.

        Nothing that others write at the same time is lost, and no reader sees half an entry. Raises
        `FilesystemError` when the place refuses, also for a daily file that is no text any more.
        """
        body = clean_text(text).strip()
        if not body:
            return None
        path = daily_path(now)
        before = await self._present(path)
        await self._files.append(path, f"{_gap(before)}## Memory Flush — {timestamp(now)}\n\n{body}\n")
        return path

    async def _present(self, path: str) -> str:
        try:
            return (await self._files.read(path)).text
        except FileMissing:
            return ""

    async def _text(self, path: str) -> str:
        try:
            return (await self._files.read_bytes(path)).decode(errors="replace")
        except FileMissing:
            return ""


def _gap(text: str) -> str:
    """What makes one empty line between a text and what follows."""
    return "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
