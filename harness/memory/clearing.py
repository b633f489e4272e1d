"""What stands where the memory belongs: set aside and told, for otherwise nothing would be remembered any more."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from harness.errors import FileMissing, FilesystemError, PathRefused
from harness.filesystem.base import AbstractFilesystem
from harness.memory.files import ARCHIVE_FOLDER, DAILY_FOLDER, MEMORY_FILE, daily_path
from harness.memory.watermark import WATERMARK_FILE

__all__ = ["clear_memory_paths"]

log = logging.getLogger("harness.memory")


async def clear_memory_paths(files: AbstractFilesystem, now: datetime) -> list[str]:
    """Rename each folder that has the name of a memory file, and the other way round; a sentence for each that was.

    Nothing of it is lost: it stands beside its old name. Raises `FilesystemError` when the place refuses.
    """
    told: list[str] = []
    for path, needed in (
        (MEMORY_FILE, "file"),
        (DAILY_FOLDER, "folder"),
        (ARCHIVE_FOLDER, "folder"),
        (WATERMARK_FILE, "file"),
        (daily_path(now), "file"),
    ):
        if await _kind(files, path) not in ("", needed):
            told.append(await _set_aside(files, path, needed, now))
    return told


async def _kind(files: AbstractFilesystem, path: str) -> str:
    """What is there; empty for nothing, and for what no path reaches."""
    try:
        await files.ls(path)
    except (FileMissing, PathRefused):
        return ""
    except FilesystemError:
        return "file"
    return "folder"


async def _set_aside(files: AbstractFilesystem, path: str, needed: str, now: datetime) -> str:
    aside = f"{path}.set-aside-{now.astimezone(UTC):%Y%m%dT%H%M%S%fZ}"
    await files.move(path, aside)
    text = f"{path} was no {needed}, which the memory needs; what was there is {aside} now"
    log.warning("%s", text)
    return text
