"""How many tokens a model takes, as far as its provider's refusals tell."""

from __future__ import annotations

import re

__all__ = ["revealed_window"]

_NUMBER = r"(\d[\d,_']*)"
# The number beside the word that says it is a limit; what was asked for stands beside other words.
_LIMITS = (
    re.compile(rf"(?:\btokens?|\d)\s*>\s*{_NUMBER}"),
    re.compile(
        rf"\b(?:maximum|max\.?)\s+(?:allowed\s+)?(?:context|input|prompt|model|token|number)[^\d.;]{{0,60}}?{_NUMBER}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?:context|token)[\s_-]*(?:length|window|size|limit)s?[^\d.;]{{0,40}}?{_NUMBER}", re.IGNORECASE),
    re.compile(rf"{_NUMBER}\s*(?:tokens?\s*)?(?:maximum|limit)\b", re.IGNORECASE),
)
_LEAST, _MOST = 256, 100_000_000


def revealed_window(text: str) -> int | None:
    """The window that an overflow error names, in tokens; None where it names none that can be one."""
    for limit in _LIMITS:
        for found in limit.finditer(text):
            tokens = int(re.sub(r"\D", "", found[1]))
            if _LEAST <= tokens <= _MOST:
                return tokens
    return None
