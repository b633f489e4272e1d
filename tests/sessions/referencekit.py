"""What can be said that names a content, and what only looks so."""

import hashlib
from collections.abc import Callable
from itertools import count
from typing import Any

from harness.sessions import SessionTree
from harness.sessions.lines.layout import Owner
from harness.sessions.tree.results import keep_result

OWNER = Owner("s-1", "notes", ("alice",))
SUM = "ab" * 32
LONG = "x" * 300_000
IDS = count()
Write = Callable[[SessionTree], Any]


def said(role: str, *blocks: dict[str, Any], **rest: Any) -> Write:
    message = {"id": f"m-{next(IDS)}", "role": role, "content": [*blocks], **rest}
    return lambda tree: tree.add_message(message, via="hook")


def noted(kind: str, /, **fields: Any) -> Write:
    return lambda tree: tree.add(kind, fields)


def bound(system: str = "Be brief.", schema: Any = None, options: Any = None) -> Write:
    tools = [{"name": "t", "schema": schema or {}}]
    return lambda tree: tree.bind([{"name": "p", "text": system}], tools, "m", "p", options)


def look_alikes(sha256: str) -> list[dict[str, Any]]:
    """Objects of a stranger that look like what this library writes, alone and in others."""
    reference = {"sha256": sha256, "bytes": 3}
    both = [{"stored": reference}, {"media": {**reference, "mediaType": "image/png"}}]
    image = {"type": "image", "media": reference}
    return [
        *both, {"a": both[0], "b": [both[1]]}, {"stored": reference, "media": reference}, image,
        {"type": "toolResult", "id": "1", "name": "n", "content": [image]}, {"content": [both[0], image]},
        {"type": "message", "message": {"content": [image]}}, {"kind": "eviction", "data": {"media": reference}},
        {"stored": {"sha256": sha256}}, {"stored": {"apples": 3}}, {"stored": {}}, {"stored": 5},
        {"files": [{"sha256": sha256}]},
    ]  # fmt: skip


def use(value: Any) -> dict[str, Any]:
    return {"type": "toolUse", "id": "1", "name": "n", "input": value}


def result(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "toolResult", "id": "1", "name": "n", "content": [*blocks]}


HELD: dict[str, Callable[[Any], Write]] = {
    "the input of a tool": lambda value: said("assistant", use(value)),
    "a member of the input": lambda value: said("assistant", use({"stored": value, "media": value})),
    "a block of a stranger": lambda value: said("assistant", {**value, "type": "theirs", "held": value}),
    "a block in a result": lambda value: said("tool", result({"type": "theirs", "held": value, "stored": value})),
    "a payload of a provider": lambda value: said(
        "assistant", {"type": "text", "text": "", "opaque": {"provider": "p", "model": "m", "data": value}}
    ),
    "the meta of a message": lambda value: said("user", {"type": "text", "text": "hi"}, meta=value),
    "a field of a message": lambda value: said("user", {"type": "text", "text": "hi"}, theirs=value),
    "a field of a message that is called as the list is": lambda value: said(
        "user", {"type": "text", "text": "hi"}, files=[value, value.get("stored")]
    ),
    "a long message": lambda value: said("user", {"type": "text", "text": LONG}, use(value), meta=value, theirs=value),
    "a state": lambda value: noted("state", module="plan", value=value),
    "a long state": lambda value: noted("state", module="plan", value={"text": LONG * 4, **value}),
    "an entry of an application": lambda value: noted("custom", kind="theirs", data=value),
    "an entry of a type of its own": lambda value: noted("theirs", one=value, two={"media": value}),
    "an event": lambda value: noted("event", kind="theirs", data=value),
    "a validated output": lambda value: noted("artifact", turn="t", payload=value, digest="d"),
    "a card": lambda value: noted("turn_card", turn="t", did=[value]),
    "the options of a request": lambda value: bound(options=value),
    "a tool that is offered": lambda value: bound(schema=value),
}


async def written(tree: SessionTree, *writes: Write) -> None:
    async with tree.writing():
        tree.add_message({"id": "u-0", "role": "user", "content": [{"type": "text", "text": "hi"}]}, via="user")
        for write in writes:
            write(tree)


def said_in(tree: SessionTree) -> list[dict[str, Any]]:
    placed = ("timestamp", "prevHash", "seq")
    return [{key: value for key, value in entry.data.items() if key not in placed} for entry in tree.path()]


PICTURE = b"pixels"
PIXELS = hashlib.sha256(PICTURE).hexdigest()
IMAGE = {"type": "image", "media": {"sha256": PIXELS, "mediaType": "image/png", "bytes": 6}}


def pictured(role: str, *blocks: dict[str, Any]) -> Write:
    message = {"id": "m-1", "role": role, "content": [*blocks]}
    return lambda tree: tree.add_message(message, via="hook", media={PIXELS: PICTURE})


def kept_by_an_application(tree: SessionTree) -> None:
    tree.add("custom", {"kind": "theirs", "media": {"sha256": tree.keep(PICTURE), "bytes": 6}})


NAMED: dict[str, Write] = {
    "a long block": said("user", {"type": "text", "text": LONG}),
    "blocks that are long together": said("user", *[{"type": "text", "text": LONG[:200_000]}] * 6),
    "a long field of a message": said("user", {"type": "text", "text": ""}, meta={"note": LONG * 4}),
    "a long state": noted("state", module="plan", value={"note": LONG * 4}),
    "a long prompt": bound(system=LONG),
    "a long schema": bound(schema={"description": LONG}),
    "long options": bound(options={"note": LONG * 4}),
    "a picture": pictured("user", IMAGE),
    "a picture whose digest is not named first": pictured(
        "user", {"type": "image", "media": dict(reversed(IMAGE["media"].items()))}
    ),
    "a picture in a result": pictured("tool", result(IMAGE)),
    "a picture in a result in a result": pictured("tool", result(result(IMAGE))),
    "a picture in a long result": pictured("tool", result({"type": "text", "text": LONG}, IMAGE)),
    "a long picture": pictured("user", {**IMAGE, "opaque": {"provider": "p", "model": "m", "data": LONG}}),
    "a picture among blocks that are long together": pictured(
        "user", IMAGE, *[{"type": "text", "text": LONG[:200_000]}] * 6
    ),
    "a result that was evicted": lambda tree: keep_result(tree, "call", "tool", LONG),
    "a content that an application keeps": kept_by_an_application,
}
