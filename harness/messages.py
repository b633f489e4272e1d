"""Messages: what people, models and tools say, in one form for every room.

`Msg` and its blocks are validated pydantic values at the edge. In storage a message is a plain dict (`to_dict`,
`from_dict`): keys camelCase, absent instead of null. Blocks of an unknown type, and unknown fields of a known one, are
kept as they came.

A block may carry an `Opaque` payload: data of the provider that made it (a reasoning signature, an encrypted item). It
is stored and replayed with equal values, strings and key order, and goes back only to who made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from harness.errors import ConfigError
from harness.ids import content_name, named_bytes, new_id
from harness.text import clean

__all__ = [
    "MAX_COUNT",
    "Block",
    "BlockBase",
    "Media",
    "MediaBlock",
    "MessageDict",
    "Msg",
    "Opaque",
    "Role",
    "TextBlock",
    "ThinkingBlock",
    "ToolResult",
    "ToolUse",
    "UnknownBlock",
    "Usage",
    "block_from_dict",
]

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
MessageDict: TypeAlias = dict[str, Any]
"""A message as stored; see docs/file-formats.md."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, alias_generator=to_camel)

    def to_dict(self) -> dict[str, Any]:
        """The stored form: camelCase keys in declared order, unknown fields behind them, absent for None."""
        result: dict[str, Any] = {}
        values = self.__dict__  # of pydantic's, with all declared fields; asked for once and not field by field
        for name, key in _stored_names(type(self)):
            value = values[name]
            kind = type(value)
            if kind is str:
                result[key] = value
            elif kind is tuple:
                result[key] = [member.to_dict() if isinstance(member, _Value) else _stored(member) for member in value]
            elif value is not None:
                result[key] = _stored(value)
        if extra := self.__pydantic_extra__:
            result.update(extra)
        return result

    def checked(self) -> Self:
        """This value with all that is in it validated, which `model_copy` and `model_construct` leave out.

        Raises `ConfigError` naming the first field that is not what the type says.
        """
        return cast("Self", _checked(self, ""))


