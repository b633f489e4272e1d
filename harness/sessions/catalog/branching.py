"""Going on from an earlier turn in the same file, and the branches that a file holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.sessions.catalog.search import message_text
from harness.sessions.checking.strict import read_strictly, whole_data
from harness.sessions.ledger.reading import Loaded, active_path, texts_written
from harness.sessions.lines.entries import Entry
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.skimming import read_entries, skim
from harness.sessions.view.turn_ends import path_to_end
from harness.sessions.view.turns import boundary_of, newest_boundary, opens_turn

__all__ = [
    "BranchInfo",
    "Notes",
    "branches_of",
    "find_branch",
    "has_line",
    "note_lines",
    "notes_of",
    "read_branches",
    "read_notes",
]

_TITLE = 80


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """One way that a conversation went.

    leaf        entry id of its newest line
    start       entry id of the line it left the older branch behind; None for the first
    active      whether the conversation goes on there
    turns       directives from the beginning of the conversation to its end
    title       how its first own directive begins
    updated_at  when its newest line was made
    """

    leaf: str
    start: str | None
    active: bool
    turns: int
    title: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class Notes:
    """What people wrote on a session: names of lines, the newest of each name, and its title."""

    labels: dict[str, str]
    title: str | None


def find_branch(files: SessionFiles, owner: Owner, entry_id: str) -> Loaded:
    """The conversation as it was at the turn's end at this line, read strictly, in a worker. Raises `NotATurnEnd`."""
    path = path_to_end(read_strictly(files, owner), entry_id)
    boundary = boundary_of(path)
    kept = [entry for entry in path if entry.seq >= boundary.seq]
    for entry in kept:
        entry.data, entry.cut = whole_data(entry, files), False
    written = texts_written(path, newest_boundary(path))
    return Loaded(path=kept, leaf=path[-1].id, written=written, boundary=boundary)


def has_line(files: SessionFiles, entry_id: str) -> bool:
    """Whether a ledger has a line of this id, in a worker."""
    return any(entry.id == entry_id for entry in read_entries(files.ledger))


def read_branches(files: SessionFiles) -> list[BranchInfo]:
    """The branches of a ledger, in a worker; damage is stepped over."""
    entries, _, _ = skim(files.ledger)
    return branches_of(entries)


def branches_of(entries: Sequence[Entry]) -> list[BranchInfo]:
    """The branches, oldest first; the first one has no `start`."""
    parents = {entry.data.get("parentId") for entry in entries}
    newest = entries[-1] if entries else None
    leaves = [e for e in entries if e is newest or (e.id not in parents and e.kind != "branch")]
    found: list[BranchInfo] = []
    seen: set[str] = set()
    # A branch that began earlier owns the lines it shares with later ones.
    for leaf in leaves:
        path = active_path(entries[: entries.index(leaf) + 1], damaged=True) or []
        found.append(_info(path, seen, active=leaf is newest))
        seen.update(entry.id for entry in path)
    return found


def read_notes(files: SessionFiles) -> Notes:
    """The labels and the title in a ledger, in a worker."""
    return notes_of(read_entries(files.ledger))


def notes_of(entries: Iterable[Entry]) -> Notes:
    """The labels and the title among these lines, those of all branches."""
    notes = note_lines(entries)
    title = next((str(entry.data["data"].get("title", "")) for entry in notes if entry.kind == "event"), None)
    labels = {str(entry.data.get("name")): str(entry.data.get("target")) for entry in notes if entry.kind == "label"}
    return Notes(labels, title)


def note_lines(entries: Iterable[Entry]) -> list[Entry]:
    """The lines that say the labels and the title among these: of each name, and of the titles, the newest."""
    newest: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if entry.kind == "label":
            newest["label", str(entry.data.get("name"))] = entry
        elif entry.kind == "event" and entry.data.get("kind") == "title" and isinstance(entry.data.get("data"), dict):
            newest["title", ""] = entry
    return list(newest.values())


def _info(path: Sequence[Entry], seen: set[str], *, active: bool) -> BranchInfo:
    own = [entry for entry in path if entry.id not in seen]
    shared = [entry for entry in path if entry.id in seen]
    directives = [entry for entry in own if opens_turn(entry.data)]
    first = message_text(directives[0].data["message"]).strip() if directives else ""
    return BranchInfo(
        leaf=path[-1].id,
        start=shared[-1].id if shared else None,
        active=active,
        turns=sum(opens_turn(entry.data) for entry in path),
        title=first.splitlines()[0][:_TITLE] if first else "",
        updated_at=str(path[-1].data.get("timestamp", "")),
    )
