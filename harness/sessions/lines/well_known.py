"""The names under which secrets stand, and what is a secret of what a text or an object has under them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.sessions.lines.assigned import DONE, LONG_QUOTES, REDACTED, TYPE, closes, end_of_block, end_of_brackets
from harness.sessions.lines.harmless import is_filled_in, is_harmless
from harness.sessions.lines.json_text import json_in
from harness.text import dumps

__all__ = [
    "KEYS",
    "KEYS_APART",
    "hidden",
    "is_schema",
    "is_secret_name",
    "lowered",
    "may_have_names",
    "without_assigned",
]

_ACCOUNTS = "db|database|mysql|pg|postgres|redis|smtp|imap|mail|ftp|ssh|user|admin|root|login|http|proxy|auth|basic"
_ACCOUNT = re.compile(rf"(?i)(?:^|[^a-z])(?:{_ACCOUNTS})_$")
_KEY_WORDS = ("api", "access", "account", "private", "secret", "auth", "signing", "encryption")
KEYS = f"(?:{'|'.join(_KEY_WORDS)})[_-]?key"
# Each branch begins with a letter: so the search finds quickly where none of them can begin.
KEYS_APART = "|".join(f"{word}[_-]?key" for word in _KEY_WORDS)
_NAMES = re.compile(
    rf"(?i)(?:.{{0,40}}[_-])?(?:passwords?[0-9]{{0,2}}|passwd|passphrase|pwd|secrets?|token|authorization|credentials?"
    rf"|{KEYS}s?|(?:access|auth|id|refresh|session)token|clientsecret|secret_key_base|(?:{_ACCOUNTS})_pass)"
    r"|(?-i:[A-Z0-9_]{1,40}_PASS|[a-z0-9]{1,40}(?:Password|Secret|ApiKey))"
)
_ASSIGNED = re.compile(
    rf"""(?i)(?=[pstaec])(?P<name>p(?:ass(?:words?|wd|phrase)[0-9]{{0,2}}|wd|(?<=[a-z0-9]_p)ass)|s(?:ecret_key_base|ecrets?)"""
    rf"""|token|credentials?(?=\\{{0,8}}["'])|{KEYS}s?)"""
    r"""(?P<sign>(?P<close>\\{0,8}["'](?P<index>\])?)?[ \t]*+\s{0,3}(?:=>|[:+?]=|[:=](?!=))[ \t]*+\s{0,3})"""
)
_NEAR_NAME = re.compile(rf"pass|pwd|secret|token|credential|{KEYS_APART}")
"""How such a name begins, in small letters."""
_QUOTE = re.compile(r"""\\{0,8}["']""")
_PREFIX = re.compile(r"""(?:\$(?=')|(?i:[bfru]|[bf]r|r[bf])(?=\\{0,8}["']))""")
_GIVEN = re.compile(r"[ \t]+[=+?]")
"""The sign behind a name to which a program gives something."""
_QUOTE_OR_END = re.compile(r"""\\*["']|\n""")
_APOSTROPHE = re.compile(r"(?<=\w)(?<!\b[bBrRuU])'(?=\w)")
_PLAIN = re.compile(r"""(?:[^\s"'&,;<>(){}\[\]\\]|\\(?![\\"']))++""")
_OF_ENVIRONMENT = re.compile(r"""(?:[^\s"'&<>(){}\[\]\\]|\\(?![\\"']))++""")
_BEGINS_LINE = re.compile(r"(?:\A|[\n\r])[ \t]{0,8}(?:export[ \t]{1,3})?[A-Z0-9_]{0,40}\Z")
_BEGINS_NAME = re.compile(r"(?<![\w.\\-])[\w.-]{0,60}\Z|(?<=\\[nrt])\w{0,60}\Z")
"""From where a name has letters before those that make it one; behind an escaped end of a line it begins anew."""
_MARGIN = 60
"""Characters in front of a name in which its line must begin: more than the pattern above can take."""
_LINE = 1000
"""Characters of a line in which it is looked whether a quote opens or closes."""
_BRACKETS = 4000
"""Characters within which what a bracket opens must be closed."""
_DEEPEST = 8
"""Brackets in one another, up to which it is looked what they hold."""
_LEAST = 1000
"""The smallest number that may be a secret: smaller ones count something."""
_DIGIT = re.compile(r"[0-9]")
_SIGN = re.compile(r"[0-9!@#%^&*+=]")
# What says of what kind a secret is, or what became of it.
_KIND = re.compile(
    r"(?i)(?:string|secretstr|unicode|varchar|optional|required|boolean|number|integer|object|undefined|default"
    r"|incorrect|invalid|missing|changed|expired|protected|disabled|enabled|unknown)[.!?|]?"
)
_CODE = re.compile(
    r"(?:self|this|cls|args|config|settings|request|req|ctx|user|data|form|body|opts|options|params|props|os|process|env)"
    r"(?:\??\.[A-Za-z_]\w*)+|[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)*\??\.[A-Za-z_]*(?:pass|pwd|secret|token|key|value|text)[A-Za-z_]*"
)
_VARIABLE = re.compile(r"[A-Za-z_]*(?:pass|pwd|secret|token|key)[A-Za-z_]*", re.IGNORECASE)
# In a shell a word may have several quotes: `'it'"'"'s'`.
_JOINED_QUOTES = re.compile(r"""["'](?:"[^"\n]{0,200}+"|'[^'\n]{0,200}+'|\\'){1,20}+""")
_JOINED = re.compile(r"""["'`]\s{0,3}[+.,)]|\s{1,3}\+\s""")
_KINDS = frozenset({"type", "kind", "scheme"})
"""Members that say what a token of a parser, or a way to log in, is: a word that may stand under the name alone too."""
_LOGPROB = re.compile(r"""\\{0,8}["']\s{0,3},\s{0,20}\\{0,8}["']logprob""")
"""What comes behind a token that a model has written."""
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_SCHEMA = frozenset({"$ref", "anyOf", "oneOf", "allOf", "enum", "description"})
_SCHEMA_WORDS = _SCHEMA | {
    *("type", "title", "default", "format", "minLength", "maxLength", "pattern", "items", "properties", "required"),
    *("examples", "example", "const", "nullable", "additionalProperties", "minimum", "maximum", "minItems", "maxItems"),
    *("$defs", "definitions", "readOnly", "writeOnly", "deprecated", "uniqueItems", "not"),
}


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name in an object is a secret."""
    return _NAMES.fullmatch(name) is not None


def is_schema(item: Mapping[str, Any]) -> bool:
    """Whether an object describes a member of this name, and is none: a parameter called `password` is no secret."""
    kind = item.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    is_one = all(isinstance(each, str) and each in _TYPES for each in kinds) or not _SCHEMA.isdisjoint(item)
    return is_one and all(key in _SCHEMA_WORDS or key.startswith("x-") for key in item)


def hidden(item: Any, name: str = "") -> Any:
    """What stands under the name of a secret: every text and large number in it goes; in objects numbers stay.

    What is none stays, by this name: see `is_harmless`.
    """
    if isinstance(item, str):
        return REDACTED if item and not is_harmless(name, item) else item
    if type(item) in (int, float):
        return REDACTED if abs(item) >= _LEAST else item
    if isinstance(item, Mapping):
        return {
            key: member if type(member) in (int, float) else hidden(member, name if key in _KINDS else "")
            for key, member in item.items()
        }
    if isinstance(item, list | tuple):
        return [hidden(member) for member in item]
    return item


def may_have_names(low: str) -> bool:
    """Whether such a name is in a text, which is given in small letters."""
    return _NEAR_NAME.search(low) is not None


def lowered(text: str) -> str:
    """The text in small letters, each at the place of its sign; to look for words there takes a tenth of the time."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(sign.lower()[0] for sign in text)


def without_assigned(text: str) -> str:
    """The text without what it assigns to such names; words of prose and of programs are no secrets."""
    parts: list[str] = []
    done = at = 0
    for near in _NEAR_NAME.finditer(lowered(text)):
        if near.start() < at or (found := _ASSIGNED.match(text, near.start())) is None:
            continue
        at = found.end()
        if (taken := _taken(text, found)) is not None:
            start, end, instead = taken
            parts += (text[done:start], instead)
            done = at = end
    return "".join([*parts, text[done:]]) if parts else text


def _taken(text: str, found: re.Match[str]) -> tuple[int, int, str] | None:
    """From where to where a secret stands, and what stands there instead; None if there is none.

    What is passed over stands there itself.
    """
    if found["name"] == "pass" and not _ACCOUNT.search(text[max(0, found.start() - 10) : found.start()]):
        return None  # `DB_PASS=` and `db_pass=`, not `first_pass=`
    if (end := end_of_block(text, found.start(), found.end())) >= 0 and ":" in found["sign"]:
        return found.end(), end, REDACTED
    start = _begin_of_quote(text, found)
    if DONE.match(text, start):
        return None
    if text.startswith(LONG_QUOTES, start):
        return _long(text, start)
    if quote := _QUOTE.match(text, start):
        return _quoted(text, found, quote)
    if found["index"]:
        return None  # `items["password"] = made` is a program
    return _bracketed(text, found) if text.startswith(("{", "["), start) and found["close"] else _plain(text, found)


def _begin_of_quote(text: str, found: re.Match[str]) -> int:
    """Where what is assigned begins: behind its type and the prefix of a quote, if a quote comes next."""
    start = found.end()
    typed = TYPE.match(text, start) if found["sign"].strip() == ":" else None
    at = typed.end() if typed else start
    prefix = _PREFIX.match(text, at)
    at = prefix.end() if prefix else at
    return at if _QUOTE.match(text, at) else start


def _long(text: str, start: int) -> tuple[int, int, str] | None:
    end = text.find(text[start : start + 3], start + 3)
    end = len(text) if end < 0 else end
    return (start + 3, end, REDACTED) if text[start + 3 : end].strip() else None


def _quoted(text: str, found: re.Match[str], quote: re.Match[str]) -> tuple[int, int, str] | None:
    if not found["close"] and _is_closing(text, quote):
        return None
    start = quote.end()
    marks = _QUOTE_OR_END.finditer(text, start)
    mark = next((each for each in marks if each[0] == "\n" or closes(each[0], quote[0])), None)
    end, is_closed = (mark.start(), mark[0] != "\n") if mark else (len(text), False)
    is_word = len(quote[0]) == 1 and found["sign"].rstrip().endswith("=")
    if is_word and (joined := _JOINED_QUOTES.match(text, end)) and text[joined.end() - 1] == quote[0]:
        end = joined.end() - 1
    value = text[start:end]
    is_filled = text[quote.start() - 1] in "fF" and "{" in value
    is_none = is_filled or _LOGPROB.match(text, end) or not _is_quoted_secret(found, value, is_closed)
    return None if is_none else (start, end, REDACTED)


def _is_closing(text: str, quote: re.Match[str]) -> bool:
    """Whether a quote ends what began before the name, as in `ask("Password: ")`."""
    begin = max(0, quote.start() - _LINE)
    before = text[begin : quote.start()]
    if "\n" not in before and begin:
        return False  # the beginning of the line is not seen
    line = _APOSTROPHE.sub("", before.rpartition("\n")[2])
    return sum(each[0] == quote[0] for each in _QUOTE.finditer(line)) % 2 == 1


def _is_quoted_secret(found: re.Match[str], value: str, is_closed: bool) -> bool:
    plain = value.strip()
    if len(plain) < 3 or _KIND.fullmatch(plain) or _JOINED.match(value) or _is_none(found, plain):
        return False
    is_word = is_closed and len(plain) > 3 and not re.search(r"\s", value)
    return bool(_is_sure(found) or is_word or _DIGIT.search(value))


def _is_none(found: re.Match[str], plain: str) -> bool:
    return is_filled_in(plain) or is_harmless(_name_of(found), plain)


def _name_of(found: re.Match[str]) -> str:
    """The whole name, by which `DB_PWD` is told from `PWD`; the name of nothing where it is too long."""
    begins = _BEGINS_NAME.search(found.string, max(0, found.start() - _MARGIN), found.start())
    return found.string[begins.start() : found.end("name")] if begins else ""


def _bracketed(text: str, found: re.Match[str]) -> tuple[int, int, str] | None:
    """An object or a list under the name of a secret, where it is JSON, or JSON in a quoted text."""
    start = found.end()
    near = text[start : start + _BRACKETS]
    end = end_of_brackets(near, 0, _DEEPEST)
    said = near[:end]
    value = json_in(said)
    is_deep = value is None and '\\"' in said
    if is_deep:
        inner = json_in(f'"{said}"')
        value = json_in(inner) if isinstance(inner, str) else None
    if (
        value is None
        or (isinstance(value, dict) and is_schema(value))
        or (made := hidden(value, _name_of(found))) == value
    ):
        return None
    instead = dumps(made).decode()
    return start, start + end, dumps(instead).decode()[1:-1] if is_deep else instead


def _plain(text: str, found: re.Match[str]) -> tuple[int, int, str] | None:
    plain = _OF_ENVIRONMENT if _is_of_environment(text, found) else _PLAIN
    value = plain.match(text, found.end())
    if value is None or (
        "=>" in found["sign"] and not found["close"] and text[found.start() - 1 : found.start()] != ":"
    ):
        return None
    is_called = text.startswith(("(", "["), value.end())
    is_none = is_called or _is_code(text, found, value) or _is_none(found, value[0])
    is_secret = not is_none and _is_plain_secret(found, value[0])
    # What is none is passed over: to look for names within it would take more than one pass.
    return value.start(), value.end(), REDACTED if is_secret else value[0]


def _is_of_environment(text: str, found: re.Match[str]) -> bool:
    """Whether a line assigns this to a variable of the environment: then no comma ends the value."""
    before = text[max(0, found.start() - _MARGIN) : found.start()]
    return found["sign"] == "=" and found["name"].isupper() and _BEGINS_LINE.search(before) is not None


def _is_code(text: str, found: re.Match[str], value: re.Match[str]) -> bool:
    """Whether a value is a name that a program gives to something: `connect(password=password)`."""
    if _KIND.fullmatch(value[0]) or _CODE.fullmatch(value[0]):
        return True
    is_argument = text.startswith((",", ")"), value.end()) or _GIVEN.match(found["sign"])
    return bool(is_argument and not found["name"].isupper() and _VARIABLE.fullmatch(value[0]))


def _is_plain_secret(found: re.Match[str], value: str) -> bool:
    if len(value) < 6:
        return _is_sure(found) and len(value) > 3 and bool(_SIGN.search(value))
    return _is_sure(found) or bool(_DIGIT.search(value))


def _is_sure(found: re.Match[str]) -> bool:
    name = found["name"].lower()
    return "pass" in name or name == "pwd"
