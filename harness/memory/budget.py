"""Cutting a file's text to a number of tokens, openly."""

from __future__ import annotations

from typing import Literal

from harness.models.tokens import estimate_tokens

__all__ = ["both_ends", "within_budget"]

_CHARS_OF_A_TOKEN = 4  # the most that the estimate counts as one token


def within_budget(text: str, tokens: int, source: str, keep: Literal["start", "end"] = "start") -> str:
    """`text` if it has at most `tokens` tokens, else as many whole lines as fit, and a note.

    The note says how many lines are shown and that the rest is in the file `source`. It is part of
    the budget; where not even the note fits, it stands alone, so that nothing is left out silently.
    A single line that is too long is cut within. `keep` says which end is shown. Tokens are
    estimated: four letters of Latin script, or one CJK character.
    """
    if estimate_tokens(text) <= tokens:
        return text
    lines = text.removesuffix("\n").split("\n")
    room = tokens - estimate_tokens(_note(len(lines), len(lines), source, keep)) - 1
    shown = _fitting(lines if keep == "start" else lines[::-1], room)
    note = _note(len(shown), len(lines), source, keep)
    if not shown and (part := _part(lines[0] if keep == "start" else lines[-1], room, keep)):
        shown = [part]
    return "\n".join([*shown, note] if keep == "start" else [note, *shown[::-1]])


def both_ends(text: str, tokens: int, source: str) -> str:
    """`text` if it has at most `tokens` tokens, else its beginning and its end, and a note between them.

    The note says how many characters are left out, and that they are in `source`; it is part of the budget.
    """
    if estimate_tokens(text) <= tokens:
        return text
    half = max(tokens - estimate_tokens(_omitted(len(text), source)) - 2, 0) // 2
    head, tail = _part(text, half, "start"), _part(text, half, "end")
    return "\n".join(part for part in (head, _omitted(len(text) - len(head) - len(tail), source), tail) if part)


def _omitted(chars: int, source: str) -> str:
    return f"[cut: {chars} characters are left out here; {source} has them]"


def _fitting(lines: list[str], room: int) -> list[str]:
    used = 0
    for count, line in enumerate(lines):
        used += estimate_tokens(f"{line}\n")
        if used > room:
            return lines[:count]
    return lines


def _part(text: str, room: int, keep: Literal["start", "end"]) -> str:
    """As much of one line, or text, as fits."""
    size = min(len(text), max(room, 0) * _CHARS_OF_A_TOKEN)
    while size and estimate_tokens(_end_of(text, size, keep)) > room:
        size = size * 3 // 4
    return _end_of(text, size, keep)


def _end_of(text: str, size: int, keep: Literal["start", "end"]) -> str:
    return text[:size] if keep == "start" else text[len(text) - size :]


def _note(shown: int, total: int, source: str, keep: Literal["start", "end"]) -> str:
    whole = f"{shown} of {total} lines are shown whole"
    if keep == "end":
        return f"[cut: the last {whole}; {source} has the rest]"
    return f"[cut: the first {whole}; {source} has the rest, from line {shown + 1} on]"
