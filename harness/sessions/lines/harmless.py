"""What stands under the name of a secret and is none: a folder, a place to fill in, a word of a protocol.

What is in doubt is a secret. In a text more is taken for a place to fill in than in an object: programs stand there.
"""

from __future__ import annotations

import re

__all__ = ["is_filled_in", "is_harmless"]

_VARIABLE = r"(?:[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,8}|PASSWORD|PASSWD|SECRET|TOKEN)"
"""A name as variables of the environment have it: one word in capitals may be a password."""
_PLACEHOLDER = re.compile(
    rf"\$(?:{_VARIABLE}|\{{{_VARIABLE}\}})"
    r"|\$\{\{ ?(?:env|github|inputs|matrix|needs|secrets|steps|vars)(?:\.[A-Za-z_][\w-]{0,60}){1,4} ?\}\}"
    r"|\{\{ [a-z_]{1,60} \}\}"
    r"|<(?=[^<>]{0,80}(?: |…|\.\.\.|(?i:your)))[A-Za-z._…' -]{1,80}>"
)
# What programs and templates put into a text. JSON in braces is none, nor a variable that brings a value of its own.
_IN_PROGRAM = re.compile(
    r"\$[A-Z_][A-Z0-9_]*|\$[a-z_]*(?:pass|pwd|secret|token|key)[a-z_]*|\$\([^()]*\)|<[^<>]*>"
    r"""|[$#]?\{+(?![^{}]*(?:["']\s{0,3}:|:[-=][^}$]))[^{}]*\}+"""
    r"|%s|%\(\w+\)s|\*+|\.{3}|:[a-z_]+|\?"
)
_FOLDERS = frozenset({"pwd", "PWD", "OLDPWD"})
"""Names of the folder that a program works in; `DB_PWD` and `userpwd` are passwords."""
_ROOTED = re.compile(r"(?:~|[A-Za-z]:)?[/\\][\w.@ +~/\\:;,-]{0,400}|~")
_OF_SYSTEM = re.compile(r"/(?:etc|dev|(?:var/)?run/secrets)(?:/[\w.-]{1,60}){1,8}")
"""Files of a system, which have this name everywhere."""
_KEY_FILE = re.compile(r"(?i)(?:.{0,60}[^a-z])?private[_-]?key")
"""Names under which the file of a key stands as often as the key."""
_FILE = re.compile(
    r"(?:~|\.{1,2})?(?=[^/]{0,60}/)/?(?:[\w.@-]{1,60}/){0,20}[\w@-]{1,60}"
    r"\.(?:pem|key|crt|cer|p12|pfx|jks|json|ya?ml|toml|ini|env|txt|conf|gpg|pub)"
)
_WEAK = frozenset({"token", "credentials", "authorization"})
"""Names that programs give to other things too; `api_token` is none of them."""
_WORDS = frozenset(
    {
        *("include", "omit", "same-origin", "required", "optional", "none", "null", "true", "false"),
        *("basic", "bearer", "digest", "negotiate", "oauth", "oauth2", "jwt", "string", "number", "integer", "boolean"),
        *("ident", "identifier", "keyword", "literal", "operator", "punctuator", "punctuation", "delimiter", "comment"),
        *("whitespace", "newline", "indent", "dedent", "eof"),
    }
)
"""What protocols and parsers say under such a name."""


def is_harmless(name: str, value: str) -> bool:
    """Whether this is no secret, though it stands under the name of one."""
    plain = value.strip()
    if _PLACEHOLDER.fullmatch(plain) or _OF_SYSTEM.fullmatch(plain):
        return True
    if name in _FOLDERS:
        return _ROOTED.fullmatch(plain) is not None
    if name.lower() in _WEAK:
        return plain.lower() in _WORDS
    return _KEY_FILE.fullmatch(name) is not None and _FILE.fullmatch(plain) is not None


def is_filled_in(value: str) -> bool:
    """Whether a program or a template puts a value here; so only in a text, where such things stand."""
    return _IN_PROGRAM.fullmatch(value.strip()) is not None
