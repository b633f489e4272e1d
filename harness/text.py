"""The text edge: what may enter, and how JSON is read and written here.

Everything a person, a tool or a model hands in passes `clean` once. Behind it every string encodes
to UTF-8, every number is one that strict JSON and 64 bits can hold, and nothing is nested deeper
than `MAX_DEPTH`; so no later step has to ask. What had to be changed is named in `Cleaned.marks`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import orjson

__all__ = [
    "MAX_DEPTH",
    "Cleaned",
    "clean",
    "clean_json",
    "clean_text",
    "counted",
    "dumps",
    "error_text",
    "is_clean",
    "loads",
    "read_json",
    "said",
    "visible",
    "without_tags",
]

MAX_DEPTH = 128
_MAX_NODES = 2_000_000
_MAX_DEEP_TEXT = 100_000
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_PLAIN = (dict, list)
# Without it these would be written without a word, and read as something else.
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
# A run of digits that may not survive a reader which holds integers in 64 bits or floats.
_LONG_DIGITS = re.compile(rb"[0-9]{19}")
_COLOUR = re.compile("\x1b\\[[0-9;]{0,40}m")
# Everything with which text could move a cursor, type for its reader or turn its own direction round:
# C0 without tab and newline, DEL, C1, and the bidirectional controls.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Made once: to make one takes longer than to read a short line with it.
_LENIENT = json.JSONDecoder(parse_constant=str)
# Characters that look like "<", and those that cannot be seen.
_OPENING = "<\uff1c\ufe64\u2039\u3008\u276e"
_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufe00-\ufe0f\ufeff"
_SLASHES = "/\uff0f\u2044\u2215"


class Cleaned(NamedTuple):
    """A value that can be stored, and what was changed to make it so, as sorted words.

    `surrogate`: half a pair became U+FFFD; `number`: NaN, an infinity or more than 64 bits became
    text; `deep`: nested too deep, became JSON text; `circular`, `large`: cut; `object`: no JSON
    form of its own, became the nearest one.
    """

    value: Any
    marks: tuple[str, ...]


def clean(value: Any) -> Cleaned:
    """Make any Python value storable. Never raises; a changed value is marked."""
    walk = _Walk()
    cleaned = walk.value(value, 0)
    return Cleaned(cleaned, tuple(sorted(walk.marks)))


def is_clean(value: Any) -> bool:
    """Whether `clean` would find nothing to change, told fast; False where it takes `clean` to tell.

    Values of enumerations and UUIDs, which JSON has one obvious form for, pass too.
    """
    return clean_json(value) is not None


def clean_json(value: Any) -> bytes | None:
    """What `dumps` makes of a value, where `is_clean` is true of it; else None."""
    try:
        raw = orjson.dumps(value, option=_STRICT)
    except TypeError:
        return None
    # Numbers that JSON cannot hold are written as null, and orjson goes deeper than we do.
    if b"null" not in raw and raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH:
        return raw
    return raw if _is_held(value, MAX_DEPTH) else None


def _is_held(value: Any, depth: int) -> bool:
    """Whether a value that orjson takes has no number that it loses, and is nested no deeper than this."""
    kind = type(value)
    if kind is dict:
        members = value.values()
    elif kind is list or kind is tuple:
        members = value
    elif kind is float:
        return math.isfinite(value)
    else:
        return not isinstance(value, Enum) or _is_held(value.value, depth)
    for member in members:
        # Most members are texts, for which no call is made.
        if type(member) is not str and not _is_held(member, depth - 1):
            return False
    return depth > 0


def clean_text(text: str) -> str:
    """`text` with each half of a surrogate pair replaced by U+FFFD; two halves in order are joined."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def error_text(error: BaseException) -> str:
    """The text of an error, whoever made it; its type where making the text raises."""
    text = _own_text(error)
    return type(error).__name__ if text is None else text


def said(error: BaseException) -> str:
    """Type and text of an error, whoever made it; its type alone where making the text raises."""
    text = _own_text(error)
    return type(error).__name__ if text is None else f"{type(error).__name__}: {text}"


