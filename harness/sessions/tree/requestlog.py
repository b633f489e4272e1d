"""The lines of a request: what stands around its messages, that it goes out, how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import ConfigError
from harness.ids import new_id
from harness.messages import MessageDict
from harness.sessions.ledger.store import LedgerStore
from harness.sessions.lines.binding import make_binding
from harness.sessions.lines.blobs import Blobs, fit_fields
from harness.sessions.lines.digest import ContextDigests
from harness.sessions.lines.entries import Entry
from harness.sessions.selection.selecting import Selected
from harness.text import dumps

__all__ = ["RequestLog"]


class RequestLog:
    """Writes them for one session; `SessionTree` says what the arguments mean."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store
        self._digests = ContextDigests()
        self._bound: tuple[bytes, str] | None = None

    def bind(
        self,
        system: Sequence[Mapping[str, str]],
        tools: Sequence[Mapping[str, Any]],
        model: str,
        provider: str,
        options: Mapping[str, Any],
        turn: str | None,
    ) -> str:
        """The id of a binding since the boundary that says this; it is logged if there is none."""
        conversation = self._store.conversation
        asked = _asked(system, tools, model, provider, options)
        if self._bound and self._bound[0] == asked and conversation.binding_digest(self._bound[1]) is not None:
            return self._bound[1]
        entry_id = self._bind(system, tools, model, provider, options, turn)
        self._bound = (asked, entry_id) if asked else None
        return entry_id

    def _bind(
        self,
        system: Sequence[Mapping[str, str]],
        tools: Sequence[Mapping[str, Any]],
        model: str,
        provider: str,
        options: Mapping[str, Any],
        turn: str | None,
    ) -> str:
        conversation = self._store.conversation
        made = make_binding(system, tools, model, provider, options, conversation.written)
        known = conversation.binding_of(made.digest)
        if known is not None:
            return known
        self._store.blobs.update(made.blobs)
        entry = self._plan("binding", made.fields, turn, held=made.blobs)
        conversation.written |= made.written
        return entry.id

    def begin(
        self,
        fields: Mapping[str, Any],
        binding_id: str,
        messages: Sequence[MessageDict],
        turn: str | None,
        select: Sequence[Selected] | None,
    ) -> str:
        """Log that a request goes out; `fields` are purpose, attempt, policy, projector, and tokens perhaps."""
        binding = self._store.conversation.binding_digest(binding_id)
        if binding is None:
            raise ConfigError(f"no binding {binding_id} since the newest boundary; call bind before each request")
        request_id = new_id()
        shown: dict[str, Any] = {
            "purpose": fields["purpose"],
            "attempt": fields["attempt"],
            "binding": binding_id,
            "leaf": self._store.leaf,
            "policy": fields["policy"],
            "projector": fields["projector"],
        }
        if fields.get("tokens") is not None:
            shown["tokens"] = fields["tokens"]
        if select is not None:
            shown["select"] = list(select)
        shown["contextDigest"] = self._digests.of(binding, messages)
        if select is not None:
            return self._plan("request_begin", shown, turn, request_id).id
        # Short, and of texts and numbers only: nothing of it has to move, and nobody can change it.
        plan = self._store.plan
        return plan("request_begin", shown, entry_id=request_id, turn=turn, request=request_id, whole=shown).id

    def _plan(
        self,
        kind: str,
        fields: Mapping[str, Any],
        turn: str | None,
        request_id: str | None = None,
        held: Blobs | None = None,
    ) -> Entry:
        small, moved = fit_fields(kind, fields, dumps(fields), held)
        self._store.blobs.update(moved)
        whole = fields if moved else None
        return self._store.plan(kind, small, entry_id=request_id, turn=turn, request=request_id, whole=whole)


def _asked(*parts: Any) -> bytes | None:
    """What makes two bindings the same one, since JSON tells 1 from 1.0; None where it has to be cleaned first."""
    try:
        return dumps(parts)
    except TypeError:
        return None
