"""Keeping secrets out of what is stored.

A redactor is a function from a JSON object to a JSON object. It is asked about each message, and about the fields of
each other entry that has content, before anything is written or hashed. The model is shown what is stored, so it sees
no more than that. Tools run with what the model asked for.

Whatever a redactor gives, only content comes from it: see `harness.sessions.lines.content`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from harness.errors import ConfigError, HarnessError
from harness.sessions.lines.content import has_content, with_structure
from harness.sessions.lines.json_text import changed_within, json_in
from harness.sessions.lines.paired import is_login
from harness.sessions.lines.secrets import (
    REDACTED,
    is_secret_flag,
    may_name_secrets,
    without_password,
    without_secrets,
)
from harness.sessions.lines.well_known import hidden, is_schema, is_secret_name
from harness.text import clean, is_clean

__all__ = ["REDACTED", "Redactor", "default_redactor", "redact_texts", "redacted"]

Redactor: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Gets a message or the fields of an entry, and gives what is to be stored; must not change what it gets."""

# What names things must stay: calls find their results by it, contents their files, messages their makers.
_NAMING = frozenset({"id", "type", "role", "sha256", "mediaType", "provider", "model", "module", "kind", "turn"})
# Behind these names stand objects of strangers, in which such a name means nothing.
_FREE = frozenset({"input", "data", "value", "meta", "payload"})
_LONG = 16
"""Characters of the shortest name that may be a key of well-known form."""
_HEADERS = frozenset({"cookie", "set-cookie", "auth"})
_LOGINS = frozenset({"-u", "--user", "--proxy-user"})


def default_redactor(value: dict[str, Any]) -> dict[str, Any]:
    """Take out what looks like a key or a token, and leave `[redacted]` in its place.

    That is: keys of well-known forms, JSON Web Tokens, private keys, `Authorization:` and `Cookie:` headers,
    credentials in addresses, in command lines and in netrc files, values assigned to names such as password, token
    or api_key or beside them in pairs, tables and calls, and what stands under such names in objects, also in those
    that a text holds as JSON. What is in doubt there goes; a place to fill in such as `$API_KEY`, the folder of a
    shell, the file of a private key, and a word of a protocol under `token`, `credentials` or `authorization` stay.
    It takes time in proportion to the text. It cannot know every secret: give a redactor of your own for those it
    does not know, and call this one from it.
    """
    return _object(value, _without)


def redact_texts(change: Callable[[str], str]) -> Redactor:
    """A redactor that puts every text through `change`; what names things (ids, types, digests) stays as it is.

    Numbers that stand for persons, such as telephone numbers, may be taken out too: no id is among the texts.
    """
    return lambda value: _object(value, change)


def redacted(redactor: Redactor, kind: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is stored of a value of this kind: its structure, with the content that a redactor makes of it.

    kind  `message`, the type of an entry, or `system` for a piece of the system text
    Raises `ConfigError` where the redactor raises, or gives what has not the form of the value.
    """
    if not has_content(kind, value):
        return value
    try:
        result: Any = redactor(dict(value))
    except HarnessError:
        raise
    except Exception as error:  # what it says may be what nobody should read
        text = f"the redactor {redactor!r} raised {type(error).__name__} for a {kind}, which was not stored; mend it"
        raise ConfigError(text) from error
    try:
        return with_structure(kind, value, result if is_clean(result) else clean(result).value)
    except ValueError as error:
        text = f"the redactor {redactor!r} {error}; it must give an object of the same form, and nothing was stored"
        raise ConfigError(text) from None


def _object(value: Mapping[str, Any], change: Callable[[str], str], *, free: bool = False) -> dict[str, Any]:
    made = {
        key: item if key in _NAMING and not free else _member(key, item, change, free=free or key in _FREE)
        for key, item in value.items()
    }
    if not free or change is not _without:
        return made
    return _renamed(_paired(value, made) if "value" in value or "logprob" in value else made)


def _paired(value: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """An object of strangers, where one of its members says what another is.

    Of a pair of a name and a value the value goes; the tokens that a model wrote, with what it thought of each, stay.
    """
    if "value" in value and isinstance(name := value.get("name", value.get("key")), str) and is_secret_name(name):
        return {**made, "value": hidden(value["value"], name)}
    if "logprob" in value and isinstance(token := value.get("token"), str):
        return {**made, "token": _without(token)}
    return made


def _renamed(value: dict[str, Any]) -> dict[str, Any]:
    """An object of strangers, without the names that are secrets; those that become alike are told apart."""
    secret = {key: name for key in value if len(key) >= _LONG and (name := without_secrets(key)) != key}
    if not secret:
        return value
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = secret.get(key, key)
        made[f"{name}#{len(made) + 1}" if name in made else name] = item
    return made


def _member(key: str, item: Any, change: Callable[[str], str], *, free: bool) -> Any:
    if change is _without and item:
        if is_secret_name(key):
            is_described = isinstance(item, dict) and is_schema(item)
            return _value(item, change, free=free) if is_described else hidden(item, key)
        low = key.lower()
        if low in _HEADERS and isinstance(item, str) and (is_login(item) if low == "auth" else not item.isalpha()):
            return REDACTED
    return _value(item, change, free=free)


def _without(text: str) -> str:
    """A text without secrets, those in JSON that stands in it included; as it was written where JSON can stay so."""
    found = without_secrets(text)
    if '"' not in text or not may_name_secrets(text):
        return found
    try:
        opened = changed_within(text, lambda value: _value(value, _without, free=True))
    except RecursionError:  # deeper than can be looked into: what is seen of it as a text has been taken out
        return found
    if opened is text or (opened != text and (said := json_in(found)) is not None and said == json_in(opened)):
        return found
    return without_secrets(opened)


def _value(item: Any, change: Callable[[str], str], *, free: bool) -> Any:
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return _object(item, change, free=free)
    if isinstance(item, list | tuple):
        members = _command(item) if change is _without else item
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