def _own_text(error: BaseException) -> str | None:
    try:
        return str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - what a stranger's `__str__` raises must not take the place of its error
        return None


# Not functions of our own: every line goes through both, most of them several times.
dumps: Callable[[Any], bytes] = orjson.dumps
"""One line of compact JSON, for values that passed `clean`."""

loads: Callable[[bytes | str], Any] = orjson.loads
"""Parse JSON that this library wrote. Raises ValueError."""


def read_json(raw: bytes) -> Any:
    """Parse JSON that somebody else wrote. Raises ValueError, also for nesting nobody can read.

    What orjson refuses (half surrogates, NaN, deep nesting) and what it would round (integers of
    19 and more digits) goes to the standard library. Bare NaN and infinities come back as text.
    """
    try:
        if not _LONG_DIGITS.search(raw):
            return orjson.loads(raw)
    except ValueError:
        pass
    try:
        return _LENIENT.decode(raw.decode(json.detect_encoding(raw), "surrogatepass"))
    except RecursionError:
        raise ValueError("nested too deep to be read") from None


def visible(text: str) -> str:
    """`text` for a person: without colour codes, every other control character as a picture of itself.

    What comes out steers no terminal and turns no reading direction.
    """
    if text.isprintable():
        return text
    return _CONTROLS.sub(_picture, _COLOUR.sub("", text).replace("\r\n", "\n"))


def without_tags(text: str, names: Set[str]) -> str:
    """`text` in which nothing can be read as one of these tags: their opening bracket becomes `&lt;`.

    Also where a tag is disguised by capitals, spaces, invisible or look-alike characters. Names are
    of small letters, digits and `_`.
    """
    return _tags(frozenset(names)).sub("&lt;", text)


@lru_cache(maxsize=64)
def _tags(names: frozenset[str]) -> re.Pattern[str]:
    """Matches a bracket that begins one of the tags, however it is written."""
    unseen = f"[{_UNSEEN}]*"
    either = "|".join(unseen.join(map(re.escape, name)) for name in sorted(names))
    before = rf"[\s{_SLASHES}{_UNSEEN}]*"
    return re.compile(rf"[{_OPENING}](?={before}(?:{either}){unseen}(?![a-z0-9_]))", re.IGNORECASE)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"


class _Walk:
    """One pass over one value; it exists to carry the marks and the path that finds circles."""

    def __init__(self) -> None:
        self.marks: set[str] = set()
        self._path: set[int] = set()
        self._nodes = 0

    def value(self, item: Any, depth: int) -> Any:
        # Nearly everything is one of these three, and everything stored comes through here.
        kind = type(item)
        if kind is str and item.isascii():
            return item
        if kind in _PLAIN:
            return self._container(item, depth)
        if isinstance(item, str):
            return self.text(item) if kind is str or not isinstance(item, Enum) else self.value(item.value, depth)
        if item is None or item is True or item is False:
            return item
        if isinstance(item, int) and not isinstance(item, Enum):
            return self._integer(int(item))
        if isinstance(item, float):
            return self._float(float(item))
        return self._container(item, depth)

    def text(self, item: str) -> str:
        if item.isascii():
            return _as_is(item)
        cleaned = clean_text(item)
        if cleaned != item:
            self.marks.add("surrogate")
        return _as_is(cleaned)

    def _integer(self, item: int) -> int | str:
        if _INT_MIN <= item <= _INT_MAX:
            return item
        self.marks.add("number")
        # Python refuses to print integers of thousands of digits in decimal.
        return str(item) if item.bit_length() < 10_000 else hex(item)

    def _float(self, item: float) -> float | str:
        if math.isfinite(item):
            return item
        self.marks.add("number")
        return "NaN" if math.isnan(item) else ("Infinity" if item > 0 else "-Infinity")

    def _container(self, item: Any, depth: int) -> Any:
        plain = item if type(item) in _PLAIN else self._plain(item)
        if type(plain) not in _PLAIN and not isinstance(plain, Mapping | list | tuple):
            return self.value(plain, depth)
        self._nodes += 1 + len(plain)
        if id(item) in self._path:
            self.marks.add("circular")
            return "[circular]"
        if self._nodes > _MAX_NODES:
            self.marks.add("large")
            return "[too large]"
        if depth >= MAX_DEPTH:
            self.marks.add("deep")
            return self.text(_deep_text(plain))
        self._path.add(id(item))
        try:
            return self._members(plain, depth + 1)
        finally:
            self._path.discard(id(item))

    def _members(self, plain: Mapping[Any, Any] | Sequence[Any], depth: int) -> Any:
        if type(plain) is list or not isinstance(plain, Mapping):
            return [self.value(member, depth) for member in plain]
        result: dict[str, Any] = {}
        for key, member in plain.items():
            result[self._key(key, result)] = self.value(member, depth)
        return result

    def _key(self, key: Any, taken: Mapping[str, Any]) -> str:
        name = key if type(key) is str and key.isascii() else self.text(_key_text(key))
        while name in taken:  # two keys that became equal must not cost a value
            name += "'"
        return name

    def _plain(self, item: Any) -> Any:
        if isinstance(item, dict | list | tuple):
            return item
        self.marks.add("object")
        return _nearest(item)


