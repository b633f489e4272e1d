"""Secrets whose name stands beside them without a sign that assigns: in a call, a pair, a table, an address.

Words are often beside such a name too, so that only what has a digit or another such sign is taken for a secret.
"""

from __future__ import annotations

import re

from harness.sessions.lines.assigned import REDACTED
from harness.sessions.lines.harmless import is_harmless
from harness.sessions.lines.well_known import KEYS_APART, is_secret_name, lowered

__all__ = ["is_login", "without_encoded_login", "without_hooks", "without_paired", "without_web_logins"]

_Q = r"""\\{0,8}["']"""
_KEY = rf"(?:{KEYS_APART}|pass(?:words?|wd|phrases?)?|pwd|secrets?(?:_key_base)?|token|credentials?)"
_BESIDE = re.compile(
    rf"""{_KEY}(?:\\{{0,8}}["'`]|\*{{1,2}})?"""
    rf"""(?:(?P<pair>[\s,]{{1,40}}(?:{_Q})?value(?:{_Q})?\s{{0,3}}[:=]\s{{0,3}}(?:{_Q})?)|(?P<call>,\s{{0,3}}[bru]?{_Q})"""
    r"""|(?P<cell>[ \t]*+\|(?:[ \t]++`?|`))|(?P<variable>[ \t]{1,3}["']?)|(?P<encoded>%3d))"""
)
"""The name of a secret, in small letters, and what may part it from its value."""
_SURE = r"""(?=[^\s"'`|<>]{0,200}?[0-9!@#%^&*+=])"""
_WORD = re.compile(rf"""{_SURE}[^\s"'`|<>,;]{{6,400}}+""")
_SAID = rf"""{_SURE}[^"'\n\\]{{6,400}}+(?={_Q})"""
_QUOTED = re.compile(_SAID)
_FORMS = {
    # Of two members in JSON, in YAML or in an element of XML one has the name, the next the value.
    "pair": (rf"(?i)\b(?:name|key)(?:{_Q})?\s{{0,3}}[:=]\s{{0,3}}(?:{_Q})?[\w.:-]{{0,40}}\Z", _WORD),
    # A call that asks for a name has what is taken where nothing has it.
    "call": (rf"(?i)\b(?:get(?:env)?|setdefault|(?:set|put)env|pop)\(\s{{0,3}}{_Q}[\w.-]{{0,40}}\Z", _QUOTED),
    # In a row of a table the name stands in one cell and the value in the next.
    "cell": (r"\|[ \t]{0,20}[`*]{0,2}(?:\w{1,20}[ _-]){0,2}\Z", _WORD),
    # A Dockerfile and some shells set a variable with a space.
    "variable": (r"""(?:\A|[\n;&|])[ \t]{0,8}(?i:env|setx|setenv)[ \t]{1,3}["']?[A-Z0-9_]{0,40}\Z""", _WORD),
    # One address holds another.
    "encoded": (r"", re.compile(r"""(?i)(?:[^\s"'&<>%]|%(?!26|3b|23)[0-9a-f]{2}){6,400}+""")),
}
_PATTERNS = {form: (re.compile(before), value) for form, (before, value) in _FORMS.items()}
_MARGIN = 80
"""Characters in front of a name in which its form must show: more than the patterns above can take."""
_LOGIN = r"(?=[A-Za-z+/=_-]{0,400}[0-9])(?=[a-z0-9+/=_-]{0,400}[A-Z])(?=[A-Z0-9+/=_-]{0,400}[a-z])[\w+/=-]{16,400}+"
"""A user and a password in base64, or a key: no word has signs of all these kinds."""
_LOGINS = tuple(
    re.compile(rf"(?i)(?P<name>{before})(?P<value>{value})")
    for before, value in (
        # A user and a password, as in `HTTPBasicAuth('bob', '…')`.
        (rf"auth(?:\s{{0,2}}=\s{{0,2}})?\(\s{{0,3}}{_Q}[^\"'\n\\]{{1,100}}{_Q},\s{{0,3}}[bru]?{_Q}", _SAID),
        # A registry, as in `{"auth": "…"}`.
        (rf"auth{_Q}\s{{0,3}}:\s{{0,3}}{_Q}", rf"(?-i:{_LOGIN})(?={_Q})"),
    )
)  # fmt: skip
_HOOK = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d{1,30}/)[\w/-]{8,200}+"
)
_ENCODED_ADDRESS = re.compile(
    r"(?i)(?<=%3a%2f%2f)([^\s%/\"']{1,100}%3a)(?:[^\s%\"']|%(?!40|2f)[0-9a-f]{2}){1,200}(?=%40)"
)
_CELL = re.compile(r"""["'`*\s]{0,4}[A-Za-z][\w .-]{0,40}["'`*\s]{0,40}""")
_HEADING = re.compile(rf"{_KEY}[\"'`*]{{0,4}}[ \t]*+(?=[,;\t|\r\n]|\Z)")
_AROUND = " \t\r\n\"'`*"
"""What may stand around the words of a cell."""
_SIGN = re.compile(r"[0-9!@#%^&*+=]")


