"""Keeping secrets out of what is stored.

A redactor is a function from a JSON object to a JSON object. It is asked about each message, and about the fields of
each other entry, before anything is written or hashed. The model is shown what is stored, so it sees no more than
that. Tools run with what the model asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from harness.errors import ConfigError
from harness.sessions.secrets import REDACTED, is_secret_flag, is_secret_name, without_password, without_secrets

__all__ = ["REDACTED", "Redactor", "default_redactor", "redact_texts", "redacted"]

Redactor: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Gets a message or the fields of an entry, and gives what is to be stored; must not change what it gets."""

# What names things must stay: calls find their results by it, contents their files, messages their makers.
_NAMING = frozenset({"id", "type", "role", "sha256", "mediaType", "provider", "model", "module", "kind", "turn"})
# Behind these names stand objects of strangers, in which such a name means nothing.
_FREE = frozenset({"input", "data", "value", "meta", "payload"})
_COOKIES = frozenset({"cookie", "set-cookie"})
_LOGINS = frozenset({"-u", "--user", "--proxy-user"})
_SCHEMA = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "description"})
"""Members of a JSON schema: a parameter that is called `password` is no secret."""


def default_redactor(value: dict[str, Any]) -> dict[str, Any]:
    """Take out what looks like a key or a token, and leave `[redacted]` in its place.

    That is: keys of well-known forms, JSON Web Tokens, private keys, `Authorization:` and `Cookie:` headers,
    credentials in addresses, in command lines and in netrc files, values assigned to names such as password, token
    or api_key, and what stands under such names in objects.
    It takes time in proportion to the text. It cannot know every secret: give a redactor of your own for those it
    does not know, and call this one from it.
    """
    return _object(value, without_secrets)


def redact_texts(change: Callable[[str], str]) -> Redactor:
    """A redactor that puts every text through `change`; what names things (ids, types, digests) stays as it is."""
    return lambda value: _object(value, change)


def redacted(redactor: Redactor, value: Mapping[str, Any]) -> dict[str, Any]:
    """What a redactor makes of a value. What the value is known by stays. Raises `ConfigError` for a bad redactor."""
    result = redactor(dict(value))
    if not isinstance(result, dict):
        raise ConfigError(f"the redactor {redactor!r} gave a {type(result).__name__}; it must give a dict")
    return {**result, **{key: value[key] for key in ("id", "role") if key in value}}


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
    if change is without_secrets and item:
        if is_secret_name(key):
            return _hidden(item)
        if key.lower() in _COOKIES and isinstance(item, str) and not item.isalpha():
            return REDACTED
    return _value(item, change, free=free)


def _hidden(item: Any) -> Any:
    """What stands under the name of a secret: every text in it goes. What describes such a member stays."""
    if isinstance(item, str):
        return REDACTED if item else item
    if isinstance(item, Mapping):
        is_schema = not _SCHEMA.isdisjoint(item)
        return dict(item) if is_schema else {key: _hidden(member) for key, member in item.items()}
    if isinstance(item, list | tuple):
        return [_hidden(member) for member in item]
    return item


def _value(item: Any, change: Callable[[str], str], *, free: bool) -> Any:
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return _object(item, change, free=free)
    if isinstance(item, list | tuple):
        members = _command(item) if change is without_secrets else item
        return [_value(member, change, free=free) for member in members]
    return item


def _command(words: Iterable[Any]) -> Iterator[Any]:
    """The words of a command line without those that are secrets; other lists as they are."""
    before, is_curl = "", False
    for word in words:
        if not isinstance(word, str):
            yield word
            before = ""
            continue
        if is_secret_flag(before) and word and not word.startswith("-"):
            yield REDACTED
        else:
            yield without_password(word) if is_curl and before in _LOGINS else word
        is_curl = is_curl or word.rpartition("/")[2] == "curl"
        before = word
