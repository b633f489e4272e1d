"""The one interface between the loop and a language model.

A model is asked with a `ModelRequest` and answers with a stream of chunks that ends in exactly one
`Done`. There is no second, non-streaming way: a plain answer is the stream, drained.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from harness.messages import Msg

__all__ = [
    "Chunk",
    "Done",
    "MediaLoader",
    "Model",
    "ModelRequest",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolSpec",
]

MediaLoader: TypeAlias = Callable[[str], Awaitable[bytes]]
"""From the SHA-256 of a `Media` to its bytes."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything one request shows the model. What is not in here the model does not see.

    messages    pair-complete: each tool call is followed by its results before anything else
    system      the system text, empty for none
    tools       empty for none
    options     settings by the provider's usual names: temperature, max_tokens, …
    load_media  for media of earlier messages, whose bytes are stored elsewhere
    """

    messages: tuple[Msg, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    load_media: MediaLoader | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More of the reasoning the model shows."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of a tool call: its arguments as JSON text, in pieces."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Done:
    """The whole answer: an assistant message with blocks, opaque payloads, usage, stop reason.

    `message.stop` is one of `stop`, `tool_use`, `length`, `refusal`, or the provider's own word.
    """

    message: Msg


Chunk: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | Done


@runtime_checkable
class Model(Protocol):
    """A language model, or something that answers like one. Safe to use from many calls at once."""

    @property
    def provider(self) -> str:
        """Who serves it: `openai`, `anthropic`, `offline`, …"""
        ...

    @property
    def name(self) -> str:
        """The model's name there."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens that fit into one request, where known."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer. Raises errors of `ModelError`'s tree only; closing the iterator stops the model."""
        ...
