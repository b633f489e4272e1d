"""The digests that prove afterwards what a model saw.

All are SHA-256 in lower-case hex. JSON is compact UTF-8: no spaces, keys in the order of the
object, as the ledger writes it.

- of a message: of its JSON. For a message that stands in one line these are exactly the bytes of
  the value of `message` there.
- of a binding: of the JSON of `{system:[{name,sha256}],tools:[{name,sha256}],model,provider,options}`,
  so it is the same whether or not the texts are repeated in the line.
- of a context: of ASCII text with one digest a line, each ended by a line feed: first that of the
  binding, then those of the messages in the order they were sent.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from operator import is_not
from typing import Any

from harness.messages import MessageDict
from harness.sessions.lines.entries import EntryDict, digest
from harness.text import dumps

__all__ = ["ContextDigests", "binding_digest", "context_digest", "items_of", "message_digest"]


def message_digest(message: MessageDict) -> str:
    """The digest of a message as the model is given it."""
    return hashlib.sha256(dumps(message)).hexdigest()


def binding_digest(binding: Mapping[str, Any]) -> str:
    """The digest of a `binding` entry, or of its fields alone."""
    return digest(
        dumps(
            {
                "system": [_named(item) for item in items_of(binding, "system")],
                "tools": [_named(item) for item in items_of(binding, "tools")],
                "model": binding.get("model"),
                "provider": binding.get("provider"),
                "options": binding.get("options"),
            }
        )
    )


def items_of(binding: Mapping[str, Any], name: str) -> list[EntryDict]:
    """The pieces of the system text, or the tools, that a `binding` names; damage may have left no list of them."""
    items = binding.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def context_digest(binding: str, messages: Iterable[str]) -> str:
    """The digest of what was sent: of a binding's digest and the messages' digests."""
    return digest("\n".join([binding, *messages, ""]).encode())


class ContextDigests:
    """Digests of the contexts of one session's requests, each of which mostly begins as the one before it.

    A message that is sent with every request is hashed once, and so is the beginning that two requests share.
    Sound as long as message dicts, once handed out, are replaced and not changed in place.
    """

    def __init__(self) -> None:
        self._messages: list[MessageDict] = []
        self._digests: list[str] = []
        self._binding: str | None = None
        self._begun, self._hash = 0, hashlib.sha256()

    def of(self, binding: str, messages: Sequence[MessageDict]) -> str:
        """What `context_digest` makes of them; what was not asked for this time is forgotten."""
        same = _same_objects(messages, self._messages)
        # The dicts are kept with their digests, so that the address of one cannot be given to another.
        known = {id(message): made for message, made in zip(self._messages[same:], self._digests[same:], strict=True)}
        fresh = [known.get(id(message)) or message_digest(message) for message in messages[same:]]
        self._digests[same:] = fresh
        self._messages = list(messages)
        if binding != self._binding or same < self._begun:
            self._binding, self._begun, self._hash = binding, 0, hashlib.sha256(f"{binding}\n".encode())
        return self._ended()

    def _ended(self) -> str:
        """The digest. The hash of all but the last message is kept: that one changes when its turn is closed."""
        last = max(len(self._digests) - 1, self._begun)
        self._hash.update(_lines(self._digests[self._begun : last]))
        self._begun = last
        whole = self._hash.copy()
        whole.update(_lines(self._digests[last:]))
        return whole.hexdigest()


def _lines(digests: Sequence[str]) -> bytes:
    return "\n".join([*digests, ""]).encode()


def _same_objects(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items two lists have in common from their beginning on."""
    return next(itertools.compress(itertools.count(), map(is_not, one, other)), min(len(one), len(other)))


def _named(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": item.get("name"), "sha256": item.get("sha256")}
