"""The upkeep of one tenant's memory: new notes go into MEMORY.md, old daily files into the archive.

It may run at any time and be broken off at any point. MEMORY.md is replaced whole and only if nobody
changed it meanwhile; the watermark follows, so that at worst a note is looked at twice.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

from harness.errors import ConfigError, ContextOverflow, FileExists, FileMissing, FilesystemError, ModelMalformed
from harness.filesystem.base import AbstractFilesystem
from harness.memory.consolidation import checked_memory, consolidation_prompt
from harness.memory.files import ARCHIVE_FOLDER, DAILY_FOLDER, MEMORY_FILE
from harness.memory.fitting import AROUND_TOKENS, Fitting
from harness.memory.notes import Notes, is_archived, next_notes, too_old
from harness.memory.watermark import Mark, load_marks, save_marks, unread
from harness.text import error_text

__all__ = ["Ask", "MaintenanceConfig", "Progress", "maintain"]

log = logging.getLogger("harness.memory")

Ask: TypeAlias = Callable[[str, str], Awaitable[str]]
"""Asks a model: system text, prompt; its answer."""
Progress: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Is told how far it is: `consolidation_begin`, `consolidation_progress`, `consolidation_end`, and details."""

_MOST_ROUNDS = 8
_LEAST_ROOM = 800
"""Tokens; a model that takes no more cannot keep a memory."""
_ONLY_THE_END = "\n\nOf the memory file you are shown the end only. Answer with the new end; the rest stays as it is."
_TRIES = 2
_DAILY = re.compile(r"(\d{4}-\d\d-\d\d)\.md")


@dataclass(frozen=True, slots=True)
class MaintenanceConfig:
    """How a tenant's memory is kept.

    gap_seconds        the least time between two runs for one tenant in one process
    max_memory_tokens  what MEMORY.md may have, estimated
    max_input_tokens   notes shown to the model at once; longer ones come in turns
    retention_days     a daily file that is older, and taken over, goes to memory/archive
    backups            earlier versions of MEMORY.md that are kept there

    Raises `ConfigError`.
    """

    gap_seconds: float = 1_800.0
    max_memory_tokens: int = 4_000
    max_input_tokens: int = 16_000
    retention_days: int = 90
    backups: int = 10

    def __post_init__(self) -> None:
        if self.max_memory_tokens < 100 or self.max_input_tokens < 200:
            raise ConfigError("memory maintenance: max_memory_tokens must be 100 or more, max_input_tokens 200 or more")
        if self.gap_seconds < 0 or self.retention_days < 1 or self.backups < 1:
            raise ConfigError("memory maintenance: gap_seconds must be 0 or more, retention_days and backups 1 or more")


async def maintain(
    files: AbstractFilesystem,
    ask: Ask,
    config: MaintenanceConfig,
    now: datetime,
    progress: Progress,
    *,
    room: int | None = None,
) -> None:
    """Consolidate what is new, then archive what is old. Raises errors of `ModelError` and `FilesystemError`.

    Asks no model where there is nothing new. A MEMORY.md that is gone, although notes were taken
    into it, is made anew from the newest daily files.

    `room` is how many estimated tokens one request may show the model; None for what is configured. A
    request that it refuses as too long is made half as large. Of a MEMORY.md that is too large to be
    shown, notes are merged into the end, and what stands before that stays as it is.
    """
    marks = await _fitted(files, ask, config, now, progress, room)
    await _archive(files, marks, now.astimezone(UTC).date() - timedelta(days=config.retention_days))
    await _prune_backups(files, config.backups)


async def _fitted(
    files: AbstractFilesystem, ask: Ask, config: MaintenanceConfig, now: datetime, progress: Progress, room: int | None
) -> dict[str, Mark]:
    while True:
        fitting = Fitting(config.max_memory_tokens, config.max_input_tokens, room)
        try:
            return await _consolidate(files, ask, config, fitting, now, progress)
        except ContextOverflow as error:
            room = (config.max_memory_tokens + config.max_input_tokens + AROUND_TOKENS if room is None else room) // 2
            if room < _LEAST_ROOM:
                raise
            log.info("a request to keep the memory was too long (%s); it is made half as large", error)