def is_login(value: object) -> bool:
    """Whether this is a user and a password in base64, or a key, as configurations have it under `auth`."""
    return isinstance(value, str) and re.fullmatch(_LOGIN, value, re.ASCII) is not None


def without_web_logins(text: str) -> str:
    """The text without passwords for HTTP that stand in calls and configurations."""
    for pattern in _LOGINS:
        text = pattern.sub(_instead, text)
    return text


def without_hooks(text: str, low: str) -> str:
    """The text without the secret part of addresses that let anybody post; `low` is the text in small letters."""
    return _HOOK.sub(rf"\1{REDACTED}", text) if "hooks" in low else text


def without_encoded_login(text: str) -> str:
    """The text without passwords in addresses that other addresses hold."""
    return _ENCODED_ADDRESS.sub(rf"\1{REDACTED}", text)


def without_paired(text: str) -> str:
    """The text without what stands beside the name of a secret, or in a column below it."""
    low = lowered(text)
    parts: list[str] = []
    done = 0
    for found in _BESIDE.finditer(low):
        if found.start() >= done and (value := _value(text, found)) is not None:
            parts += (text[done : value.start()], REDACTED)
            done = value.end()
    if parts:
        text = "".join([*parts, text[done:]])
        low = lowered(text)
    return _without_columns(text, low) if "\n" in text else text


def _value(text: str, found: re.Match[str]) -> re.Match[str] | None:
    """The secret that stands behind a name, if what stands before it makes it one."""
    form = found.lastgroup or ""
    if form == "variable" and not text[found.start()].isupper():
        return None
    before, after = _PATTERNS[form]
    value = after.match(text, found.end())
    if value is None or value[0].startswith(REDACTED) or is_harmless("", value[0]):
        return None
    return value if before.search(text[max(0, found.start() - _MARGIN) : found.start()]) else None


def _instead(found: re.Match[str]) -> str:
    is_none = REDACTED in found["value"] or is_harmless("", found["value"])
    return found[0] if is_none else f"{found['name']}{REDACTED}"


def _without_columns(text: str, low: str) -> str:
    """The text without what stands below such a name in a table."""
    parts: list[str] = []
    done = at = 0
    while (found := _HEADING.search(low, at)) is not None:
        begin, end = low.rfind("\n", at, found.start()) + 1 or at, low.find("\n", found.end())
        if end < 0:
            break
        at = end + 1
        if named := _header(text[begin:end]):
            parts.append(text[done:at])
            at = done = _end_of_rows(text, at, *named, parts)
    return "".join([*parts, text[done:]]) if parts else text


def _header(line: str) -> tuple[str, frozenset[int], int] | None:
    """What parts the cells of a header, which of them name secrets, and how many there are."""
    sign = next((sign for sign in "|\t;," if sign in line), "")
    cells = line.split(sign) if sign else []
    named = frozenset(number for number, cell in enumerate(cells) if is_secret_name(cell.strip(_AROUND)))
    is_one = named and all(_CELL.fullmatch(cell) or not cell.strip() for cell in cells)
    return (sign, named, len(cells)) if is_one else None


def _end_of_rows(text: str, start: int, sign: str, columns: frozenset[int], width: int, parts: list[str]) -> int:
    """Where the rows of a table end; they go to the parts."""
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        cells = text[start:end].split(sign)
        if len(cells) != width:
            break
        parts.append(sign.join(_cell(cell) if number in columns else cell for number, cell in enumerate(cells)))
        start = end
    return start


def _cell(cell: str) -> str:
    plain = cell.strip(_AROUND)
    is_secret = len(plain) >= 6 and _SIGN.search(plain) and " " not in plain and not is_harmless("", plain)
    return cell.replace(plain, REDACTED) if is_secret and plain != REDACTED else cell
