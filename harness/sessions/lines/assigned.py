"""What text assigns to a name, found to its end: `name: value`, `"name": {…}`, `--name value`, escaped or not.

A text may be a command line with JSON in it, a log, a header of HTTP, or JSON within JSON: quotes then stand behind
backslashes, and a value ends at the next quote that has as many. What is never closed goes to its end.
"""

from __future__ import annotations

import math
import re

__all__ = [
    "DONE",
    "LONG_QUOTES",
    "REDACTED",
    "TYPE",
    "assignments_to",
    "closes",
    "end_of_block",
    "end_of_brackets",
    "without_values",
]

REDACTED = "[redacted]"

_QUOTE = re.compile(r"""\\*["']""")
_MARK = re.compile(r"""\\*["']|[{}\[\]]""")
_SCHEME = r"(?i:(?:bearer|basic|digest|token)[ \t]+)?"
_WORD = re.compile(_SCHEME + r"""(?:[^\s"',;&}\]\\]|\\(?![\\nrtu"']))++""")
_WITHIN_QUOTES = re.compile(r"""(?:[^\n\r"'\\]|\\(?![nr"']))++""")
_REST_OF_LINE = re.compile(r"(?:[^\n\r\\]|\\(?![nr]))++")
_UNTIL_BLANK = re.compile(_SCHEME + r"""(?:[^\s"'\\]|\\(?![nr])|"[^"\n]*+"|'[^'\n]*+'|["'])++""")
_BEGINS_LINE = re.compile(r"(?:\A|[\n\r])[ \t]{0,40}(?:(?:export|set|env|const|let|var)[ \t]{1,3})?\Z", re.IGNORECASE)
_BEGINS_ESCAPED_LINE = re.compile(r"\\[nr][ \t]{0,40}\Z")
_MARGIN = 54
"""Characters in front of a name in which its line must begin: more than the patterns above can take."""
TYPE = re.compile(
    r"[&*]?[A-Za-z_][\w.]{0,60}(?:\[[\w., |]{0,60}\])?(?:[ \t]{0,3}\|[ \t]{0,3}[\w.]{1,60}){0,3}"
    r"[ \t]{0,3}=(?![=>])[ \t]{0,3}"
)
"""The type that a program gives to a name, before the value."""
_PREFIX = re.compile(r"""(?:\$|[bfru]{1,2})(?=\\*["'])""", re.IGNORECASE)
_GLUED = re.compile(r"""(?:"[^\s"']++"|'[^\s"']++'|\w[^\s"',;&)}\]\\]*+)++""")
"""What a shell joins to a text in quotes."""
_CALL = re.compile(r"""[\w.]*+\((?:[^()"']|"[^"\n]*+"|'[^'\n]*+'|\((?:[^()"']|"[^"\n]*+"|'[^'\n]*+')*+\))*+\)""")
_LONGEST_CALL = 1000
_LAST_LINE = re.compile(r"""(?:\A|(?<=[\n\r]))(?P<margin>[ \t]*+)(?:-[ \t]{1,3})?[\w"'-]*+\Z""")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}[ \t]*+(?=\r?\n)")
LONG_QUOTES = ('"' * 3, "'" * 3)
DONE = re.compile(
    rf"""\\*["']?{re.escape(REDACTED)}|(?:null|None)(?=[\s"',;&)}}\]\\<>|`*]|[.:!?](?!\S)|\Z)|(\\*["'])\1(?!["'\w])"""
)
"""What was taken out already, and what is no value."""


def assignments_to(name: str) -> re.Pattern[str]:
    """What stands in front of a value that is assigned to a name; letter case does not count."""
    begins = r"(?:(?<![\w-])|(?<=\\[nrt]))"
    ends = r"""(?:(?P<close>\\*["']?)[ \t]*+\s{0,3}[ \t]*+(?P<sign>=>|[:+?]=|[:=])[ \t]*+\s{0,3})"""
    return re.compile(rf"(?i){begins}(?P<flag>--?)?{re.escape(name)}(?:{ends}|(?(flag)[ \t]++|(?!)))")


def without_values(text: str, assignments: re.Pattern[str]) -> tuple[str, int]:
    """The text without the values behind what `assignments_to` finds, and how many they were."""
    parts: list[str] = []
    at = times = 0
    while (found := assignments.search(text, at)) is not None:
        end = _end(text, found)
        parts.append(text[at : found.end()])
        if end > found.end():
            parts.append(REDACTED)
            times += 1
        at = max(end, found.end())
        if done := DONE.match(text, at):
            parts.append(done[0])
            at = done.end()
    return "".join([*parts, text[at:]]), times