def _checked(given: Any, place: str) -> Any:
    if type(given) in (tuple, list):
        return type(given)([_checked(each, f"{place}{number}.") for number, each in enumerate(given)])
    if not isinstance(given, _Value):
        return given
    fields = {name: _checked(member, f"{place}{name}.") for name, member in given.__dict__.items()}
    try:
        made = type(given).model_validate({**(given.__pydantic_extra__ or {}), **fields}, strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        where = place + ".".join(map(str, wrong["loc"]))
        raise ConfigError(f"{where}: {wrong['msg']}; make it with the constructor, which looks at it") from None
    return given if made == given else made  # a list or a text where blocks belong has become blocks


@cache
def _stored_names(kind: type[_Value]) -> tuple[tuple[str, str], ...]:
    """The names of a class's stored fields, and their keys."""
    return tuple((name, field.alias or name) for name, field in kind.model_fields.items() if not field.exclude)


def _stored(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_stored(member) for member in value]
    return value.to_dict() if isinstance(value, _Value) else value


MAX_COUNT = 2**53 - 1
"""The most tokens that a usage may tell of: what every reader of JSON holds exactly, and more than anybody counts."""


class Opaque(_Value):
    """Data of the provider and model that made a block; only they can read it."""

    provider: str
    model: str = ""
    data: Any = None


class Usage(_Value):
    """Tokens of one model request. `input` is fresh tokens only, cached ones stand apart.

    An absent usage means unknown, never zero.
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int | None = None

    @property
    def is_possible(self) -> bool:
        """Whether anybody can have counted so much: whole numbers from zero to `MAX_COUNT`."""
        counts = (self.input, self.cache_read, self.cache_write, self.output, self.reasoning or 0)
        return all(type(count) is int and 0 <= count <= MAX_COUNT for count in counts)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=_sum_known(self.reasoning, other.reasoning),
        )


def _sum_known(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


class Media(_Value):
    """A picture, sound or file, named by the SHA-256 of its bytes; the bytes live beside the message.

    `data`, what is named so, is there only until the message is stored; later a reader asks the session for it.
    """

    sha256: str
    media_type: str
    bytes: int
    name: str | None = None
    data: Any = Field(default=None, exclude=True, repr=False)

    @field_validator("data")
    @classmethod
    def _named(cls, value: Any, info: ValidationInfo) -> Any:
        return value if value is None else named_bytes(str(info.data.get("sha256")), value)

    @classmethod
    def from_bytes(cls, data: Any, media_type: str, name: str | None = None) -> Media:
        """Media for these bytes; they are stored when the message is."""
        return cls(sha256=content_name(data), media_type=media_type, bytes=len(data), name=name, data=data)


class BlockBase(_Value):
    """What every block has: a type. All but unknown ones may carry their provider's payload."""

    type: str


class TextBlock(BlockBase):
    """Text for a reader."""

    type: Literal["text"] = "text"
    text: str
    opaque: Opaque | None = None


class ThinkingBlock(BlockBase):
    """A model's reasoning; `text` is empty where the provider shows none."""

    type: Literal["thinking"] = "thinking"
    text: str = ""
    opaque: Opaque | None = None


class ToolUse(BlockBase):
    """A model asks for a tool. `id` is unique within its session."""

    type: Literal["toolUse"] = "toolUse"
    id: str
    name: str
    input: dict[str, Any] = Field(default_factory=dict)
    opaque: Opaque | None = None


class ToolResult(BlockBase):
    """What a tool answered; `id` is that of the `ToolUse`. `synthetic` says why no tool made it."""

    type: Literal["toolResult"] = "toolResult"
    id: str
    name: str = ""
    content: tuple[Block, ...] = ()
    is_error: bool = False
    synthetic: str | None = None
    opaque: Opaque | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _blocks(cls, value: Any) -> Any:
        return _as_blocks(value)

    @property
    def text(self) -> str:
        """The text blocks of the result, a line each."""
        return _joined_text(self.content)


class MediaBlock(BlockBase):
    """An image, audio, video or file: by reference to stored bytes, or by URL."""

    type: Literal["image", "audio", "video", "file"]
    media: Media | None = None
    url: str | None = None
    opaque: Opaque | None = None


class UnknownBlock(BlockBase):
    """A block of a type this version does not know, kept whole."""

    def to_dict(self) -> dict[str, Any]:
        """The block as it came."""
        return {"type": self.type, **(self.model_extra or {})}


Block: TypeAlias = TextBlock | ThinkingBlock | ToolUse | ToolResult | MediaBlock | UnknownBlock

_BLOCKS: Mapping[str, type[Block]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "toolUse": ToolUse,
    "toolResult": ToolResult,
    "image": MediaBlock,
    "audio": MediaBlock,
    "video": MediaBlock,
    "file": MediaBlock,
}


def block_from_dict(data: Mapping[str, Any]) -> Block:
    """The block in a stored dict. A known type whose fields do not fit is kept as unknown."""
    kind = _BLOCKS.get(str(data.get("type")), UnknownBlock)
    try:
        return kind.model_validate(data)
    except ValidationError:
        return UnknownBlock.model_validate({**data, "type": str(data.get("type", "unknown"))})


def _as_blocks(value: Any) -> tuple[Block, ...]:
    if isinstance(value, str):
        return (TextBlock(text=value),) if value else ()
    if isinstance(value, BlockBase | Mapping):
        return _as_blocks([value])
    if not isinstance(value, Iterable):
        raise ValueError("content must be text, a block, or a list of blocks")
    return tuple(_as_block(item) for item in value)


def _as_block(item: Any) -> Block:
    if isinstance(item, str):
        return TextBlock(text=item)
    if isinstance(item, Mapping):
        return block_from_dict(item)
    if isinstance(item, TextBlock | ThinkingBlock | ToolUse | ToolResult | MediaBlock | UnknownBlock):
        return item
    raise ValueError(f"a block must be text, a block or a dict, not {type(item).__name__}")


def _joined_text(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


class Msg(_Value):
    """One message. `blocks` holds its content in order; `text` is the readable part of it.

    `provider` and `model` say who made an assistant message. `usage` is what making it cost,
    `stop` why the model stopped. `meta` is the application's; it is never shown to a model.
    """

    id: str = Field(default_factory=new_id)
    role: Role
    blocks: tuple[Block, ...] = Field(default=(), alias="content")
    name: str | None = None
    model: str | None = None
    provider: str | None = None
    usage: Usage | None = None
    stop: str | None = None
    meta: dict[str, Any] | None = None

    @field_validator("blocks", mode="before")
    @classmethod
    def _blocks(cls, value: Any) -> Any:
        return _as_blocks(value)

    @classmethod
    def user(cls, *content: str | Block, **fields: Any) -> Msg:
        """A message of a person: text and blocks in order."""
        return cls(role="user", blocks=content, **fields)

    @classmethod
    def assistant(cls, *content: str | Block, **fields: Any) -> Msg:
        """A message of a model."""
        return cls(role="assistant", blocks=content, **fields)

    @classmethod
    def tool(cls, *results: ToolResult, **fields: Any) -> Msg:
        """The results of one or more tool calls."""
        return cls(role="tool", blocks=results, **fields)

    @classmethod
    def from_dict(cls, data: MessageDict) -> Msg:
        """The message in a stored dict. Raises `ConfigError` where it is none."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"no message: {place}: {first['msg']}; docs/file-formats.md has the form") from None

    @property
    def text(self) -> str:
        """The text blocks, a line each; empty where there are none."""
        return _joined_text(self.blocks)

    @property
    def thinking(self) -> str:
        """The reasoning the model showed, a line a block."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, ThinkingBlock))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tool calls this message asks for, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results this message brings, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolResult))

    def with_changes(self, **fields: Any) -> Msg:
        """A copy with these fields changed and everything else kept, validated."""
        current = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**current, **(self.model_extra or {}), **fields})

    def cleaned(self) -> Msg:
        """This message behind the text edge; what was changed is named in `meta["cleaned"]`.

        Never raises: everything can be stored. A provider's payload that had to be changed is of
        no use to that provider any more and says so (`altered`), so that it is not sent.
        """
        stored, marks = clean(self.to_dict())
        if not marks:
            return self
        for before, after in zip(self.blocks, stored["content"], strict=True):
            opaque = getattr(before, "opaque", None)
            if opaque is not None and clean(opaque.data).marks:
                after["opaque"]["altered"] = True
        kept = {media.sha256: media for media in _media_in(self.blocks)}
        message = Msg.from_dict({**stored, "meta": {**stored.get("meta", {}), "cleaned": list(marks)}})
        return message.model_copy(update={"blocks": _with_bytes(message.blocks, kept)}) if kept else message


def _media_in(blocks: Sequence[Block]) -> Iterator[Media]:
    for block in blocks:
        if isinstance(block, MediaBlock) and block.media:
            yield block.media
        elif isinstance(block, ToolResult):
            yield from _media_in(block.content)


def _with_bytes(blocks: Sequence[Block], known: Mapping[str, Media]) -> tuple[Block, ...]:
    """Give the media that lost their bytes on the way through a dict their bytes again."""
    return tuple(_block_with_bytes(block, known) for block in blocks)


def _block_with_bytes(block: Block, known: Mapping[str, Media]) -> Block:
    if isinstance(block, MediaBlock) and block.media:
        return block.model_copy(update={"media": known.get(block.media.sha256, block.media)})
    if isinstance(block, ToolResult):
        return block.model_copy(update={"content": _with_bytes(block.content, known)})
    return block


ToolResult.model_rebuild()
Msg.model_rebuild()
