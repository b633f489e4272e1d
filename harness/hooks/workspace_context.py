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
from harness.errors import FileMissing, FilesystemError
from harness.filesystem import AbstractFilesystem
from harness.hooks.events import PreCall, SystemPart
from harness.memory import MEMORY_FILE, fence, tag_name, within_budget
from harness.models.tokens import estimate_tokens

__all__ = ["WorkspaceContextHook"]

log = logging.getLogger("harness.hooks")

_PERSONA = "AGENTS.md"
_KNOWLEDGE = "knowledge/KNOWLEDGE.md"
_KNOWLEDGE_FOLDER = "knowledge"
_MAX_LISTED = 200


class WorkspaceContextHook:
    """Adds, each in a tag of its own and all together within `max_tokens` (estimated):

    - `<agents_context>`: AGENTS.md of the workspace
    - `<domain_knowledge_context>`: knowledge/KNOWLEDGE.md and the paths of the files beside it
    - one tag for each of `files` (paths as the tenant sees them)
    - `<memory_context>`: the tenant's MEMORY.md

    What does not fit is cut at a line's end with a note that names the file. Memory and files are
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
        """Files of which the log has said that they are missing; once is enough."""

    async def on_event(self, event: PreCall) -> PreCall:
        """Add the parts that have something to say."""
        tenant = event.scope.get(AbstractFilesystem)  # type: ignore[type-abstract]  # looked up by its base class
        parts = list(event.system)
        left = self._max_tokens
        for name, path, text in await self._sources(tenant):
            if not text.strip():
                continue
            shown = _fitted(name, path, text, left)
            if not shown:
                log.info("%s is left out of the context: the parts before it take all of the room", path)
                continue
            left -= estimate_tokens(shown)
            parts.append(SystemPart(name, shown))
        return event.change(system=tuple(parts), context=(*event.context, _session_facts(event.scope)))

    async def _sources(self, tenant: AbstractFilesystem) -> list[tuple[str, str, str]]:
        """Tag, path and text of each part, the most important first: what is cut is cut from the end."""
        persona, knowledge, memory, *files = await asyncio.gather(
            _text(self._workspace, _PERSONA),
            self._knowledge(),
            _tenant_text(tenant, MEMORY_FILE),
            *(self._additional(tenant, path) for path in self._files),
        )
        return [
            ("agents_context", _PERSONA, persona),
            ("domain_knowledge_context", _KNOWLEDGE, knowledge),
            *[(tag_name(path), path, text) for path, text in zip(self._files, files, strict=True)],
            ("memory_context", MEMORY_FILE, memory),
        ]

    async def _additional(self, tenant: AbstractFilesystem, path: str) -> str:
        """A file that was asked for by name: where nothing is there, somebody may have mistaken its path."""
        text = await _tenant_text(tenant, path)
        if not text and path not in self._told:
            self._told.add(path)
            log.warning(
                "additional_context_file %s is missing or empty, and left out of the context; "
                "give a path that the tenant has, or that the workspace has for all",
                path,
            )
        return text

    async def _knowledge(self) -> str:
        paths = await self._knowledge_paths()
        lines = [f"- {path}" for path in paths[:_MAX_LISTED]]
        if len(paths) > _MAX_LISTED:
            lines.append(f"- … and {len(paths) - _MAX_LISTED} more; list the folder {_KNOWLEDGE_FOLDER}")
        text = await _text(self._workspace, _KNOWLEDGE)
        return "\n".join([*([text.rstrip()] if text else []), *(["Knowledge files:", *lines] if lines else [])])

    async def _knowledge_paths(self) -> list[str]:
        try:
            found = await self._workspace.glob("*", _KNOWLEDGE_FOLDER)
        except FileMissing:
            return []
        return [item.path for item in found.items if not item.is_dir and item.path != _KNOWLEDGE]


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


async def _text(filesystem: AbstractFilesystem, path: str) -> str:
    """The file's text; empty where there is none. One that is there and cannot be read ends the call."""
    try:
        return (await filesystem.read(path)).text
    except FileMissing:
        return ""


async def _tenant_text(tenant: AbstractFilesystem, path: str) -> str:
    """The same of a file that the tenant's own model may have spoilt: that must not lock the user out."""
    try:
        return await _text(tenant, path)
    except FilesystemError as error:
        log.warning("%s is left out of the context: %s", path, error)
        return f"[{path} could not be read: {error}]"


def _session_facts(scope: CallScope) -> str:
    today = datetime.now(UTC)
    lines = [f"Date: {today:%A}, {today:%Y-%m-%d} (UTC)", f"Session: {scope.session_id}"]
    if scope.user_id is not None:
        lines.append(f"User: {scope.user_id}")
    return fence("session_context", "\n".join(lines))
