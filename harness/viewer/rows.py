"""From the normal form of a turn to what the templates print: folded tool runs, previews, tags.

Nothing here knows a format; adding one changes no page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

import orjson

from harness.viewer.shown import first_words

__all__ = ["Call", "Part", "Row", "row_of"]

Turn: TypeAlias = Mapping[str, Any]
"""A stitched turn: results stand inside their calls."""

Kind: TypeAlias = Literal["markdown", "plain", "thinking", "tools", "picture", "other"]

_PARTS = 20
"""Blocks of a result that are shown."""
_FILES = 50
"""Files of a call that are named."""
_LONGEST = 20_000
"""Characters of what is written out as JSON: names in it count for nothing where a reader cuts a block."""
_SPOKEN = frozenset({"prompt", "queued", "answer"})
_NAMES = {
    "prompt": "You",
    "queued": "You, while it worked",
    "answer": "Assistant",
    "orphan": "Result without a call",
    "results": "Result",
    "compaction": "Compaction",
    "context": "Context",
    "meta": "Harness",
}


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its result; `state` is `open` where there is none, never taken for success.

    `left` and `unnamed` are the blocks of the result and the files that are not among those shown, `more` the
    characters of both that were not kept.
    """

    name: str
    preview: str
    arguments: str
    state: Literal["ok", "failed", "open"]
    result: tuple[Part, ...] = ()
    files: tuple[str, ...] = ()
    id: str = ""
    exit_code: int | None = None
    left: int = 0
    unnamed: int = 0
    more: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a row. `more` is the number of characters that were not kept."""

    kind: Kind
    text: str = ""
    preview: str = ""
    more: int = 0
    calls: tuple[Call, ...] = ()
    media: Mapping[str, Any] = field(default_factory=dict)
    withheld: bool = False

    @property
    def failed(self) -> int:
        """Calls of this run that failed."""
        return sum(call.state == "failed" for call in self.calls)

    @property
    def open(self) -> int:
        """Calls of this run without a result."""
        return sum(call.state == "open" for call in self.calls)

    @property
    def names(self) -> str:
        """The tools of this run, each once, in the order of their first call."""
        return first_words(", ".join(dict.fromkeys(first_words(call.name) for call in self.calls)))


@dataclass(frozen=True, slots=True)
class Row:
    """A turn as a page shows it; `folded` rows show one line until they are opened.

    `left` blocks of it are not shown, from the block number `next` on.
    """

    key: str
    kind: str
    name: str
    parts: tuple[Part, ...]
    at: str = ""
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    final: bool = False
    aside: str = ""
    folded: bool = False
    preview: str = ""
    message_id: str = ""
    left: int = 0
    next: int = 0


def row_of(turn: Turn) -> Row:
    """The row of a turn, whatever its fields hold."""
    kind = str(turn.get("kind", ""))
    parts = tuple(_runs(_parts(turn.get("content"), spoken=kind in _SPOKEN)))
    name = _NAMES.get(kind, str(turn.get("role", "?")))
    tag = _event(turn.get("content")) or turn.get("tag")
    return Row(
        key=str(turn.get("key", "")),
        kind=kind,
        name=f"{name}: {tag}" if tag else name,
        parts=parts,
        at=str(turn.get("at") or ""),
        model=str(turn.get("model") or ""),
        usage=_mapping(turn.get("usage")),
        final=turn.get("final") is True,
        aside=str(turn.get("aside") or ""),
        folded=kind in ("context", "meta", "compaction") or turn.get("aside") == "abandoned",
        preview=next((part.preview for part in parts if part.preview), ""),
        message_id=str(turn.get("id") or ""),
        left=_whole(turn.get("left")),
        next=_whole(turn.get("next")),
    )


def _event(content: object) -> str:
    """What happened, for a turn that is an event and nothing else."""
    first = _list(content)[:1]
    is_event = len(_list(content)) == 1 and isinstance(first[0], dict) and first[0].get("type") == "event"
    return str(first[0].get("kind")) if is_event and isinstance(first[0], dict) else ""


def _parts(content: object, *, spoken: bool) -> Iterator[Part]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield _part(block, spoken=spoken)


def _part(block: Mapping[str, Any], *, spoken: bool) -> Part:
    kind = block.get("type")
    if kind in ("text", "thinking"):
        return _text(block, "markdown" if spoken else "plain", thinking=kind == "thinking")
    if kind == "toolUse":
        return Part("tools", calls=(_call(block),))
    if kind == "toolResult":
        return Part("tools", calls=(_orphan(block),))
    if kind in ("image", "audio", "video", "file"):
        return _media(block)
    if kind == "unreadable_image":
        return Part("other", "A picture whose data cannot be read.")
    if kind == "error":
        return Part("other", str(block.get("text") or ""), preview="An error, as the harness noted it:")
    if kind == "patch":
        return Part("other", "\n".join(str(name) for name in _list(block.get("files"))), preview="Files changed:")
    if kind == "event":
        return _written("plain", block.get("data"), first_words(_line(block.get("data"))))
    return _written("other", block, f"Unknown kind of block: {first_words(str(kind))}")


def _written(kind: Kind, value: object, preview: str) -> Part:
    text = _json(value)
    return Part(kind, text[:_LONGEST], preview, more=max(0, len(text) - _LONGEST))


def _text(block: Mapping[str, Any], kind: Kind, *, thinking: bool) -> Part:
    text = str(block.get("text") or "")
    return Part(
        "thinking" if thinking else kind,
        text,
        preview=first_words(text),
        more=_more(block),
        withheld=thinking and not text.strip(),
    )


def _more(block: Mapping[str, Any]) -> int:
    return _whole(_mapping(block.get("more")).get("characters"))


def _media(block: Mapping[str, Any]) -> Part:
    media = _mapping(block.get("media"))
    if not media.get("ref"):
        # Nothing is loaded from elsewhere: the address is shown, and that is all.
        return Part("other", f"A {block.get('type')} that is not in the transcript: {block.get('url', 'no address')}")
    return Part("picture", str(block.get("type")), media=media)


def _runs(parts: Iterator[Part]) -> Iterator[Part]:
    """Calls that follow each other are one row."""
    run: list[Call] = []
    for part in parts:
        if part.kind == "tools":
            run.extend(part.calls)
            continue
        if run:
            yield Part("tools", calls=tuple(run))
            run = []
        yield part
    if run:
        yield Part("tools", calls=tuple(run))


def _call(block: Mapping[str, Any]) -> Call:
    given, result = block.get("input"), block.get("result")
    found = _mapping(result)
    state = _state(found) if isinstance(result, dict) else "open"
    exit_code, files = found.get("exitCode"), _list(block.get("files"))
    return Call(
        name=str(block.get("name") or "unknown"),
        preview=first_words(_first_argument(given)),
        arguments=_cut(_json(given)),
        state=state,
        result=_result(found.get("content")),
        files=tuple(str(name) for name in files[:_FILES]),
        id=str(block.get("id") or ""),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        left=max(0, len(_list(found.get("content"))) - _PARTS),
        unnamed=max(0, len(files) - _FILES),
        more=_more(block) + _more(found),
    )


def _result(content: object) -> tuple[Part, ...]:
    return tuple(islice(_parts(content, spoken=False), _PARTS))


def _orphan(block: Mapping[str, Any]) -> Call:
    content = _result(block.get("content"))
    preview = next((part.preview for part in content if part.preview), "")
    name = str(block.get("name") or "a call that is not here")
    left = max(0, len(_list(block.get("content"))) - _PARTS)
    return Call(name, preview, "", _state(block), content, id=str(block.get("id") or ""), left=left, more=_more(block))


def _state(result: Mapping[str, Any]) -> Literal["ok", "failed"]:
    return "failed" if result.get("isError") is True else "ok"


def _first_argument(given: object) -> str:
    if isinstance(given, dict):
        given = next(iter(given.values()), "")
    return given if isinstance(given, str) else _json(given)


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode() if value is not None else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _line(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode() if value else ""


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
