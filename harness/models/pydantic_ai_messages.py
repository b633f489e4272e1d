"""Messages of ours as pydantic-ai's, and its answers as ours.

What a provider must get back unchanged (ids, signatures, details) travels in `Opaque.data`:

    part      the fields of the part that no block has
    textHash  of the text these belong to; where the text has been changed since, they are of no use
    response  where the answer came from: provider_name, provider_url, canonical_system
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import messages as pai
from pydantic_ai.usage import RequestUsage

from harness.errors import HarnessError, ModelMalformed
from harness.messages import (
    Block,
    Media,
    MediaBlock,
    Msg,
    Opaque,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolUse,
    UnknownBlock,
    Usage,
)
from harness.models.base import MediaLoader, ModelRequest
from harness.text import read_json

__all__ = ["from_response", "to_messages", "usage_of"]

_log = logging.getLogger("harness.models")
_parts: TypeAdapter[Any] = TypeAdapter(pai.ModelResponsePart)
_STOPS: Mapping[str | None, str] = {"tool_call": "tool_use", "content_filter": "refusal"}
_URLS: Mapping[str, type[pai.ImageUrl | pai.AudioUrl | pai.VideoUrl | pai.DocumentUrl]] = {
    "image": pai.ImageUrl,
    "audio": pai.AudioUrl,
    "video": pai.VideoUrl,
    "file": pai.DocumentUrl,
}
_Content = str | pai.BinaryContent | pai.ImageUrl | pai.AudioUrl | pai.VideoUrl | pai.DocumentUrl


# -- ours to theirs ----------------------------------------------------------------------------------------------


async def to_messages(request: ModelRequest) -> list[pai.ModelMessage]:
    """The whole request as pydantic-ai's messages, system text first. Fetches the bytes of media."""
    names: dict[str, str] = {}
    result: list[pai.ModelMessage] = []
    if request.system:
        result.append(pai.ModelRequest(parts=[pai.SystemPromptPart(content=request.system)]))
    for message in request.messages:
        if message.role == "assistant":
            names.update((call.id, call.name) for call in message.tool_uses)
            result.extend(await _response(message, request.load_media))
        else:
            _join(result, await _request_parts(message, request.load_media, names))
    return result


def _join(result: list[pai.ModelMessage], parts: list[pai.ModelRequestPart]) -> None:
    """Parts that follow each other go out as one message, as providers expect of a user's turn."""
    last = result[-1] if result else None
    if isinstance(last, pai.ModelRequest):
        last.parts = [*last.parts, *parts]
    elif parts:
        result.append(pai.ModelRequest(parts=parts))


async def _request_parts(
    message: Msg, load: MediaLoader | None, names: Mapping[str, str]
) -> list[pai.ModelRequestPart]:
    if message.role == "system":
        return [pai.SystemPromptPart(content=message.text)] if message.text else []
    parts: list[pai.ModelRequestPart] = [await _tool_return(result, load, names) for result in message.tool_results]
    content = await _content((block for block in message.blocks if not isinstance(block, ToolResult)), load)
    if content:
        parts.append(pai.UserPromptPart(content=_one_text(content) or content))
    return parts


async def _tool_return(result: ToolResult, load: MediaLoader | None, names: Mapping[str, str]) -> pai.ToolReturnPart:
    """A tool's answer. A failed one goes through the provider's own channel for errors where it has one."""
    content = await _content(result.content, load)
    text = _one_text(content)
    return pai.ToolReturnPart(
        tool_name=result.name or names.get(result.id, ""),
        tool_call_id=result.id,
        content=content if text is None else text,
        outcome="failed" if result.is_error else "success",
    )


def _one_text(content: Sequence[_Content]) -> str | None:
    """All of it as one string, if it is text: simple servers cannot read a list. None if it is more."""
    texts = [item for item in content if isinstance(item, str)]
    return "\n".join(texts) if len(texts) == len(content) else None


