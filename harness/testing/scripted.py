"""A model that says what a test tells it to, and complains when it is asked anything else."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

from harness.errors import ConfigError, ScriptError
from harness.ids import new_id
from harness.messages import Block, BlockBase, Msg, TextBlock, ThinkingBlock, ToolUse, Usage
from harness.models.base import Chunk, Done, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta
from harness.text import clean, dumps, loads

__all__ = ["ScriptedModel", "Step"]

Step: TypeAlias = (
    str
    | Msg
    | Block
    | Sequence[str | Block | Chunk | BaseException]
    | BaseException
    | type[BaseException]
    | Callable[[ModelRequest], Any]
)
"""One answer.

str             a text answer
Msg             an assistant message as it is, opaque payloads, usage and stop reason included
a block         such as `ScriptedModel.tool_call("search", query="x")`
a list          blocks and chunks in order; an error in it breaks the answer off at that point
an exception    is raised; a class of one gets the message "scripted error"
a callable      gets the `ModelRequest`, returns or awaits one of the above
"""

_PIECES = re.compile(r"\S+\s*|\s+")


class ScriptedModel:
    """Answers request after request with the steps given, in order, whoever asks.

    A request beyond the last step raises `ScriptError`, and `assert_finished` complains of steps
    that were never asked for; as a context manager the model does so at the end of a block that
    raised nothing itself. `requests` holds every request as it came.

    `delay` is a pause in seconds before each chunk. `usage` is what each answer costs that brings
    no usage of its own; None for unknown.
    """

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        name: str = "scripted",
        provider: str = "scripted",
        context_window: int | None = None,
        delay: float = 0.0,
        usage: Usage | None = None,
    ) -> None:
        self.name = name
        self.provider = provider
        self.context_window = context_window
        self.requests: list[ModelRequest] = []
        self._steps = list(steps)
        self._next = 0
        self._delay = delay
        self._usage = usage
        self._lock = threading.Lock()

    @staticmethod
    def tool_call(name: str, /, **arguments: Any) -> ToolUse:
        """A call of tool `name` with an id that no other call has. Give a `ToolUse` where the id matters."""
        return ToolUse(id=f"call_{new_id()}", name=name, input=arguments)

    @property
    def remaining(self) -> int:
        """How many steps have not been asked for yet."""
        return max(0, len(self._steps) - self._next)

    def add(self, *steps: Step) -> None:
        """Put more steps behind the last one."""
        with self._lock:
            self._steps.extend(steps)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """The next step's answer, in chunks. Raises `ScriptError` where there is no next step."""
        step = await _resolved(self._take(request), request)
        answer = _Answer()
        for item in _items(step):
            if isinstance(item, Done):
                yield item
                return
            for chunk in answer.add(item):
                await asyncio.sleep(self._delay)
                yield chunk
        yield Done(self._message(step, answer))

    def assert_finished(self) -> None:
        """Raise `ScriptError` if steps are left, or if there were requests that no step was for."""
        with self._lock:
            asked, steps = self._next, len(self._steps)
        if asked > steps:
            raise ScriptError(
                f"scripted model {self.name!r}: {asked - steps} requests beyond its {steps} steps; add some"
            )
        if asked < steps:
            left = ", ".join(_shown(step) for step in self._steps[asked : asked + 3])
            raise ScriptError(
                f"scripted model {self.name!r}: {steps - asked} of {steps} steps were never asked for, first {left};"
                " remove them or find out why the model was not asked"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.assert_finished()

    def _take(self, request: ModelRequest) -> Step:
        with self._lock:
            self.requests.append(request)
            number = self._next
            self._next += 1
            if number < len(self._steps):
                return self._steps[number]
        raise ScriptError(
            f"scripted model {self.name!r}: request {number + 1} came, but there are only {number} steps; "
            f"its last message is {_last(request)}; add a step or find out why it was asked again"
        )

    def _message(self, step: Step, answer: _Answer) -> Msg:
        if isinstance(step, Msg):
            made = step.with_changes(provider=step.provider or self.provider, model=step.model or self.name)
        else:
            made = Msg.assistant(*answer.finished(), provider=self.provider, model=self.name)
        usage = made.usage or self._usage
        stop = made.stop or ("tool_use" if made.tool_uses else "stop")
        return made.with_changes(usage=usage, stop=stop)


async def _resolved(step: Step, request: ModelRequest) -> Step:
    """The step behind any callables. An exception class is raised, not called."""
    while callable(step) and not isinstance(step, type):
        step = step(request)
        if inspect.isawaitable(step):
            step = await step
    return step


def _items(step: Step | Chunk) -> Iterator[Block | Chunk]:
    if isinstance(step, str):
        yield TextBlock(text=step)
    elif isinstance(step, Msg):
        yield from step.blocks
    elif isinstance(step, BlockBase | TextDelta | ThinkingDelta | ToolCallDelta | Done):
        yield step
    elif isinstance(step, BaseException):
        raise step
    elif isinstance(step, type) and issubclass(step, BaseException):
        raise step("scripted error")
    elif isinstance(step, Sequence):
        for part in step:
            yield from _items(part)
    else:
        raise ConfigError(
            f"a scripted step cannot be a {type(step).__name__}; harness.testing.Step lists what it can be"
        )


class _Answer:
    """Blocks put together from what a step brings; deltas that follow each other make one block."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._growing: str = ""
        self._arguments: dict[str, str] = {}

    def add(self, item: Block | Chunk) -> Iterator[Chunk]:
        """Take one item in; gives the chunks to stream for it."""
        if isinstance(item, TextDelta | ThinkingDelta):
            self._grow(TextBlock if isinstance(item, TextDelta) else ThinkingBlock, item.text)
            yield item
        elif isinstance(item, ToolCallDelta):
            self._add_call(item)
            yield item
        elif not isinstance(item, Done):
            self._growing = ""
            self.blocks.append(item)
            yield from _block_chunks(item)

    def _grow(self, kind: type[TextBlock | ThinkingBlock], text: str) -> None:
        last = self.blocks[-1] if self.blocks else None
        if self._growing == kind.__name__ and isinstance(last, kind):
            self.blocks[-1] = kind(text=last.text + text)
        else:
            self.blocks.append(kind(text=text))
        self._growing = kind.__name__

    def _add_call(self, delta: ToolCallDelta) -> None:
        self._growing = ""
        if delta.id not in self._arguments:
            self.blocks.append(ToolUse(id=delta.id, name=delta.name))
        self._arguments[delta.id] = self._arguments.get(delta.id, "") + delta.arguments

    def finished(self) -> list[Block]:
        """The blocks, calls with the arguments that came in pieces. Raises `ConfigError` if those are no JSON."""
        return [self._finished(block) for block in self.blocks]

    def _finished(self, block: Block) -> Block:
        if not isinstance(block, ToolUse) or block.id not in self._arguments:
            return block
        try:
            return block.model_copy(update={"input": loads(self._arguments[block.id] or "{}")})
        except ValueError as error:
            raise ConfigError(
                f"scripted call of {block.name!r}: arguments are no JSON ({error}); correct the step"
            ) from None


def _block_chunks(block: Block) -> Iterator[Chunk]:
    if isinstance(block, TextBlock):
        yield from (TextDelta(piece) for piece in _PIECES.findall(block.text))
    elif isinstance(block, ThinkingBlock) and block.text:
        yield ThinkingDelta(block.text)
    elif isinstance(block, ToolUse):
        yield ToolCallDelta(block.id, block.name, dumps(clean(block.input).value).decode())


def _shown(step: Any) -> str:
    text = repr(step)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _last(request: ModelRequest) -> str:
    if not request.messages:
        return "missing, the request is empty"
    message = request.messages[-1]
    text = message.text or "\n".join(result.text for result in message.tool_results)
    return f"{message.role}: {_shown(text)}"