async def _consolidate(
    files: AbstractFilesystem,
    ask: Ask,
    config: MaintenanceConfig,
    fitting: Fitting,
    now: datetime,
    progress: Progress,
) -> dict[str, Mark]:
    marks = await _known(files, config)
    archived = not marks or any(map(is_archived, marks))
    saved = False
    for number in range(1, _MOST_ROUNDS + 1):
        notes = await next_notes(files, marks, fitting.notes, archived=archived)
        if notes is None:
            break
        await progress(
            "consolidation_begin" if number == 1 else "consolidation_progress",
            {"round": number, "files": list(notes.paths), "left": notes.left},
        )
        try:
            saved = await _round(files, ask, fitting, notes, now, backed_up=saved) or saved
        except BaseException as error:
            await progress("consolidation_end", {"status": "failed", "rounds": number - 1, "error": error_text(error)})
            raise
        marks = {path: mark for path, mark in notes.marks.items() if notes.left or not is_archived(path)}
        await save_marks(files, marks)
        if not notes.left:
            await progress("consolidation_end", {"status": "completed", "rounds": number})
            break
    return marks


async def _known(files: AbstractFilesystem, config: MaintenanceConfig) -> dict[str, Mark]:
    """The watermark. Without a MEMORY.md to which it belongs, all but the newest files count as taken over."""
    marks = await load_marks(files)
    if marks and (await _memory(files) or "").strip():
        return marks
    if marks:
        log.info("MEMORY.md is gone; it is made anew from the newest daily files")
    return await too_old(files, config.max_input_tokens * _MOST_ROUNDS)


async def _round(
    files: AbstractFilesystem, ask: Ask, fitting: Fitting, notes: Notes, now: datetime, *, backed_up: bool
) -> bool:
    """Take some notes into MEMORY.md; whether it was changed."""
    for _ in range(_TRIES):
        before = await _memory(files)
        after = await _merged(ask, fitting, before or "", notes.text)
        if after == (before or ""):
            return False
        if before and not backed_up:
            await _back_up(files, before, now)
        if await _replace(files, before, after):
            return True
        log.info("MEMORY.md was changed while it was consolidated; it is done again")
    raise FilesystemError("MEMORY.md is being changed all the time; it is consolidated later")


async def _merged(ask: Ask, fitting: Fitting, before: str, notes: str) -> str:
    wrong: str | None = None
    unseen, shown = fitting.divided(before, notes)
    for _ in range(_TRIES):
        prompt = consolidation_prompt(shown, notes, fitting.memory, wrong)
        system = prompt.system + _ONLY_THE_END if unseen else prompt.system
        try:
            return unseen + checked_memory(shown, await ask(system, prompt.user), fitting.memory)
        except ModelMalformed as error:
            wrong = error_text(error)
    raise ModelMalformed(
        f"no new MEMORY.md could be made: the model's answer could not be used: {wrong}; the old one stays"
    )


async def _memory(files: AbstractFilesystem) -> str | None:
    try:
        return (await files.read(MEMORY_FILE)).text
    except FileMissing:
        return None


async def _replace(files: AbstractFilesystem, before: str | None, after: str) -> bool:
    """Put the new text in place of the one that was read; False if that is not what stands there any more."""
    try:
        if before is None:
            await files.write(MEMORY_FILE, after)
        elif not before.strip():
            await files.write_bytes(MEMORY_FILE, after.encode())
        else:
            await files.edit(MEMORY_FILE, before, after)
    except (FileExists, FileMissing):
        return False
    except FilesystemError:
        if await _memory(files) != before:
            return False
        raise
    return True


async def _back_up(files: AbstractFilesystem, text: str, now: datetime) -> None:
    path = f"{ARCHIVE_FOLDER}/MEMORY-{now.astimezone(UTC):%Y%m%dT%H%M%S%fZ}.md"
    await files.write_bytes(path, text.encode())


async def _archive(files: AbstractFilesystem, marks: dict[str, Mark], oldest: date) -> None:
    """Move daily files of earlier days that were taken over whole; others wait."""
    moved = False
    for path in await _names(files, DAILY_FOLDER):
        found = _DAILY.fullmatch(path.rsplit("/", 1)[-1])
        if found is None or _day(found[1]) is None or found[1] >= oldest.isoformat():
            continue
        data = await files.read_bytes(path)
        if path in marks and unread(data, marks[path]) == len(data):
            await files.move(path, f"{ARCHIVE_FOLDER}/{found[0]}")
            del marks[path]
            moved = True
    if moved:
        await save_marks(files, marks)


async def _prune_backups(files: AbstractFilesystem, most: int) -> None:
    backups = [path for path in await _names(files, ARCHIVE_FOLDER) if path.rsplit("/", 1)[-1].startswith("MEMORY-")]
    for path in sorted(backups)[:-most]:
        await files.delete(path)


async def _names(files: AbstractFilesystem, folder: str) -> list[str]:
    try:
        return [item.path for item in (await files.ls(folder)).items if not item.is_dir]
    except FileMissing:
        return []


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
