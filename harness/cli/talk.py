"""A conversation as the command line leads it: turns that stream, and two ways to get lines."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.agent import Call, HarnessAgent, StreamEvent
from harness.cli.notices import BackgroundNews, progress_line
from harness.cli.output import one_line, report_error, say, stream_aside, stream_text
from harness.cli.place import Place
from harness.context import RuntimeContext
from harness.errors import CallCancelled, HarnessError, MissingExtra, SessionNotFound
from harness.messages import Usage

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

__all__ = ["PIPE", "TERMINAL", "Conversation", "Screen", "Turn", "converse_lines", "converse_terminal"]

Writer: TypeAlias = Callable[[str], None]
_REMEMBERED_LINES = 200


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a turn is shown: the answer as it comes, and the lines about what goes on meanwhile."""

    answer: Writer
    aside: Writer


TERMINAL = Screen(stream_text, stream_text)
PIPE = Screen(stream_text, stream_aside)
"""Standard output holds the answers and nothing else."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one message."""

    reply: str
    session_id: str
    entry_id: str | None
    usage: Usage | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The turn as `--json` shows it; unknown usage and an unlogged reply are absent."""
        result: dict[str, Any] = {"reply": self.reply, "session_id": self.session_id}
        if self.entry_id is not None:
            result["entry_id"] = self.entry_id
        if self.usage is not None:
            result["usage"] = self.usage.to_dict()
        return {**result, "warnings": list(self.warnings)}


class Conversation:
    """One session of one user, talked to from here. `current` is the call in progress, to stop it."""

    def __init__(self, agent: HarnessAgent, ctx: RuntimeContext, news: BackgroundNews, place: Place) -> None:
        self.news = news
        self._place = place
        self._agent = agent
        self._ctx = ctx
        self.session_id = ctx.session_id or ""
        self.current: Call | None = None

    async def turn(self, message: str, screen: Screen | None = None) -> Turn:
        """Say `message`; with `screen`, show the answer as it comes. Raises what the call raises."""
        call = self.current = self._agent.call(message, self._ctx)
        try:
            if screen is not None:
                await _show(call, screen)
            reply = await call
        finally:
            self.current = None
        return Turn(reply.text, call.session_id, call.entry_id, call.usage, tuple(call.warnings))

    def warning_lines(self, turn: Turn) -> Iterator[str]:
        """What went less than well in a turn, and how to look into it, as lines for a person."""
        yield from (f"· {one_line(warning, 600)}" for warning in turn.warnings)
        if turn.warnings:
            yield f"hint: whether all is there: {self._place.typed('sessions', 'verify', self.session_id)}"

    async def said_before(self) -> list[str]:
        """What the user said in this session, oldest first: the line history of the terminal."""
        try:
            past = await self._agent.sessions(self._ctx).history(self.session_id, _REMEMBERED_LINES)
        except SessionNotFound:
            return []
        return [message.text for message in past if message.role == "user" and message.text.strip()]


async def converse_lines(conversation: Conversation, screen: Screen | None = None) -> AsyncIterator[Turn]:
    """A turn for each line of standard input, until its end."""
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        text = line.decode("utf-8", "replace").strip()
        if text:
            yield await conversation.turn(text, screen)


async def converse_terminal(conversation: Conversation) -> None:
    """Prompt, answer, again, until Ctrl-D. A turn that fails is reported, and the chat goes on."""
    prompt = _prompt(await conversation.said_before())
    say(f"session {conversation.session_id}   (Ctrl-C stops an answer, Ctrl-D leaves)")
    while (text := await _ask(prompt)) is not None:
        if text.strip():
            await _answer(conversation, text)


async def _answer(conversation: Conversation, text: str) -> None:
    with _interrupts_stop(conversation):
        try:
            turn = await conversation.turn(text, TERMINAL)
        except CallCancelled:
            say("\n[stopped]")
        except HarnessError as error:
            say()
            report_error(error, as_json=False)
        else:
            say()
            for line in (*conversation.warning_lines(turn), *conversation.news.take()):
                say(line)


async def _show(call: Call, screen: Screen) -> None:
    within = False
    async for event in call:
        text, note = _answered(event), _noted(event)
        if note is not None:
            screen.answer("\n" if within else "")
            screen.aside(f"{note}\n")
        screen.answer(text)
        within = not text.endswith("\n") if text else within and note is None


def _answered(event: StreamEvent) -> str:
    return str(event.data.get("text", "")) if event.event in {"reasoning_chunk", "summary_chunk"} else ""


def _noted(event: StreamEvent) -> str | None:
    """A line about what goes on meanwhile."""
    if event.event == "pre_acting":
        return f"· {one_line(str(event.data['toolUse']['name']))} …"
    return progress_line(str(event.data.get("kind")), event.data) if event.event == "notice" else None


@contextmanager
def _interrupts_stop(conversation: Conversation) -> Iterator[None]:
    """Ctrl-C stops the answer instead of the program, as long as this lasts."""
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)

    def stop() -> None:
        if conversation.current is not None:
            conversation.current.cancel()

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def _prompt(earlier: list[str]) -> PromptSession[str]:
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory
    except ModuleNotFoundError:
        raise MissingExtra("a chat at the terminal", "cli") from None
    return PromptSession(history=InMemoryHistory(earlier))


async def _ask(prompt: PromptSession[str]) -> str | None:
    """The next line; empty after Ctrl-C, None after Ctrl-D."""
    try:
        return await prompt.prompt_async("> ")
    except KeyboardInterrupt:
        return ""
    except EOFError:
        return None
