"""Where calls and results may stand, so that each can find its partner: no provider takes one that has none."""

from __future__ import annotations

from harness.errors import ConfigError
from harness.messages import Msg, ToolResult, ToolUse

__all__ = ["in_its_place"]


def in_its_place(message: Msg) -> Msg:
    """The message. Raises `ConfigError` where a model answers tools, or somebody else asks for them."""
    for number, block in enumerate(message.blocks):
        if isinstance(block, ToolResult) and message.role == "assistant":
            raise ConfigError(f"blocks.{number}: a ToolResult in a message of a model; put it into Msg.tool(...)")
        if isinstance(block, ToolUse) and message.role != "assistant":
            raise ConfigError(
                f"blocks.{number}: a ToolUse in a message of role {message.role}; put it into Msg.assistant(...)"
            )
    return message
