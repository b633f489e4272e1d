"""Priority 900: what the workspace and the tenant's memory tell the model before it answers.

What stays the same from call to call goes into the system text; what changes with every call (the
date, the session) goes behind the newest directive, so that the beginning of the request stays
byte for byte what it was and a provider's cache can use it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from harness.context import CallScope
from harness.errors import FileMissing, FilesystemError, PersistenceError
from harness.filesystem import AbstractFilesystem
from harness.hooks.events import PreCall, SystemPart
from harness.hooks.side import Notices
from harness.memory import MEMORY_FILE, clear_memory_paths, fence, tag_name, within_budget
from harness.models.tokens import estimate_tokens

__all__ = ["WorkspaceContextHook"]

log = logging.getLogger("harness.hooks")

_PERSONA = "AGENTS.md"
_KNOWLEDGE = "knowledge/KNOWLEDGE.md"
_KNOWLEDGE_FOLDER = "knowledge"
_MAX_LISTED = 200
_UNREADABLE = (FilesystemError, PersistenceError)
"""What is raised for a file that is there: no text, too large, a folder, a link to nowhere, not for our eyes."""


class WorkspaceContextHook:
    """Adds, each in a tag of its own and all together within `max_tokens` (estimated):

    - `<agents_context>`: AGENTS.md of the workspace
    - `<domain_knowledge_context>`: knowledge/KNOWLEDGE.md and the paths of the files beside it
    - one tag for each of `files` (paths as the tenant sees them)
    - `<memory_context>`: the tenant's MEMORY.md

    What does not fit is cut at a line's end with a note that names the file. What cannot be read is left out, and a
    byte that is no text is shown as U+FFFD, with a warning: the call goes on. Memory and files are
    data: they cannot close their tag. `workspace` is where definitions are; a tenant cannot replace
    them by writing a file of that name.
    """

    priority = 900
    events = (PreCall,)

    def __init__(self, workspace: AbstractFilesystem, *, max_tokens: int = 8000, files: Sequence[str] = ()) -> None:
        self._workspace = workspace
        self._max_tokens = max_tokens
        self._files = tuple(files)
        self._told: set[str] = set()
        """Files of which the log has said that they are missing or damaged; once is enough."""

    async def on_event(self, event: PreCall) -> PreCall:
        """Add the parts that have something to say."""
        tenant = event.scope.get(AbstractFilesystem)  # type: ignore[type-abstract]  # looked up by its base class
        reading = _Reading()
        sources = await self._sources(tenant, reading)
        self._tell(event.scope, reading)
        parts = list(event.system)
        left = self._max_tokens
        for name, path, text in sources:
            if not text.strip():
                continue
            shown = _fitted(name, path, text, left)
            if not shown:
                log.info("%s is left out of the context: the parts before it take all of the room", path)
                continue
            left -= estimate_tokens(shown)
            parts.append(SystemPart(name, shown))
        return event.change(system=tuple(parts), context=(*event.context, _session_facts(event.scope)))

    def _tell(self, scope: CallScope, reading: _Reading) -> None:
        """Say what could not be read as it is: to the caller each time, to the log of a file for all once."""
        notices = scope.find(Notices)  # type: ignore[type-abstract]  # looked up by its protocol
        for path, trouble in reading.troubles.items():
            if path not in self._told:
                log.warning("%s", trouble)
            if path in reading.shared:
                self._told.add(path)
            if notices is not None:
                notices.warn(trouble)

    async def _sources(self, tenant: AbstractFilesystem, reading: _Reading) -> list[tuple[str, str, str]]:
        """Tag, path and text of each part, the most important first: what is cut is cut from the end."""
        persona, knowledge, memory, *files = await asyncio.gather(
            reading.shared_text(self._workspace, _PERSONA),
            self._knowledge(reading),
            self._memory(tenant, reading),
            *(self._additional(tenant, path, reading) for path in self._files),
        )
        return [
            ("agents_context", _PERSONA, persona),
            ("domain_knowledge_context", _KNOWLEDGE, knowledge),
            *[(tag_name(path), path, text) for path, text in zip(self._files, files, strict=True)],
            ("memory_context", MEMORY_FILE, memory),
        ]

    @staticmethod
    async def _memory(tenant: AbstractFilesystem, reading: _Reading) -> str:
        """MEMORY.md. A folder of that name is set aside and told: facts would find no place any more."""
        text = await reading.tenant_text(tenant, MEMORY_FILE)
        if MEMORY_FILE not in reading.troubles:
            return text
        try:
            told = await clear_memory_paths(tenant, datetime.now(UTC))
        except _UNREADABLE as error:
            log.warning("what stands where the memory belongs cannot be set aside: %s", error)
            return text
        if told:
            reading.troubles[MEMORY_FILE] = "; ".join(told)
        return "" if told else text

    async def _additional(self, tenant: AbstractFilesystem, path: str, reading: _Reading) -> str:
        """A file that was asked for by name: where nothing is there, somebody may have mistaken its path."""
        text = await reading.tenant_text(tenant, path)
        if not text and path not in self._told:
            self._told.add(path)
            log.warning(
                "additional_context_file %s is missing or empty, and left out of the context; "
                "give a path that the tenant has, or that the workspace has for all",
                path,
            )
        return text

    async def _knowledge(self, reading: _Reading) -> str:
        paths = await self._knowledge_paths(reading)
        if _KNOWLEDGE_FOLDER in reading.troubles:
            return ""  # said once: what is in it cannot be read either
        lines = [f"- {path}" for path in paths[:_MAX_LISTED]]
        if len(paths) > _MAX_LISTED:
            lines.append(f"- … and {len(paths) - _MAX_LISTED} more; list the folder {_KNOWLEDGE_FOLDER}")
        text = await reading.shared_text(self._workspace, _KNOWLEDGE)
        return "\n".join([*([text.rstrip()] if text else []), *(["Knowledge files:", *lines] if lines else [])])

    async def _knowledge_paths(self, reading: _Reading) -> list[str]:
        try:
            found = await self._workspace.glob("*", _KNOWLEDGE_FOLDER)
        except FileMissing:
            return []
        except _UNREADABLE as error:
            reading.left_out(_KNOWLEDGE_FOLDER, error)
            reading.shared.add(_KNOWLEDGE_FOLDER)
            return []
        return [item.path for item in found.items if not item.is_dir and item.path != _KNOWLEDGE]


class _Reading:
    """The files that one call is shown, and what was wrong with them: one bad byte must lock nobody out."""

    def __init__(self) -> None:
        self.troubles: dict[str, str] = {}
        """By the path, in a sentence."""
        self.shared: set[str] = set()
        """The paths that were read for all tenants."""

    async def shared_text(self, filesystem: AbstractFilesystem, path: str) -> str:
        """The text of a file that all tenants are shown; empty where there is none, or none that can be read."""
        self.shared.add(path)
        return await self._text(filesystem, path) or ""

    async def tenant_text(self, tenant: AbstractFilesystem, path: str) -> str:
        """The same of a file that the tenant's own model may have spoilt: it is told, for it can mend it."""
        text = await self._text(tenant, path)
        return f"[{path} could not be read: {self.troubles[path]}]" if text is None else text

    async def _text(self, filesystem: AbstractFilesystem, path: str) -> str | None:
        """What can be read of a file: empty where there is none, None where nothing of one that is there."""
        try:
            return (await filesystem.read(path)).text
        except FileMissing:
            return ""
        except _UNREADABLE as error:
            text = await self._some_of(filesystem, path)
            if text is None:
                self.left_out(path, error)
            else:
                self.troubles[path] = f"{path} is shown with U+FFFD where it has bytes that are no text: {error}"
            return text

    @staticmethod
    async def _some_of(filesystem: AbstractFilesystem, path: str) -> str | None:
        try:
            data = await filesystem.read_bytes(path)
        except (FileMissing, *_UNREADABLE):
            return None
        return None if b"\0" in data else data.decode(errors="replace")  # with zero bytes it is a picture, or UTF-16

    def left_out(self, path: str, error: Exception) -> None:
        """Note that a file is there and nothing of it is shown."""
        self.troubles[path] = f"{path} is left out of the context: {error}"


def _fitted(name: str, path: str, text: str, tokens: int) -> str:
    """The text in its tag, cut so that both together fit; empty where not even a note would."""
    room = tokens
    while room > 0:
        shown = fence(name, within_budget(text, room, path))
        over = estimate_tokens(shown) - tokens
        if over <= 0:
            return shown
        room -= over
    return ""


def _session_facts(scope: CallScope) -> str:
    today = datetime.now(UTC)
    lines = [f"Date: {today:%A}, {today:%Y-%m-%d} (UTC)", f"Session: {scope.session_id}"]
    if scope.user_id is not None:
        lines.append(f"User: {scope.user_id}")
    return fence("session_context", "\n".join(lines))
