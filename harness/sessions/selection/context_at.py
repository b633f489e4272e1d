"""What a model saw at a request, worked out again from the ledger and compared with what was noted then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.errors import ConfigError, FileMissing, SessionDamaged
from harness.filesystem import disk
from harness.messages import MessageDict
from harness.models.replay import for_provider
from harness.sessions.ledger.numbering import count_turns, turns_before
from harness.sessions.ledger.reading import active_path, scan
from harness.sessions.lines.blobs import read_blob, try_expand
from harness.sessions.lines.digest import binding_digest, context_digest, items_of, message_digest
from harness.sessions.lines.entries import START, Entry, EntryDict, digest
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.selection.selecting import Closed, selected_messages
from harness.sessions.view.projection import project
from harness.sessions.view.turns import boundary_of, message_of, newest_boundary
from harness.text import dumps, loads

__all__ = ["ContextAt", "context_of", "read_context"]


@dataclass(frozen=True, slots=True)
class ContextAt:
    """One request as the model saw it.

    request   the id of its `request_begin`
    system    the pieces of the system text, `{name, sha256, text}`; `text` is absent where it is lost
    tools     `{name, sha256, schema}`, the schema being the whole tool
    messages  in the order in which they were sent
    logged    the digest that was noted before the request went out
    digest    the digest of what is here
    exact     whether this is, byte for byte, what was sent
    """

    request: str
    purpose: str
    provider: str
    model: str
    options: Mapping[str, Any]
    system: tuple[EntryDict, ...]
    tools: tuple[EntryDict, ...]
    messages: tuple[MessageDict, ...]
    logged: str
    digest: str
    exact: bool


def read_context(files: SessionFiles, entry_id: str) -> ContextAt:
    """`context_of` a ledger on disk, in a worker; reads it up to the request."""
    data = disk.read(files.ledger)
    found = re.search(rb'^\{"type":"\w+","id":' + re.escape(dumps(entry_id)) + rb"[^\n]*", data, re.MULTILINE)
    entries, _, _ = scan(data[: found.end()] if found else data, START)
    return context_of(entries, entry_id, files)


def context_of(entries: Sequence[Entry], entry_id: str, files: SessionFiles) -> ContextAt:
    """The request that this line begins, or that it belongs to. Raises `ConfigError` where there is none."""
    by_id = {entry.id: index for index, entry in enumerate(entries)}
    request = _request(entries, by_id, entry_id)
    _put_back(request, files)
    begin = request.data
    leaf, binding = by_id.get(str(begin.get("leaf"))), by_id.get(str(begin.get("binding")))
    if binding is not None:
        _put_back(entries[binding], files)
    bound = entries[binding].data if binding is not None else {}
    provider, model = str(bound.get("provider", "")), str(bound.get("model", ""))
    shown = _shown(entries[: leaf + 1], begin.get("select"), files) if leaf is not None else None
    messages = for_provider(shown or [], provider, model)
    made = context_digest(binding_digest(bound), [message_digest(message) for message in messages])
    texts = _texts(entries)
    system = tuple(_whole(item, "text", texts, files) for item in items_of(bound, "system"))
    tools = tuple(_whole(item, "schema", texts, files) for item in items_of(bound, "tools"))
    whole = all("text" in item for item in system) and all("schema" in item for item in tools)
    logged = str(begin.get("contextDigest", ""))
    return ContextAt(
        request=str(begin["id"]),
        purpose=str(begin.get("purpose", "")),
        provider=provider,
        model=model,
        options=bound.get("options") or {},
        system=system,
        tools=tools,
        messages=tuple(messages),
        logged=logged,
        digest=made,
        exact=whole and shown is not None and made == logged,
    )


def _request(entries: Sequence[Entry], by_id: Mapping[str, int], entry_id: str) -> Entry:
    index = by_id.get(entry_id)
    named = entries[index].data.get("requestId") if index is not None else None
    begin = by_id.get(str(named))
    if begin is None or entries[begin].kind != "request_begin":
        raise ConfigError(f"line {entry_id!r} belongs to no model request of this session; give the id of one")
    return entries[begin]


def _shown(before: Sequence[Entry], select: object, files: SessionFiles) -> list[MessageDict] | None:
    """The messages shown by a request whose leaf is the last of these lines; None if some cannot be found."""
    path = active_path(before, damaged=True) or []
    boundary = boundary_of(path)
    kept = [entry for entry in path if entry.seq >= boundary.seq]
    for entry in kept:
        _put_back(entry, files)
    view = project(kept)
    if not isinstance(select, list):
        return view.messages
    lines = {entry.id: message for entry in kept if (message := message_of(entry.data))}
    items = [item if isinstance(item, dict) else str(item) for item in select]
    closed = Closed(path, boundary.seq, _turns_before(path, files), partial(_put_back, files=files))
    return selected_messages(view, items, lines, closed)


def _put_back(entry: Entry, files: SessionFiles) -> None:
    if entry.refers:
        entry.refers = not try_expand(entry.data, partial(read_blob, files.blobs))


def _turns_before(path: Sequence[Entry], files: SessionFiles) -> int:
    newest = newest_boundary(path)
    said = turns_before(newest)
    return count_turns(files, newest.id) if said is None and newest else said or 0


def _texts(entries: Iterable[Entry]) -> dict[str, Any]:
    """Every system text and tool schema that stands in a binding, by its digest."""
    return {
        str(item.get("sha256")): item.get("text", item.get("schema"))
        for entry in entries
        if entry.kind == "binding"
        for item in [*items_of(entry.data, "system"), *items_of(entry.data, "tools")]
        if "text" in item or "schema" in item
    }


def _whole(item: EntryDict, key: str, texts: Mapping[str, Any], files: SessionFiles) -> EntryDict:
    """The item with its text or schema, wherever it was written, if it is there and the one that is named."""
    sha256 = str(item.get("sha256"))
    named = {"name": item.get("name"), "sha256": sha256}
    value = texts.get(sha256)
    if value is None:
        value = _from_file(sha256, key, files)
    raw = value.encode() if isinstance(value, str) and key == "text" else dumps(value)
    return {**named, key: value} if digest(raw) == sha256 else named


def _from_file(sha256: str, key: str, files: SessionFiles) -> Any:
    try:
        raw = read_blob(files.blobs, sha256)
        return raw.decode() if key == "text" else loads(raw)
    except (FileMissing, SessionDamaged, ValueError):
        return None
