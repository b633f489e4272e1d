"""What the removal of a user tells: a value, and the pure functions that make it from what there was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.filesystem.namespaces import AGENTS, TENANT_FILE
from harness.filesystem.paths import Parts
from harness.filesystem.removal import Kept
from harness.memory import DAILY_FOLDER, MEMORY_FILE
from harness.sessions.lines.layout import LEDGER_SUFFIX, REMOVED_SUFFIX
from harness.text import counted

__all__ = ["UserRemoval", "elsewhere", "removal_of", "without_snapshot"]

_LOCKS = (".lock", ".hold")
_NAMED = 5
"""How many sessions a sentence names."""


@dataclass(frozen=True, slots=True)
class UserRemoval:
    """What was removed of a user; true if there was anything. Numbers, but for those whom it is about.

    namespace      the tenant
    sessions       conversations
    ledgers        their ledgers; a conversation of which only a snapshot was left has none
    contents       large results and media, each once
    memory_files   MEMORY.md and what lies in memory/
    index_rows     rows in lists of sessions
    snapshot_keys  conversations whose state was kept, in the workspace and in other stores
    java_files     files of the Java harness that would have been taken over again
    files, bytes   all files but locks and the note of whose folder it was
    unreached      a sentence for each thing that may be the user's and stays, with where it is
    """

    namespace: tuple[str, ...]
    sessions: int = 0
    ledgers: int = 0
    contents: int = 0
    memory_files: int = 0
    index_rows: int = 0
    snapshot_keys: int = 0
    java_files: int = 0
    files: int = 0
    bytes: int = 0
    unreached: tuple[str, ...] = field(default=())

    def __bool__(self) -> bool:
        return self.files > 0 or self.snapshot_keys > 0


def removal_of(namespace: tuple[str, ...], kept: Sequence[Kept], **more: int) -> UserRemoval:
    """What these files of a tenant's folder were; `more` are the numbers that files do not tell."""
    paths = [each.parts for each in kept]
    ledgers = {found for parts in paths if (found := _ledger_in(parts))}
    snapshots = {found for parts in paths if (found := _snapshot_in(parts))}
    return UserRemoval(
        namespace,
        sessions=len(ledgers | snapshots),
        ledgers=len(ledgers),
        contents=sum(_is_content(parts) for parts in paths),
        memory_files=sum(parts[0] in (MEMORY_FILE, DAILY_FOLDER) for parts in paths),
        index_rows=more.get("index_rows", 0),
        snapshot_keys=len(snapshots) + more.get("snapshot_keys", 0),
        java_files=more.get("java_files", 0),
        files=sum(not _is_own(parts) for parts in paths) + more.get("java_files", 0),
        bytes=sum(each.size for each in kept if not _is_own(each.parts)) + more.get("java_bytes", 0),
    )


def without_snapshot(kept: Iterable[Kept], known: Iterable[str]) -> list[Parts]:
    """The ledgers without a snapshot in the stores that were asked; `known` are names of sessions there."""
    paths = sorted(each.parts for each in kept)
    has = {name for _, name in filter(None, map(_snapshot_in, paths))} | set(known)
    return [parts for parts in paths if (ledger := _ledger_in(parts)) and ledger[1] not in has]


def elsewhere(ledgers: Iterable[Parts]) -> str:
    """A sentence about ledgers that should have a snapshot, and none was found.

    Where a call brought a store of its own, the workspace does not say so.
    """
    lacking = sorted({name for _, name in filter(None, map(_ledger_in, ledgers))})
    names = ", ".join(lacking[:_NAMED]) + (f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else "")
    return (
        f"{counted(len(lacking), 'session')} had no snapshot in the stores that were asked ({names}): a store that "
        "only calls brought may have one; then delete the user once more from a program, with that store in its context"
    )


def _is_own(parts: Parts) -> bool:
    """Whether the harness makes it for itself, so that it says nothing of the user."""
    return parts == (TENANT_FILE,) or (parts[0] == AGENTS and parts[-1].endswith(_LOCKS))


def _ledger_in(parts: Parts) -> tuple[str, str] | None:
    """The names of agent and session, if it is a ledger, or one whose deletion was cut off."""
    if len(parts) != 4 or parts[0] != AGENTS or parts[2] != "sessions":
        return None
    name = parts[3].removesuffix(REMOVED_SUFFIX)
    return (parts[1], name.removesuffix(LEDGER_SUFFIX)) if name.endswith(LEDGER_SUFFIX) else None


def _snapshot_in(parts: Parts) -> tuple[str, str] | None:
    is_state = len(parts) == 5 and parts[0] == AGENTS and parts[2] == "context" and not parts[4].startswith((".", "_"))
    return (parts[1], parts[3]) if is_state else None


def _is_content(parts: Parts) -> bool:
    return len(parts) == 6 and parts[0] == AGENTS and parts[2:4] == ("sessions", "files")
