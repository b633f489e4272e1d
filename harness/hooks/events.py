"""What happens in a call, as values.

A hook gets an event and may answer with a changed one. What may be changed is declared on each
event (`changeable`), and `change` is the only way: nothing is altered in passing. Events never carry
the live agent; what a hook needs of the call it asks `event.scope` for.

The order is drawn in README.md, and a test holds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from harness.context import CallScope, RuntimeContext
from harness.errors import HookError
from harness.messages import Msg, ToolResult, ToolUse
from harness.models.base import ToolSpec
from harness.text import clean_text, error_text

__all__ = [
    "ActingChunk",
    "Error",
    "Event",
    "Notice",
    "PostActing",
    "PostCall",
    "PostReasoning",
    "PostSummary",
    "PreActing",
    "PreCall",
    "PreReasoning",
    "PreSummary",
    "ReasoningChunk",
    "SummaryChunk",
    "SystemPart",
]


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A named piece of the system text; the ledger keeps each piece once and refers to it by digest."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Event:
    """What every event has: whose call it is, and where in the ledger it belongs."""

    scope: CallScope
    turn_id: str | None = None
    request_id: str | None = None

    changeable: ClassVar[frozenset[str]] = frozenset()

    @property
    def ctx(self) -> RuntimeContext:
        """Who is speaking, with every default filled in."""
        return self.scope.ctx

    @classmethod
    def event_name(cls) -> str:
        """The class name in snake_case: the name on the event stream."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    def change(self, **fields: Any) -> Self:
        """This event with other values. Raises `HookError` for what a hook may not change."""
        refused = sorted(set(fields) - self.changeable)
        if refused:
            allowed = ", ".join(sorted(self.changeable)) or "nothing"
            raise HookError(f"{type(self).__name__}.{refused[0]} cannot be changed; a hook may change: {allowed}")
        return replace(self, **fields)

    def data(self) -> dict[str, Any]:
        """What the event stream shows of it, as JSON."""
        return {}


@dataclass(frozen=True, kw_only=True)
class PreCall(Event):
    """The call has its session; nothing is logged yet. Changes become part of the turn.

    messages  what the person sends; a hook may add, change or drop
    system    pieces of the system text, frozen for the rest of the call
    context   text for this call only, shown behind the newest directive and gone when the turn closes
    """

    messages: tuple[Msg, ...]
    system: tuple[SystemPart, ...] = ()
    context: tuple[str, ...] = ()

    changeable = frozenset({"messages", "system", "context"})

    def data(self) -> dict[str, Any]:
        """The ids of the messages that came in."""
        return {"messages": [message.id for message in self.messages]}


@dataclass(frozen=True, kw_only=True)
class PreReasoning(Event):
    """A request is about to go out.

    messages   what the model would see; shown to the hook, changed only by `additions`
    additions  messages to put behind them, logged as the hook's
    """

    step: int
    messages: tuple[Msg, ...]
    system: tuple[SystemPart, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    additions: tuple[Msg, ...] = ()

    changeable = frozenset({"system", "tools", "options", "additions"})

    def data(self) -> dict[str, Any]:
        """Which step, and how much it shows."""
        return {"step": self.step, "messages": len(self.messages), "tools": [tool.name for tool in self.tools]}


@dataclass(frozen=True, kw_only=True)
class ReasoningChunk(Event):
    """A piece of the answer as it comes; exactly one of the fields is set."""

    text: str = ""
    thinking: str = ""
    tool_use: Mapping[str, str] | None = None

    def data(self) -> dict[str, Any]:
        """The piece under `text`, `thinking` or `toolUse` {id, name, arguments}."""
        if self.tool_use is not None:
            return {"toolUse": dict(self.tool_use)}
        return {"thinking": self.thinking} if self.thinking else {"text": self.text}


@dataclass(frozen=True, kw_only=True)
class PostReasoning(Event):
    """The model has answered; its message is not committed yet. What a hook makes of it is logged.

    stop  end the turn here: asked-for tools are not run
    """

    message: Msg
    stop: bool = False

    changeable = frozenset({"message", "stop"})

    def data(self) -> dict[str, Any]:
        """The message."""
        return {"message": self.message.to_dict()}


@dataclass(frozen=True, kw_only=True)
class PreActing(Event):
    """A tool is about to run. A `result` given here stands for the tool's: the tool does not run."""

    tool_use: ToolUse
    result: ToolResult | None = None

    changeable = frozenset({"tool_use", "result"})

    def data(self) -> dict[str, Any]:
        """The tool call."""
        return {"toolUse": self.tool_use.to_dict()}


@dataclass(frozen=True, kw_only=True)
class ActingChunk(Event):
    """A piece of a tool's output as it comes."""

    tool_use: ToolUse
    text: str

    def data(self) -> dict[str, Any]:
        """Which call, and the piece."""
        return {"toolCallId": self.tool_use.id, "name": self.tool_use.name, "text": self.text}


@dataclass(frozen=True, kw_only=True)
class PostActing(Event):
    """A tool has answered; its result is not logged yet.

    stop  end the turn when the results of this step are in
    """

    tool_use: ToolUse
    result: ToolResult
    stop: bool = False

    changeable = frozenset({"result", "stop"})

    def data(self) -> dict[str, Any]:
        """The result."""
        return {"toolResult": self.result.to_dict()}


@dataclass(frozen=True, kw_only=True)
class PreSummary(Event):
    """The step limit is reached; one closing request without tools is about to go out."""

    step: int
    messages: tuple[Msg, ...]
    system: tuple[SystemPart, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    instruction: str = ""

    changeable = frozenset({"system", "options", "instruction"})

    def data(self) -> dict[str, Any]:
        """Which step was the last."""
        return {"step": self.step}


@dataclass(frozen=True, kw_only=True)
class SummaryChunk(ReasoningChunk):
    """A piece of the closing summary as it comes."""


@dataclass(frozen=True, kw_only=True)
class PostSummary(Event):
    """The closing summary is there; it is not committed yet."""

    message: Msg

    changeable = frozenset({"message"})

    def data(self) -> dict[str, Any]:
        """The message."""
        return {"message": self.message.to_dict()}


@dataclass(frozen=True, kw_only=True)
class PostCall(Event):
    """The turn has ended well; the ledger has all of it."""

    message: Msg

    def data(self) -> dict[str, Any]:
        """The reply."""
        return {"message": self.message.to_dict()}


@dataclass(frozen=True, kw_only=True)
class Error(Event):
    """The turn has ended in an error or was stopped; the ledger has what was done until then."""

    error: BaseException

    def data(self) -> dict[str, Any]:
        """The error's class and text."""
        return {"error": type(self.error).__name__, "message": clean_text(error_text(self.error))}


@dataclass(frozen=True, kw_only=True)
class Notice(Event):
    """Something worth showing that is no step of its own: a retry, another model, a compaction.

    kind  `retry`, `fallback`, `overflow`, `capacity`, `compaction_begin`, `compaction_end`, `hook_failure`;
          behind the reply, for hooks: `flush_begin`, `flush_end`, `consolidation_begin`, `consolidation_progress`,
          `consolidation_end`
    """

    kind: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """The kind and its details."""
        return {"kind": self.kind, **self.details}
