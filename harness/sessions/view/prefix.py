"""Whether a request begins as the one before it did, so that a provider's cache can use it; and if not, why.

The prefix of a request is what will stand in front of the next turn too: system text, tools, model,
and the messages before the open turn. Its digest is a chain, one link a message, so that a longer
prefix shows whether it begins with a shorter one:

- the first link is the SHA-256 of the JSON of `{system:[{name,sha256}],tools:[{name,sha256}],model,provider}`;
- each further one is the SHA-256 of the link before, a line feed, and the digest of the message.

`request_end` holds the last link as `prefixDigest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.messages import MessageDict
from harness.sessions.lines.digest import message_digest
from harness.sessions.lines.entries import Entry, EntryDict, digest
from harness.sessions.view.truncating import ARGUMENTS_CUT
from harness.text import dumps

__all__ = ["Prefix", "PrefixWatch"]


@dataclass(frozen=True, slots=True)
class Prefix:
    """The digest of a request's prefix, and why it does not begin with the one before; None where it does."""

    digest: str
    cause: str | None


class PrefixWatch:
    """Compares the requests of one session. What came before is read from the ledger, so a new process knows it too.

    It remembers the chain of the last request: a conversation that only grew is not gone over again.
    """

    def __init__(self) -> None:
        self._messages: list[MessageDict] = []
        self._chain: list[str] = []
        self._links: set[str] = set()
        self._bindings: dict[str, EntryDict] = {}

    def look(
        self, path: Sequence[Entry], request_id: str, messages: Sequence[MessageDict], opening: str | None,
        *, selected: bool = False,
    ) -> Prefix:  # fmt: skip
        """The prefix of a request that was just begun. `opening` is the id of the message that opened the turn.

        `selected` says that it shows a selection of the closed turns: then another selection is a cause.
        """
        binding = self._binding_of(path, request_id)
        self._follow(_first_link(binding), messages[: _before_open_turn(messages, opening)])
        before = _newest_before(path, request_id)
        if before is None or before.digest in self._links:
            return Prefix(self._chain[-1], None)
        cause = before.cause or _difference(self._binding_of(path, before.request), binding)
        return Prefix(self._chain[-1], "selection" if selected and cause == "messages" else cause)

    def _follow(self, first: str, messages: Sequence[MessageDict]) -> None:
        """Bring the chain to these messages. Sound as long as message dicts are replaced, not changed in place."""
        count = len(self._messages)
        # A list compares its items by identity first: this is cheap for the same objects.
        if self._chain[:1] != [first] or list(messages[:count]) != self._messages:
            self._chain, self._links, count = [first], {first}, 0
        for message in messages[count:]:
            self._chain.append(digest(f"{self._chain[-1]}\n{message_digest(message)}".encode()))
            self._links.add(self._chain[-1])
        self._messages = list(messages)

    def _binding_of(self, path: Sequence[Entry], request_id: str) -> EntryDict:
        """What stood around the messages of a request; empty where that is not in sight."""
        begun = next((e for e in reversed(path) if e.kind == "request_begin" and e.id == request_id), None)
        wanted = str(begun.data.get("binding")) if begun else ""
        if wanted not in self._bindings:
            found = next((e for e in reversed(path) if e.kind == "binding" and e.id == wanted), None)
            self._bindings = {**self._bindings, wanted: found.data} if found else self._bindings
        return self._bindings.get(wanted, {})


def _before_open_turn(messages: Sequence[MessageDict], opening: str | None) -> int:
    """How many messages stand before the open turn."""
    for index in reversed(range(len(messages))):
        if messages[index].get("id") == opening:
            return index
    return len(messages)


def _first_link(binding: EntryDict) -> str:
    return digest(dumps({"system": _named(binding, "system"), "tools": _named(binding, "tools"), **_model(binding)}))


@dataclass(frozen=True, slots=True)
class _Before:
    """The request before, or the boundary that lies between."""

    request: str = ""
    digest: str = ""
    cause: str | None = None


def _newest_before(path: Sequence[Entry], request_id: str) -> _Before | None:
    for entry in reversed(path):
        if entry.kind == "compaction" and entry.data.get("boundary") is True and not entry.data.get("checkpoint"):
            return _Before(cause="compaction")
        if entry.kind == "event" and entry.data.get("kind") == ARGUMENTS_CUT:
            return _Before(cause="arguments")
        if entry.kind == "request_end" and entry.data.get("requestId") != request_id and "prefixDigest" in entry.data:
            return _Before(str(entry.data.get("requestId")), str(entry.data["prefixDigest"]))
    return None


def _difference(before: EntryDict, now: EntryDict) -> str:
    if before and _model(before) != _model(now):
        return "model"
    if before and _named(before, "tools") != _named(now, "tools"):
        return "tools"
    was, new = ({item["name"]: item["sha256"] for item in _named(binding, "system")} for binding in (before, now))
    changed = sorted(name for name in {*was, *new} if was.get(name) != new.get(name))
    return f"system: {', '.join(changed)}" if before and changed else "messages"


def _named(binding: EntryDict, key: str) -> list[EntryDict]:
    items = binding.get(key)
    return (
        [{"name": item.get("name"), "sha256": item.get("sha256")} for item in items] if isinstance(items, list) else []
    )


def _model(binding: EntryDict) -> EntryDict:
    return {"model": binding.get("model"), "provider": binding.get("provider")}
