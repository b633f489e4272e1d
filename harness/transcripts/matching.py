"""Words in a text, whatever their letter case and however their accents are written.

Both sides are folded to be compared; where a match stands is said in characters of the text itself, which may be
more or fewer than those of its folded form: `ß` folds to two, an accent of its own and its letter to one.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right

__all__ = ["fold", "place_of"]


def fold(text: str) -> str:
    """The form in which texts are compared."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def place_of(wanted: str, text: str) -> tuple[int, int] | None:
    """Where `wanted`, folded, stands first in `text`: the first character and the one behind the last."""
    at = fold(text).find(wanted)
    if at < 0:
        return None
    if text.isascii():
        return at, at + len(wanted)
    # The longer a beginning of the text, the longer its folded form: both ends can be looked up by halving.
    lengths = range(len(text) + 1)
    start = bisect_right(lengths, at, key=lambda end: len(fold(text[:end]))) - 1
    stop = bisect_left(lengths, at + len(wanted), key=lambda end: len(fold(text[:end])))
    while start > 0 and _goes_on(text[start]):
        start -= 1
    while stop < len(text) and _goes_on(text[stop]):
        stop += 1
    return start, stop


def _goes_on(sign: str) -> bool:
    """Whether a character belongs to the letter in front of it."""
    return unicodedata.category(sign).startswith("M")
