"""Where turns end: the only places at which a conversation may be branched or copied from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.errors import ConfigError, NotATurnEnd
from harness.sessions.lines.entries import Entry
from harness.sessions.view.turns import blocks_of, committed_requests, is_directive, is_settled, message_of

__all__ = ["TurnEnd", "end_of_commit", "newest_end", "path_to", "path_to_end", "turn_ends"]

_LAST_COMMIT = frozenset({"request_end", "turn_card", "state", "artifact", "event"})


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """One turn of a path that has ended, by indices into the path.

    `first` is its directive, `closing` its last message, `last` the end of the commit of that
    message. A path before its first directive counts as a turn that has ended, empty as it may be.
    """

    first: int
    closing: int
    last: int


def turn_ends(path: Sequence[Entry]) -> list[TurnEnd]:
    """The ended turns of a path from the root, in order. Only the last turn can be missing."""
    committed = committed_requests(path)
    starts = [index for index, entry in enumerate(path) if index == 0 or is_directive(entry)]
    ends: list[TurnEnd] = []
    for first, following in zip(starts, [*starts[1:], len(path)], strict=True):
        closing = _closing(path, first, following, committed)
        if closing is not None:
            ends.append(TurnEnd(first, closing, end_of_commit(path, closing, following)))
    return ends


def path_to(entries: Sequence[Entry], leaf: Entry) -> list[Entry]:
    """The lines from the root to this one along `parentId`. Raises `ConfigError` where one is missing."""
    by_id = {entry.id: entry for entry in entries}
    path = [leaf]
    while (parent := path[-1].data.get("parentId")) is not None:
        if parent not in by_id or by_id[parent].seq >= path[-1].seq:
            raise ConfigError(f"line {path[-1].seq} names a parent {parent!r} that no line before it is; run verify")
        path.append(by_id[parent])
    return path[::-1]


def path_to_end(entries: Sequence[Entry], entry_id: str) -> list[Entry]:
    """The path to the turn's end that this line stands at.

    Any line from the turn's last message on will do, up to the next directive. Raises `NotATurnEnd`,
    and `ConfigError` where there is no such line.
    """
    target = next((entry for entry in entries if entry.id == entry_id), None)
    if target is None:
        raise _no_line(entries, entry_id)
    path = path_to(entries, _newest_descendant(entries, target))
    place = path.index(target)
    ends = [end for end in turn_ends(path) if end.first <= place]
    end = ends[-1] if ends else TurnEnd(0, 0, 0)
    starts = [index for index in range(end.first, place + 1) if index == 0 or is_directive(path[index])]
    if starts[-1] == end.first and place >= end.closing:
        return path[: max(place, end.last) + 1]
    nearest = path[end.closing].id
    raise NotATurnEnd(
        f"line {entry_id!r} is in the middle of a turn; a branch or fork leaves whole turns behind: "
        f"the nearest end of a turn is {nearest!r}",
        nearest,
    )


def _no_line(entries: Iterable[Entry], entry_id: str) -> ConfigError:
    line = next((entry.id for entry in entries if (message_of(entry.data) or {}).get("id") == entry_id), None)
    if line is None:
        return ConfigError(f"there is no line {entry_id!r} in this session; give the id of one that is there")
    return ConfigError(f"{entry_id!r} is the id of a message and not of a line; give that of its line, {line!r}")


def newest_end(path: Sequence[Entry]) -> list[Entry]:
    """The path up to the end of its newest turn that has ended; what follows that turn outside of turns stays."""
    ends = turn_ends(path)
    end = ends[-1] if ends else TurnEnd(0, 0, 0)
    opened = any(is_directive(entry) for entry in path[end.closing + 1 :])
    return list(path[: end.last + 1] if opened else path)


def _closing(path: Sequence[Entry], first: int, following: int, committed: set[str]) -> int | None:
    """The index of the message that closes a turn; None if the turn is open."""
    said = [index for index in range(first, following) if is_settled(path[index].data, committed)]
    if not said:
        return first
    message = message_of(path[said[-1]].data) or {}
    if message.get("role") == "assistant" and not blocks_of(message, "toolUse"):
        return said[-1]
    # A directive that follows closes whatever was before it.
    return following - 1 if following < len(path) else None


def end_of_commit(path: Sequence[Entry], message: int, following: int) -> int:
    """The index of the last line that was written with a message, before the index `following`."""
    last = message
    turn = path[message].data.get("turnId")
    while last + 1 < following and _belongs(path[last + 1], turn):
        last += 1
    return last


def _belongs(entry: Entry, turn: object) -> bool:
    return entry.kind in _LAST_COMMIT and turn is not None and entry.data.get("turnId") == turn


def _newest_descendant(entries: Iterable[Entry], target: Entry) -> Entry:
    below, newest = {target.id}, target
    for entry in entries:
        if entry.seq > target.seq and entry.data.get("parentId") in below:
            below.add(entry.id)
            newest = entry
    return newest
