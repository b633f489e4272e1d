"""A model that says what another model once said, with the tools and the prompts to go with it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from harness.context import CallScope, RuntimeContext
from harness.messages import Msg, TextBlock, ToolResult
from harness.models.base import ToolSpec
from harness.testing.recording import Adaptations, RecordedPrompt, Recording, script_of
from harness.testing.scripted import ScriptedModel
from harness.tools import Emit, Tool, ToolCall

__all__ = ["Caller", "ReplayModel"]

_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": True}


class Caller(Protocol):
    """Whatever takes a message and answers: a `HarnessAgent`."""

    def call(self, msg: Msg, ctx: RuntimeContext, /) -> Awaitable[Msg]:
        """The answer to one message."""
        ...


class ReplayModel(ScriptedModel):
    """Answers each request with the next recorded answer: text, reasoning with its signatures, tool
    calls under their ids, images.

        model = ReplayModel(read("session.jsonl"))
        agent = HarnessAgent.builder().model(model).toolkit(Toolkit(*model.tools())).…build()
        await model.replay(agent, RuntimeContext(session_id="again"))

    It passes for the model that was recorded, so that its reasoning is sent back to it. What a loop
    cannot repeat as it was is counted in `adaptations`; see `harness.testing.recording`. One model
    replays one conversation: turn off whatever else would ask it (compaction, memory).

    Raises `ConfigError` where no person says anything in the recording; a request beyond the last
    answer raises `ScriptError`, and so does `assert_finished` while answers are left.
    """

    def __init__(self, recording: Recording, *, context_window: int | None = None) -> None:
        self._script = script_of(recording)
        answers = list(self._script.answers())
        super().__init__(
            answers,
            name=next((answer.model for answer in reversed(answers) if answer.model), "replay"),
            provider=next((answer.provider for answer in reversed(answers) if answer.provider), "replay"),
            context_window=context_window,
        )

    @property
    def adaptations(self) -> Adaptations:
        """How what is replayed differs from what was recorded."""
        return self._script.adaptations

    def prompts(self) -> tuple[RecordedPrompt, ...]:
        """What the person said, in order, and what the model answers to each."""
        return self._script.prompts

    def tools(self) -> tuple[Tool, ...]:
        """One tool for every name that is called; each gives the recorded result of the call's id.

        A call without a recorded result gets an error result that is marked `synthetic`.
        """
        names = dict.fromkeys(use.name for answer in self._script.answers() for use in answer.tool_uses)
        return tuple(Tool(ToolSpec(name, "Gives the recorded result.", _PARAMETERS), self._result) for name in names)

    async def replay(self, agent: Caller, ctx: RuntimeContext) -> list[Msg]:
        """Say everything the person said, one prompt after the other, and give the replies.

        `agent` is one that was built with this model and its `tools()`. Raises what its calls raise,
        and `ScriptError` where answers are left at the end.
        """
        replies = [await agent.call(prompt.message, ctx) for prompt in self.prompts()]
        self.assert_finished()
        return replies

    async def _result(self, call: ToolCall, _scope: CallScope, _emit: Emit) -> ToolResult:
        """A tool's handler."""
        recorded = self._script.results.get(call.id)
        if recorded is not None:
            return recorded
        missing = TextBlock(text="[no result was recorded for this call]")
        return ToolResult(id=call.id, name=call.name, content=(missing,), is_error=True, synthetic="not-recorded")
