"""Keeping secrets out of what is stored.

A redactor is a function from a JSON object to a JSON object. It is asked about each message, and about the fields of
each other entry, before anything is written or hashed. The model is shown what is stored, so it sees no more than
that. Tools run with what the model asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from harness.errors import ConfigError

__all__ = ["REDACTED", "Redactor", "default_redactor", "redact_texts", "redacted"]

Redactor: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Gets a message or the fields of an entry, and gives what is to be stored; must not change what it gets."""

REDACTED = "[redacted]"

# Every pattern begins where a run of its characters begins and gives nothing back (`++`), so that no text takes more
# than a few passes.
_SHAPES = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
      (?:sk|rk)[-_](?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{16,}+  # OpenAI, Anthropic, Stripe and others
    | gh[opsur]_[A-Za-z0-9]{20,}+ | github_pat_[A-Za-z0-9_]{20,}+
    | glpat-[A-Za-z0-9_-]{16,}+
    | xox[abeoprs]-[A-Za-z0-9-]{10,}+                  # Slack
    | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])         # AWS
    | AIza[A-Za-z0-9_-]{35} | ya29\.[A-Za-z0-9_-]{20,}+  # Google
    | hf_[A-Za-z0-9]{20,}+ | npm_[A-Za-z0-9]{30,}+ | pypi-[A-Za-z0-9_-]{40,}+
    | SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+     # SendGrid
    | eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+  # JSON Web Tokens
    )""",
    re.VERBOSE,
)
_HEADER = re.compile(
    r"""(?i)(authorization["']?\s{0,3}[:=]\s{0,3}["']?(?:(?:bearer|basic|token|digest|apikey)\s{1,3})?|\bbearer\s{1,3})"""
    r"""(?=[^\s"',;]{0,200}?[0-9=._-])[A-Za-z0-9._~+/=:-]{8,}+"""
)
_ADDRESS = re.compile(r"(?<=://)([^\s/:@\"']{1,100}:)[^\s/@\"']{1,200}(?=@)")
_ASSIGNED = re.compile(
    r"""(?i)(?P<name>pass(?:word|wd|phrase)|pwd|secret|token|(?:api|access|private|secret|auth)[_-]?key)"""
    r"""(?P<sign>["']?\s{0,3}[:=]\s{0,3})(?P<quote>["']?)(?P<value>[^\s"'&,;<>(){}\[\]]{6,}+)(?P<call>\(?)"""
)
_DIGIT = re.compile(r"[0-9]")
_SECRET_NAMES = re.compile(
    r"(?i)(?:.{0,40}[_-])?(?:password|passwd|passphrase|pwd|secret|token|authorization|credentials?"
    r"|(?:api|access|private|secret|auth)[_-]?key|(?:access|auth|id|refresh|session)token|clientsecret)"
)
_BEGIN, _KEY, _END = "-----BEGIN ", "PRIVATE KEY-----", "-----END "
# What names things must stay: calls find their results by it, contents their files, messages their makers.
_NAMING = frozenset({"id", "type", "role", "sha256", "mediaType", "provider", "model", "module", "kind", "turn"})
# Behind these names stand objects of strangers, in which such a name means nothing.
_FREE = frozenset({"input", "data", "value", "meta", "payload"})


def default_redactor(value: dict[str, Any]) -> dict[str, Any]:
    """Take out what looks like a key or a token, and leave `[redacted]` in its place.

    That is: keys of well-known forms, JSON Web Tokens, private keys, `Authorization:` headers, credentials in
    addresses, values assigned to names such as password, token or api_key, and text members of objects with such names.
    It takes time in proportion to the text. It cannot know every secret: give a redactor of your own for those it
    does not know, and call this one from it.
    """
    return _object(value, _without_secrets)


def redact_texts(change: Callable[[str], str]) -> Redactor:
    """A redactor that puts every text through `change`; what names things (ids, types, digests) stays as it is."""
    return lambda value: _object(value, change)


def redacted(redactor: Redactor, value: Mapping[str, Any]) -> dict[str, Any]:
    """What a redactor makes of a value. What the value is known by stays. Raises `ConfigError` for a bad redactor."""
    result = redactor(dict(value))
    if not isinstance(result, dict):
        raise ConfigError(f"the redactor {redactor!r} gave a {type(result).__name__}; it must give a dict")
    return {**result, **{key: value[key] for key in ("id", "role") if key in value}}


def _without_secrets(text: str) -> str:
    if len(text) < 8:
        return text
    if _BEGIN in text:
        text = "".join(_without_private_keys(text))
    text = _SHAPES.sub(REDACTED, text)
    text = _HEADER.sub(rf"\1{REDACTED}", text)
    text = _ADDRESS.sub(rf"\1{REDACTED}", text) if "://" in text else text
    return _ASSIGNED.sub(_assignment, text)


def _without_private_keys(text: str) -> Iterator[str]:
    done = 0
    while (begin := text.find(_BEGIN, done)) >= 0:
        body = text.find(_KEY, begin, begin + 60)
        if body < 0:
            yield text[done : begin + len(_BEGIN)]
            done = begin + len(_BEGIN)
            continue
        end = text.find(_END, body)
        close = text.find("-----", end + len(_END)) if end >= 0 else -1
        yield text[done:begin] + REDACTED
        if close < 0:  # cut off: what is there of the key is the rest
            return
        done = close + 5
    yield text[done:]


def _assignment(found: re.Match[str]) -> str:
    """Words of prose and of programs (`token: string`, `password = ask()`) are no secrets."""
    sure = found["name"].lower().startswith("pass") or found["name"].lower() == "pwd"
    if found["call"] or not (sure or found["quote"] or _DIGIT.search(found["value"])):
        return found[0]
    return f"{found['name']}{found['sign']}{found['quote']}{REDACTED}"


def _object(value: Mapping[str, Any], change: Callable[[str], str], *, free: bool = False) -> dict[str, Any]:
    result = {
        key: item if key in _NAMING and not free else _member(key, item, change, free=free or key in _FREE)
        for key, item in value.items()
    }
    opaque = result.get("opaque")
    if isinstance(opaque, dict) and opaque != value["opaque"]:
        opaque["altered"] = True  # of no use to its maker any more, and not to be sent
    return result


def _member(key: str, item: Any, change: Callable[[str], str], *, free: bool) -> Any:
    if change is _without_secrets and isinstance(item, str) and item and _SECRET_NAMES.fullmatch(key):
        return REDACTED
    return _value(item, change, free=free)


def _value(item: Any, change: Callable[[str], str], *, free: bool) -> Any:
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return _object(item, change, free=free)
    if isinstance(item, list | tuple):
        return [_value(member, change, free=free) for member in item]
    return item