def _end(text: str, found: re.Match[str]) -> int:
    """Where a value ends; where it begins, if there is none or it was taken out already."""
    start = found.end()
    if DONE.match(text, start):
        return start
    if found["sign"] == ":" and (block := end_of_block(text, found.start(), start)) > start:
        return block
    at = max(start, _end_of(TYPE, text, start)) if found["sign"] == ":" else start
    at = max(at, _end_of(_PREFIX, text, at))
    if text.startswith(LONG_QUOTES, at):
        closing = text.find(text[at : at + 3], at + 3)
        return len(text) if closing < 0 else closing + 3
    if quote := _QUOTE.match(text, at):
        return _end_of_glued(text, found, quote)
    if text.startswith(("{", "["), at):
        return end_of_brackets(text, at)
    plain = _plain(text, found)
    if call := _CALL.match(text, at, at + _LONGEST_CALL):
        return call.end() if plain is _WORD else max(call.end(), _end_of(plain, text, call.end()))
    return max(at, _end_of(plain, text, at))


def _end_of_glued(text: str, found: re.Match[str], quote: re.Match[str]) -> int:
    """Where a quoted text ends with what is joined to it; in `Cookie: a="x"; b=1` that is the line."""
    end = _end_of_quote(text, quote)
    if quote.start() > found.end() and (plain := _plain(text, found)) is _REST_OF_LINE:
        return max(end, _end_of(plain, text, end))
    return end if len(quote[0]) > 1 else max(end, _end_of(_GLUED, text, end))


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where what matches here ends; -1 if nothing does."""
    found = pattern.match(text, start)
    return found.end() if found else -1


def _plain(text: str, found: re.Match[str]) -> re.Pattern[str]:
    """How far a value reaches that stands in no quotes: a word, a word with all its signs, or a line."""
    before = text[max(0, found.start() - _MARGIN) : found.start()]
    if found["sign"] is None or found["sign"] == "=>" or found["close"][-1:] in ("'", '"'):
        return _WORD
    if _BEGINS_LINE.search(before):
        return _REST_OF_LINE if found["sign"] == ":" else _UNTIL_BLANK
    is_header = found["sign"] == ":" and (before[-1:] in ("'", '"') or _BEGINS_ESCAPED_LINE.search(before))
    return _WITHIN_QUOTES if is_header else _WORD


def end_of_block(text: str, name: int, start: int) -> int:
    """Where the lines end that stand deeper than the line of their name, as in YAML; -1 if no such value begins."""
    if (begins := _BLOCK.match(text, start)) is None:
        return -1
    line = _LAST_LINE.search(text, max(0, name - _MARGIN), name)
    depth = len(line["margin"]) if line else 0
    deeper = re.compile(rf"(?:\r?\n(?:[ \t]{{{depth + 1}}}[^\n\r]*+|[ \t]*+(?=[\r\n]|\Z)))*+")
    end = _end_of(deeper, text, begins.end())
    return end if text[begins.end() : end].strip() else -1


def _end_of_quote(text: str, opening: re.Match[str]) -> int:
    for mark in _QUOTE.finditer(text, opening.end()):
        if closes(mark[0], opening[0]):
            return mark.end()
    line_end = text.find("\n", opening.end())
    return len(text) if line_end < 0 else line_end


def end_of_brackets(text: str, start: int, deepest: float = math.inf) -> int:
    """Where the object or list that begins here is closed; the end of the text, if it is not.

    Where it begins, if more than `deepest` of them stand in one another.
    """
    depth, opened = 0, ""
    for mark in _MARK.finditer(text, start):
        sign = mark[0]
        if sign[-1] in "\"'":
            if not opened:
                opened = sign
            elif closes(sign, opened):
                opened = ""
        elif not opened:
            depth += 1 if sign in "{[" else -1
            if depth > deepest:
                return start
            if depth == 0:
                return mark.end()
    return len(text)


def closes(sign: str, opening: str) -> bool:
    """Whether a quote ends what another begins: as deep within other quotes, and no part of what is quoted."""
    depth = len(opening) - 1
    return sign[-1] == opening[-1] and (len(sign) - 1) % (2 * (depth + 1)) == depth
