"""Language models: the protocol, the adapter to providers, the offline model, and what requests need around them.

`PydanticAIModel` and `openai_compatible` are loaded at first use: they need an extra and take a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.models.base import (
    Chunk,
    Done,
    MediaLoader,
    Model,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolSpec,
)
from harness.models.offline import OfflineModel
from harness.models.registry import load_adapter, register_model, resolve_model
from harness.models.replay import for_provider
from harness.models.retry import RetryPolicy
from harness.models.tokens import MEDIA_TOKENS, MESSAGE_TOKENS, estimate_request, estimate_tokens

if TYPE_CHECKING:
    from harness.models.pydantic_ai import PydanticAIModel, openai_compatible

__all__ = [
    "MEDIA_TOKENS",
    "MESSAGE_TOKENS",
    "Chunk",
    "Done",
    "MediaLoader",
    "Model",
    "ModelRequest",
    "OfflineModel",
    "PydanticAIModel",
    "RetryPolicy",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolSpec",
    "estimate_request",
    "estimate_tokens",
    "for_provider",
    "openai_compatible",
    "register_model",
    "resolve_model",
]

_LATE = {"PydanticAIModel": "models", "openai_compatible": "openai"}
"""With the extra that each needs."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(load_adapter(f"harness.models.{name}", _LATE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
