"""How much text the built-in tools give a model at once, and how they say that there is more."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["MAX_CHARS", "bounded_list", "shortened", "whole_lines"]

MAX_CHARS = 40_000
"""Characters of one result: about 10 000 tokens."""


def bounded_list(lines: Iterable[str], more: str, *, truncated: bool = False) -> str:
    """Lines as one text, as many as fit; `more` behind them where some are left out."""
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if kept and size > MAX_CHARS:
            truncated = True
            break
        kept.append(shortened(line, MAX_CHARS))
    return "\n".join([*kept, "", f"[{more}]"] if truncated else kept)


def whole_lines(text: str) -> tuple[str, int]:
    """The beginning of a text, cut behind a line, and how many lines it has; at least one line, however long."""
    if len(text) <= MAX_CHARS:
        return text, text.count("\n") + (not text.endswith("\n") and bool(text))
    end = text.rfind("\n", 0, MAX_CHARS) + 1 or text.find("\n") + 1 or len(text)
    return text[:end], text.count("\n", 0, end) or 1


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters of a text, with a mark where it was cut."""
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text) - limit} more characters]"