def _as_is(text: str) -> str:
    """The characters of a text, as JSON has them: the `str()` of an enumeration of texts is the member's name."""
    return text if type(text) is str else str.__str__(text)


def _key_text(key: Any) -> str:
    return _as_is(key) if isinstance(key, str) else str(key)


def _nearest(item: Any) -> Any:
    """The nearest plain value of an object that JSON has no form for."""
    if isinstance(item, Mapping | Set):
        return _nearest_collection(item)
    if isinstance(item, Enum):
        return item.value
    if isinstance(item, datetime | date | time):
        return item.isoformat()
    if isinstance(item, Decimal | UUID):
        return str(item)
    if isinstance(item, bytes | bytearray | memoryview):
        return b64encode(bytes(item)).decode()
    return _nearest_object(item)


def _nearest_collection(item: Mapping[Any, Any] | Set[Any]) -> Any:
    try:
        return dict(item) if isinstance(item, Mapping) else sorted(item, key=repr)
    except Exception as error:  # noqa: BLE001 - as below
        return f"[{type(item).__name__}: {type(error).__name__}]"


def _nearest_object(item: Any) -> Any:
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    try:
        for method in ("model_dump", "tolist"):  # pydantic models; numpy arrays and numbers
            dump = getattr(item, method, None)
            if callable(dump) and not isinstance(item, type):
                return dump()
        return str(item)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the value is marked
        return f"[{type(item).__name__}: {type(error).__name__}]"


def _deep_text(value: Any) -> str:
    """JSON text of a value of any depth, without recursion; cut where it gets long."""
    pieces: list[str] = []
    size = 0
    for piece in _deep_pieces(value):
        pieces.append(piece)
        size += len(piece)
        if size > _MAX_DEEP_TEXT:
            pieces.append("…")
            break
    return "".join(pieces)


def _deep_pieces(value: Any) -> Iterator[str]:
    stack: list[Iterator[str | tuple[Any]]] = [iter([(value,)])]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
        elif isinstance(item, str):
            yield item
        elif isinstance(item[0], Mapping):
            stack.append(_mapping_pieces(item[0]))
        elif isinstance(item[0], list | tuple):
            stack.append(_list_pieces(item[0]))
        else:
            yield _leaf_text(item[0])


def counted(number: int, thing: str) -> str:
    """A number of things in words."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _leaf_text(item: Any) -> str:
    leaf = _Walk().value(item, MAX_DEPTH - 2)
    return orjson.dumps(leaf).decode()


def _mapping_pieces(item: Mapping[Any, Any]) -> Iterator[str | tuple[Any]]:
    yield "{"
    for n, (key, member) in enumerate(item.items()):
        yield "," if n else ""
        yield f"{orjson.dumps(clean_text(_key_text(key))).decode()}:"
        yield (member,)
    yield "}"


def _list_pieces(item: Sequence[Any]) -> Iterator[str | tuple[Any]]:
    yield "["
    for n, member in enumerate(item):
        yield "," if n else ""
        yield (member,)
    yield "]"
