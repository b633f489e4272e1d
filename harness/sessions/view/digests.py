"""A tool result of a closed turn in short, by its shape: what it was, where it points, and how to see it whole.

Nothing is cut within a line: a line, an address or a value is shown whole, or it is counted. The
same text always gives the same digest, for a request is worked out again from the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.sessions.view.cards import first_sentence
from harness.text import clean, clean_text, dumps, read_json

__all__ = ["SHELLS", "result_digest"]

SHELLS = frozenset(
    {
        "bash", "cmd", "command", "console", "exec", "exec_command", "execute", "execute_command", "powershell",
        "run", "run_command", "run_shell_command", "run_terminal_cmd", "sh", "shell", "shell_command", "terminal",
    }
)  # fmt: skip
"""Tools, by their names in small letters, whose results are the output of a command."""

_SHORT = 300
_ALL_LINES, _END_LINES = 20, 10
_LONG_LINE, _SHORT_VALUE = 500, 120
_ITEMS, _KEYS, _HEADINGS, _WORDS = 50, 60, 40, 60
_ADDRESSES = ("url", "uri", "link", "href")
_HEADING = re.compile(r"\s*#{1,6}\s+\S")
_PARAGRAPHS = re.compile(r"\n\s*\n")


def result_digest(text: str, *, tool: str, is_error: bool, evidence: str, chars: int | None = None) -> str:
    """The text of a result as a closed turn shows it, with the tag by which `recall` finds the whole.

    An error is whole, and so is a text of at most 300 characters or no longer than its digest would
    be: then there is no tag. `evidence` is the result's evidence id. `chars` says how long the whole
    result is where `text` is only its preview.
    """
    if is_error or len(text) <= _SHORT:
        return text
    tag = f"[evidence:{evidence} — {len(text) if chars is None else chars} chars; call recall to expand]"
    digest = "\n".join([*_by_shape(text, shell=tool.casefold() in SHELLS, preview=chars is not None), tag])
    return text if len(text) <= len(digest) else digest


def _by_shape(text: str, *, shell: bool, preview: bool) -> list[str]:
    value = _parsed(text)
    if isinstance(value, dict):
        return _object(value)
    if shell:
        return _output(text, preview=preview)
    if isinstance(value, list):
        return _array("array", value)
    return _prose(value if isinstance(value, str) else text, preview=preview)


def _parsed(text: str) -> Any:
    """The JSON that a text is; None for what is none, and for numbers and the like, which are short enough."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "[", '"'):
        return None
    try:
        return read_json(stripped.encode())
    except ValueError:
        return None


def _output(text: str, *, preview: bool) -> list[str]:
    """What a command printed: all of it if that is short, else its two ends, where it says how it ended."""
    lines = text.strip("\n").split("\n")
    if len(lines) <= _ALL_LINES:
        return [*map(_whole, lines)]
    omitted = f"[{len(lines) - 2 * _END_LINES} lines{' of the preview' if preview else ''} omitted]"
    return [*map(_whole, lines[:_END_LINES]), omitted, *map(_whole, lines[-_END_LINES:])]


def _array(name: str, items: Sequence[Any]) -> list[str]:
    if _are_links(items):
        return [f"{name} of {len(items)} links:", *_some([_link(item) for item in items], _ITEMS)]
    first = [f"first: {_value(items[0], _LONG_LINE)}"] if items else []
    return [f"{name} of {len(items)}", *first]


def _object(value: Mapping[str, Any]) -> list[str]:
    return [f"object of {len(value)} keys:", *_some([_member(*item) for item in value.items()], _KEYS)]


def _member(key: str, value: Any) -> str:
    name = _whole(_line(key))
    if isinstance(value, list):
        return "\n".join(_array(f"{name}: array", value)) if _are_links(value) else f"{name}: array of {len(value)}"
    return f"{name}: {_value(value, _SHORT_VALUE)}"


def _value(value: Any, longest: int) -> str:
    """A value as JSON if it is short, else what it is."""
    shown = dumps(clean(value).value).decode()
    if len(shown) <= longest:
        return shown
    if isinstance(value, dict):
        return f"object of {len(value)} keys: {', '.join(_some([_whole(_line(key)) for key in value], _KEYS))}"
    return f"array of {len(value)}" if isinstance(value, list) else f"text of {len(str(value))} chars"


def _are_links(items: Sequence[Any]) -> bool:
    """Whether these are things with a title or an address, as a search finds them."""
    return bool(items) and all(
        isinstance(item, dict) and any(isinstance(item.get(key), str) for key in ("title", *_ADDRESSES))
        for item in items
    )


def _link(item: Mapping[str, Any]) -> str:
    title = _line(str(item.get("title") or item.get("name") or ""))
    address = next((_line(item[key]) for key in _ADDRESSES if isinstance(item.get(key), str)), "")
    parts = [_whole(title)] if title else []
    return " ".join(["-", *parts, *([f"({_whole(address)})"] if address else [])])


def _prose(text: str, *, preview: bool) -> list[str]:
    """Its headings, how it begins, and its size; of a preview that is not the size of the whole, and it says so."""
    text = clean_text(text)
    lines = text.strip("\n").split("\n")
    headings = [_whole(_line(line)) for line in lines if _HEADING.match(line)]
    opening = _opening("\n".join("" if _HEADING.match(line) else line for line in lines))
    counted = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
    size = f"[{'preview: ' if preview else ''}{counted}, {len(text.encode())} bytes]"
    return [*_some(headings, _HEADINGS), *opening, size]


def _opening(text: str) -> list[str]:
    """The first sentence of the first paragraph that has words; its first line where that sentence goes on and on."""
    for paragraph in _PARAGRAPHS.split(text):
        folded = _line(paragraph)
        if " " in folded or not folded.isascii():
            first_line = _line(paragraph.strip().split("\n")[0])
            return [part for part in (first_sentence(folded), first_line) if _is_short(part)][:1]
    return []


def _is_short(text: str) -> bool:
    return len(text) <= _LONG_LINE and len(text.split()) <= _WORDS


def _some(lines: Sequence[str], most: int) -> list[str]:
    return [*lines] if len(lines) <= most else [*lines[:most], f"[{len(lines) - most} more]"]


def _line(text: str) -> str:
    return " ".join(clean_text(text).split())


def _whole(line: str) -> str:
    """A line as it is; of one that is too long only how long it is."""
    return line if len(line) <= _LONG_LINE else f"[a line of {len(line)} chars]"
