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
from collections.abc import Iterable, Mapping
from typing import Any

from harness.messages import MessageDict
from harness.sessions.entries import digest
from harness.text import dumps

__all__ = ["DigestCache", "binding_digest", "context_digest", "message_digest"]


def message_digest(message: MessageDict) -> str:
    """The digest of a message as the model is given it."""
    return digest(dumps(message))


def binding_digest(binding: Mapping[str, Any]) -> str:
    """The digest of a `binding` entry, or of its fields alone."""
    return digest(
        dumps(
            {
                "system": [_named(item) for item in binding.get("system", ())],
                "tools": [_named(item) for item in binding.get("tools", ())],
                "model": binding.get("model"),
                "provider": binding.get("provider"),
                "options": binding.get("options"),
            }
        )
    )


def context_digest(binding: str, messages: Iterable[str]) -> str:
    """The digest of what was sent: of a binding's digest and the messages' digests."""
    text = hashlib.sha256(f"{binding}\n".encode())
    for item in messages:
        text.update(f"{item}\n".encode())
    return text.hexdigest()


class DigestCache:
    """Digests of messages by object: a message that is sent with every request is hashed once.

    Sound as long as message dicts, once handed out, are replaced and not changed in place.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[MessageDict, str]] = {}

    def of(self, messages: Iterable[MessageDict]) -> list[str]:
        """The digests in order; what was not asked for this time is forgotten."""
        fresh: dict[int, tuple[MessageDict, str]] = {}
        for message in messages:
            # The dict is kept with its digest, so its address cannot be given to another one.
            fresh[id(message)] = self._known.get(id(message)) or (message, message_digest(message))
        self._known = fresh
        return [fresh[id(message)][1] for message in messages]


def _named(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": item.get("name"), "sha256": item.get("sha256")}
