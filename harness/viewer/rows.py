"""From the normal form of a turn to what the templates print: folded tool runs, previews, tags.

Nothing here knows a format; adding one changes no page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import orjson

from harness.viewer.shown import first_words

__all__ = ["Call", "Part", "Row", "row_of"]

Turn: TypeAlias = Mapping[str, Any]
"""A stitched turn: results stand inside their calls."""

Kind: TypeAlias = Literal["markdown", "plain", "thinking", "tools", "picture", "other"]

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
    """A tool call with its result; `state` is `open` where there is none, never taken for success."""

    name: str
    preview: str
    arguments: str
    state: Literal["ok", "failed", "open"]
    result: tuple[Part, ...] = ()
    files: tuple[str, ...] = ()
    id: str = ""
    exit_code: int | None = None


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
        return ", ".join(dict.fromkeys(call.name for call in self.calls))


@dataclass(frozen=True, slots=True)
class Row:
    """A turn as a page shows it; `folded` rows show one line until they are opened."""

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
        return Part("plain", _json(block.get("data")), preview=first_words(_line(block.get("data"))))
    return Part("other", _json(block), preview=f"Unknown kind of block: {kind}")


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
    characters = _mapping(block.get("more")).get("characters")
    return characters if isinstance(characters, int) else 0


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
    exit_code = found.get("exitCode")
    return Call(
        name=str(block.get("name") or "unknown"),
        preview=first_words(_first_argument(given)),
        arguments=_json(given),
        state=state,
        result=tuple(_parts(found.get("content"), spoken=False)),
        files=tuple(str(name) for name in _list(block.get("files"))),
        id=str(block.get("id") or ""),
        exit_code=exit_code if isinstance(exit_code, int) else None,
    )


def _orphan(block: Mapping[str, Any]) -> Call:
    content = tuple(_parts(block.get("content"), spoken=False))
    preview = next((part.preview for part in content if part.preview), "")
    name = str(block.get("name") or "a call that is not here")
    return Call(name, preview, "", _state(block), content, id=str(block.get("id") or ""))


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


def _line(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode() if value else ""


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