async def _content(blocks: Iterable[Block], load: MediaLoader | None) -> list[_Content]:
    found: list[_Content] = []
    for block in blocks:
        if isinstance(block, TextBlock) and block.text:
            found.append(block.text)
        elif isinstance(block, MediaBlock):
            found.append(await _media(block, load))
    return found


async def _media(block: MediaBlock, load: MediaLoader | None) -> _Content:
    """A picture or file. One that is gone must not end the conversation: a note stands for it."""
    if block.url:
        return _URLS[block.type](url=block.url)
    data = await _bytes(block.media, load) if block.media else None
    if block.media is None or data is None:
        return f"[{block.type} not available: {(block.media and block.media.name) or 'no name'}]"
    return pai.BinaryContent(data=data, media_type=block.media.media_type)


async def _bytes(media: Media, load: MediaLoader | None) -> bytes | None:
    if media.data is not None:
        return bytes(media.data)
    if load is None:
        return None
    try:
        return await load(media.sha256)
    except HarnessError as error:
        _log.warning("media %s left out of a model request: %s", media.sha256, error)
        return None


async def _response(message: Msg, load: MediaLoader | None) -> list[pai.ModelResponse]:
    thinking = [block for block in message.blocks if isinstance(block, ThinkingBlock)]
    whole = all(_is_sendable(block) for block in thinking)
    parts: list[pai.ModelResponsePart] = []
    for block in message.blocks:
        if whole or not isinstance(block, ThinkingBlock):
            parts.extend(await _response_parts(block, load))
    if not parts:
        return []
    return [pai.ModelResponse(parts=parts, model_name=message.model, **_origin(message.blocks))]


def _origin(blocks: Iterable[Block]) -> dict[str, Any]:
    """Where the answer came from, as its payloads have it: providers compare this before they take a part back."""
    return next((dict(data["response"]) for data in map(_payload, blocks) if "response" in data), {})


async def _response_parts(block: Block, load: MediaLoader | None) -> list[pai.ModelResponsePart]:
    if isinstance(block, MediaBlock):
        content = await _media(block, load)
        return [pai.FilePart(content=content)] if isinstance(content, pai.BinaryContent) else []
    fields = _part_fields(block)
    if isinstance(block, TextBlock):
        return [pai.TextPart(**{**fields, "content": block.text})] if block.text.strip() else []
    if isinstance(block, ThinkingBlock):
        return [pai.ThinkingPart(**{**fields, "content": block.text})]
    if isinstance(block, ToolUse):
        call = {"tool_name": block.name, "args": block.input, "tool_call_id": block.id}
        return [pai.ToolCallPart(**{**fields, **call})]
    return _unknown_part(fields)


def _unknown_part(fields: Mapping[str, Any]) -> list[pai.ModelResponsePart]:
    """A part that no block of ours stands for, such as a call that the provider itself carried out."""
    try:
        return [_parts.validate_python(fields)] if fields else []
    except ValidationError as error:
        _log.warning("a stored part left out of a model request: %s", error.errors()[0]["msg"])
        return []


def _payload(block: Block) -> Mapping[str, Any]:
    """The payload this module wrote; empty where there is none of its form."""
    raw = getattr(block, "opaque", None)
    data = raw.get("data") if isinstance(raw, Mapping) else getattr(raw, "data", None)
    return data if isinstance(data, Mapping) and isinstance(data.get("part"), Mapping) else {}


def _part_fields(block: Block) -> dict[str, Any]:
    """The fields to send beside what the block says; none if its text is not the one they were made for."""
    payload = _payload(block)
    text = getattr(block, "text", None)
    if not payload or ("textHash" in payload and (text is None or _hash(text) != payload["textHash"])):
        return {}
    return dict(payload["part"])


def _is_sendable(block: ThinkingBlock) -> bool:
    """Whether a provider takes this reasoning back as reasoning: signed, or named by an id of its own.

    `content` is the id of reasoning that was cut out of the answer's text by its tags. Without a
    signature it would go out as ordinary text, which is not what the model said.
    """
    fields = _part_fields(block)
    return bool(fields.get("signature") or fields.get("provider_details") or fields.get("id") not in (None, "content"))


