"""A recorded conversation as a script: prompts, the answers each got, and the tools' results.

What a loop cannot repeat as it was is adapted in as few ways as possible, and each is counted:

- An answer without tool calls ends a turn. Where more answers follow it before the next prompt, it
  is joined into the one behind it.
- A recording may stop after a tool call, or after a prompt nobody answered. The turn is then closed
  by an answer without content.
- A call that has no result gets one that says so; a result without a call is left out.
- Answers in front of the first prompt are given behind it.
- What a sub-agent said inside its parent's file is left out, unless there is nothing else in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.errors import ConfigError
from harness.messages import MessageDict, Msg, ToolResult
from harness.transcripts import Transcript, Turn

__all__ = ["Adaptations", "RecordedPrompt", "Recording", "Script", "script_of"]

Recording: TypeAlias = "Transcript | Iterable[Msg | MessageDict]"
"""A transcript of another harness, or messages of this one."""


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """A person's message, and the answers that a model gives until the next one."""

    message: Msg
    answers: tuple[Msg, ...]


@dataclass(frozen=True, slots=True)
class Adaptations:
    """How a script differs from its recording.

    joined     answers that became part of the answer behind them
    closings   turns closed by an answer without content
    open_calls calls without a result
    orphans    results without a call, left out
    sidechain  messages of sub-agents, left out
    """

    joined: int = 0
    closings: int = 0
    open_calls: int = 0
    orphans: int = 0
    sidechain: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """What to say and what to answer, in order."""

    prompts: tuple[RecordedPrompt, ...]
    results: Mapping[str, ToolResult]
    adaptations: Adaptations

    def answers(self) -> Iterator[Msg]:
        """Every answer, in the order in which a loop asks for them."""
        return (answer for prompt in self.prompts for answer in prompt.answers)


def script_of(recording: Recording) -> Script:
    """The script of a recording. Raises `ConfigError` where no person says anything in it."""
    messages, sidechain = _spoken(recording)
    groups, leading = _grouped(messages)
    if not groups:
        raise ConfigError("nothing to replay: no prompt of a person in the recording; give one that has some")
    groups[0][1][:0] = leading
    answers = [answer for _, found in groups for answer in found]
    turns = [(prompt, list(_joined(found))) for prompt, found in groups]
    calls = {use.id for answer in answers for use in answer.tool_uses}
    results = {result.id: result for message in messages for result in message.tool_results}
    return Script(
        tuple(RecordedPrompt(prompt, tuple(_closed(found))) for prompt, found in turns),
        {key: result for key, result in results.items() if key in calls},
        Adaptations(
            joined=len(answers) - sum(len(found) for _, found in turns),
            closings=sum(_is_open(found) for _, found in turns),
            open_calls=len(calls - results.keys()),
            orphans=len(results.keys() - calls),
            sidechain=sidechain,
        ),
    )


def _spoken(recording: Recording) -> tuple[list[Msg], int]:
    """What people, the model and tools said, and how many messages of sub-agents are left out."""
    if not isinstance(recording, Transcript):
        return [_fresh(message) for message in recording], 0
    said = [turn for turn in recording.turns if turn.role != "system"]
    main = [turn for turn in said if not turn.sidechain]
    if not any(turn.kind == "prompt" for turn in main):
        main = said
    return [_fresh(turn.message) for turn in main if _is_spoken(turn)], len(said) - len(main)


def _is_spoken(turn: Turn) -> bool:
    return turn.kind in ("prompt", "answer", "results", "orphan")


def _fresh(message: Msg | MessageDict) -> Msg:
    """The message under an id of its own: it is said again, and perhaps more than once."""
    found: dict[str, Any] = message if isinstance(message, dict) else dict(message)
    return Msg.from_dict({name: value for name, value in found.items() if name not in ("id", "meta")})


def _grouped(messages: Iterable[Msg]) -> tuple[list[tuple[Msg, list[Msg]]], list[Msg]]:
    """Each prompt with its answers, and the answers in front of the first."""
    groups: list[tuple[Msg, list[Msg]]] = []
    leading: list[Msg] = []
    for message in messages:
        if message.role == "user":
            groups.append((message, []))
        elif message.role == "assistant":
            (groups[-1][1] if groups else leading).append(message)
    return groups, leading


def _joined(answers: list[Msg]) -> Iterator[Msg]:
    waiting: Msg | None = None
    for answer in answers:
        whole = answer if waiting is None else _both(waiting, answer)
        waiting = None if whole.tool_uses else whole
        if waiting is None:
            yield whole
    if waiting is not None:
        yield waiting


def _both(first: Msg, second: Msg) -> Msg:
    usage = first.usage + second.usage if first.usage and second.usage else first.usage or second.usage
    return second.with_changes(blocks=(*first.blocks, *second.blocks), usage=usage)


def _is_open(answers: list[Msg]) -> bool:
    return not answers or bool(answers[-1].tool_uses)


def _closed(answers: list[Msg]) -> Iterator[Msg]:
    """The answers, each with the reason to stop that its content has, and an end behind a last call."""
    for answer in answers:
        yield answer.with_changes(stop="tool_use" if answer.tool_uses else _final_stop(answer))
    if _is_open(answers):
        yield Msg.assistant(stop="stop")


def _final_stop(answer: Msg) -> str:
    return answer.stop if answer.stop and answer.stop != "tool_use" else "stop"
