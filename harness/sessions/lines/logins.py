"""Passwords that show only by what stands in front of them: the program that is called, or the word `Basic`.

`-p` is a port to one program, a folder to another, and a password to a third.
"""

from __future__ import annotations

import base64
import binascii
import re

from harness.sessions.lines.assigned import REDACTED

__all__ = ["without_logins"]

_NEAR = 300
"""Characters in front of a password within which its program is looked for."""
_USER = re.compile(r"""(?<!\S)(?P<name>(?:-u|--user|--proxy-user)[ =]?["']?[^\s:"']{1,100}:)[^\s"']{1,200}""")
_SHORT = re.compile(
    r"""(?<![^\s"'])(?P<name>-(?P<flag>[pa])(?P<gap>[ ]{0,2}|["'],[ ]?)(?P<quote>["']?))(?![$<\[({-]|\d{1,5}:\d)"""
    r"""(?:(?<=["'])(?P<said>(?:(?!(?P=quote))[^\n\\]){3,200}+)(?=(?P=quote))|(?P<value>[^\s"'\\|;&<>]{3,200}+))"""
)
_COMMAND_END = re.compile(r"[\n|;&]")
# The password is glued to the flag; with a space between them the word is the database.
_GLUED = re.compile(r"\b(?:mysql|mariadb)(?:-?(?:admin|dump|import|show|check|slap))?\b")
_APART = {
    "p": re.compile(
        r"\bsshpass[\"',\s]{0,4}$|\bmongo(?:sh|dump|restore|import|export)?\b|\b(?:docker|podman|registry) login\b"
    ),
    "a": re.compile(r"\bredis-cli\b"),
}
_PGPASS = re.compile(
    r"(?m)^(?P<name>[\w.*-]{1,200}:(?:543\d|6432|\*):[\w*-]{1,100}:[\w.@*-]{1,100}:)(?!\[redacted\])[^\s:]{3,200}$"
)
"""A line of a .pgpass file."""
_BASIC = re.compile(r"""(?i)(?P<name>\bbasic\s{1,3})(?P<value>[A-Za-z0-9+/]{8,400}+={0,2})(?![A-Za-z0-9+/=])""")


def without_logins(text: str, low: str) -> str:
    """The text without such passwords; `low` is the text in small letters."""
    text = _USER.sub(_user, text) if "curl" in text else text
    text = _SHORT.sub(_short, text) if " -p" in text or " -a" in text or '"-' in text else text
    text = _PGPASS.sub(rf"\g<name>{REDACTED}", text) if ":543" in text or ":*:" in text else text
    return _BASIC.sub(_basic, text) if "basic" in low else text


def _user(found: re.Match[str]) -> str:
    """Of curl only: to other programs `-u 1000:1000` is a user and a group."""
    is_curl = found.string.rfind("curl", max(0, found.start() - _NEAR), found.start()) >= 0
    return f"{found['name']}{REDACTED}" if is_curl else found[0]


def _short(found: re.Match[str]) -> str:
    before = _COMMAND_END.split(found.string[max(0, found.start() - _NEAR) : found.start()])[-1]
    is_glued = found["flag"] == "p" and not found["gap"] and _GLUED.search(before)
    return f"{found['name']}{REDACTED}" if is_glued or _APART[found["flag"]].search(before) else found[0]


def _basic(found: re.Match[str]) -> str:
    """`user:password` in base64; no other word behind `basic` becomes readable text with a colon when it is decoded."""
    value = found["value"].rstrip("=")
    try:
        said = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return found[0]
    return f"{found['name']}{REDACTED}" if ":" in said and said.isprintable() else found[0]