# -- theirs to ours ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Origin:
    """Who made the answer, under the names that a later request will compare."""

    provider: str
    model: str
    response: Mapping[str, str]

    def opaque(self, part: Any, *known: str, text: str | None = None) -> Opaque | None:
        """The payload of a part, less the fields the block has; None if there is nothing else."""
        fields = _parts.dump_python(part, mode="json", exclude_defaults=True, warnings="none")
        rest = {key: value for key, value in fields.items() if key not in (*known, "part_kind")}
        if set(rest) <= {"provider_name"} and not isinstance(part, pai.ThinkingPart):
            return None
        data: dict[str, Any] = {"part": {**rest, "part_kind": part.part_kind}}
        if text is not None:
            data["textHash"] = _hash(text)
        return Opaque(provider=self.provider, model=self.model, data={**data, "response": dict(self.response)})


def from_response(response: pai.ModelResponse, provider: str, model: str) -> Msg:
    """The finished answer as a message. Raises `ModelMalformed` for tool arguments that are no JSON object."""
    names = ("provider_name", "provider_url", "canonical_system")
    values = {name: getattr(response, name, None) for name in names}
    origin = _Origin(provider, model, {name: value for name, value in values.items() if value})
    blocks = [block for part in response.parts for block in _blocks(part, origin)]
    return Msg.assistant(
        *blocks,
        provider=provider,
        model=model,
        usage=usage_of(response.usage),
        stop=_stop(response.finish_reason, blocks),
    )


def _blocks(part: pai.ModelResponsePart, origin: _Origin) -> Iterator[Block]:
    if isinstance(part, pai.TextPart):
        if part.content:
            yield TextBlock(text=part.content, opaque=origin.opaque(part, "content", text=part.content))
    elif isinstance(part, pai.ThinkingPart):
        yield ThinkingBlock(text=part.content, opaque=origin.opaque(part, "content", text=part.content))
    elif isinstance(part, pai.ToolCallPart):
        opaque = origin.opaque(part, "tool_name", "args", "tool_call_id")
        yield ToolUse(id=part.tool_call_id, name=part.tool_name, input=_arguments(part, origin), opaque=opaque)
    elif isinstance(part, pai.FilePart):
        media = Media.from_bytes(part.content.data, part.content.media_type)
        yield MediaBlock(type=_media_kind(part.content.media_type), media=media)
    else:
        opaque = origin.opaque(part)
        yield UnknownBlock.model_validate({"type": part.part_kind, **({"opaque": opaque.to_dict()} if opaque else {})})


def _arguments(part: pai.ToolCallPart, origin: _Origin) -> dict[str, Any]:
    if isinstance(part.args, Mapping):
        return dict(part.args)
    try:
        value = read_json((part.args or "{}").encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    raise ModelMalformed(
        f"{origin.provider}:{origin.model}: called tool {part.tool_name!r} with arguments that are no JSON object: "
        f"{str(part.args)[:200]!r}; try again",
        provider=origin.provider,
        model=origin.model,
    )


def _media_kind(media_type: str) -> Any:
    kind = media_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"


def usage_of(usage: RequestUsage) -> Usage | None:
    """Tokens as we count them, cached ones apart; None where the provider said nothing."""
    if not usage.has_values() or usage.unmeasured_requests:
        return None
    reasoning = usage.output_reasoning_tokens or usage.details.get("reasoning_tokens")
    return Usage(
        input=max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens),
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        output=usage.output_tokens,
        reasoning=reasoning or None,
    )


def _stop(reason: str | None, blocks: Sequence[Block]) -> str | None:
    """Our word for it. An answer that ended without saying why stays without: it may have been cut off."""
    if reason in (None, "stop") and any(isinstance(block, ToolUse) for block in blocks):
        return "tool_use"
    return _STOPS.get(reason, reason)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
