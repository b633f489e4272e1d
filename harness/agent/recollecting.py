"""Requests behind the reply, when the session belongs to nobody: logged like all others, with their purpose.

The session is taken for a moment to log that a request goes out, let go while the model is at work,
and taken once more to log how it ended. A session that was deleted meanwhile is left alone.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from harness.agent.binding import Binding
from harness.agent.config import AgentConfig
from harness.agent.gate import process_gate
from harness.agent.journal import Journal
from harness.agent.open_session import holding
from harness.agent.requesting import Attempt, Requester, RequestLimits, status_of
from harness.agent.turnstate import TurnState
from harness.errors import FileMissing, SessionBusy, SessionNotFound
from harness.filesystem import AbstractFilesystem, FileLock, disk, pool
from harness.filesystem.guarded import GuardedFiles
from harness.hooks import SystemPart
from harness.messages import Msg
from harness.models.base import Chunk, Model, ModelRequest
from harness.sessions.lines.anchor import is_deleted, read_anchor
from harness.sessions.lines.entries import parse_line
from harness.sessions.lines.headers import read_first_line
from harness.sessions.lines.layout import SessionFiles

__all__ = ["Recollection"]

T = TypeVar("T")
_MEMORY_LOCK = "memory.lock"
"""In the agent's folder: locked while something is written that outlives the call."""
_TRIES = 10
_PAUSE = 1.0


class Recollection:
    """Asks a call's models for facts, after the call; `turn` is that call's."""

    def __init__(self, config: AgentConfig, binding: Binding, models: Sequence[Model], turn: TurnState) -> None:
        self.config = config
        self._binding = binding
        self._requester = Requester(models, RequestLimits(config.retry, config.model_timeout))
        self._turn = turn
        self._ledger_id: str | None = None

    async def recollect(self, system: str, prompt: str, purpose: str = "flush") -> str:
        """See `harness.hooks.Recollector`."""
        ledger_id = self._own_ledger()
        request = _Request(self, purpose, system, Msg.user(prompt).cleaned(), self._turn.turn_id, ledger_id)
        outcome = await self._requester.ask(request, request.make)
        answer = outcome.message.with_changes(model=outcome.model.name, provider=outcome.model.provider).cleaned()
        await _outside(lambda: request.end("completed", outcome.attempts, answer))
        await self._check_removed()
        return outcome.message.text

    def guarded(self, files: AbstractFilesystem) -> AbstractFilesystem:
        """See `harness.hooks.Recollector`."""
        return GuardedFiles(files, self._lasting)

    @asynccontextmanager
    async def _lasting(self) -> AsyncIterator[None]:
        """A block for whose end the removal of the user waits. Raises `SessionNotFound` where the user was removed."""
        is_stored, agent = self._own_ledger() is not None, self._binding.sessions_folder.parent
        lock = FileLock(agent / _MEMORY_LOCK, in_folder=is_stored, barrier=self._files.barrier)
        try:
            await lock.acquire(self.config.gate_timeout)
        except FileMissing as error:
            raise _removed() from error
        try:
            await self._check_removed()
            yield
        finally:
            lock.release()

    def _own_ledger(self) -> str | None:
        self._ledger_id = self._ledger_id or self._turn.journal.tree.ledger_id  # later it may be one begun anew
        return self._ledger_id

    async def _check_removed(self) -> None:
        if await pool.run(_is_removed, self._files, self._own_ledger()):
            raise _removed()

    @property
    def _files(self) -> SessionFiles:
        return SessionFiles.of(self._binding.sessions_folder, self._binding.session_id)

    @asynccontextmanager
    async def held(self, ledger_id: str | None) -> AsyncIterator[Journal | None]:
        """The pen of the session; None where it has been deleted, or begun anew."""
        if await pool.run(disk.mark, self._files.ledger) is None:
            yield None
            return
        async with (
            process_gate().hold(self._binding.place, self, self.config.gate_timeout),
            holding(self.config, self._binding) as session,
        ):
            same = session.tree.ledger_id == ledger_id
            yield Journal(session.tree, self.config.policy, session.built) if same else None


class _Request:
    """One request on its way; what a requester tells goes into the ledger."""

    def __init__(
        self, own: Recollection, purpose: str, system: str, message: Msg, turn: str | None, ledger_id: str | None
    ) -> None:
        self._own = own
        self._purpose = purpose
        self._system: tuple[SystemPart, ...] = (SystemPart(purpose, system),)
        self._message = message
        self._turn = turn
        self._ledger_id = ledger_id
        self._request_id: str | None = None

    def make(self, _model: Model, messages: Sequence[Msg]) -> ModelRequest:
        return ModelRequest(messages=tuple(messages), system=self._system[0].text)

    async def begin(self, model: Model, ordinal: int) -> Sequence[Msg]:
        return await _outside(lambda: self._begin(model, ordinal))

    async def _begin(self, model: Model, ordinal: int) -> Sequence[Msg]:
        self._request_id = None
        async with self._own.held(self._ledger_id) as journal:
            if journal is None:
                return (self._message,)
            self._message = journal.as_stored(self._message)
            self._system = journal.shown(self._system)
            journal.add(self._message, via="summary", turn=self._turn)
            select, shown = journal.tree.select([self._message.to_dict()])
            messages = journal.built_for(shown, model.provider, model.name)
            self._request_id = journal.begin_request(
                purpose=self._purpose,
                attempt=ordinal,
                system=self._system,
                tools=(),
                options={},
                provider=model.provider,
                model=model.name,
                turn=self._turn,
                messages=messages,
                select=select,
            )
            await journal.commit(sync=False)
            return messages

    async def end(self, status: str, attempts: Sequence[Attempt], answer: Msg | None) -> None:
        if self._request_id is None:
            return
        async with self._own.held(self._ledger_id) as journal:
            if journal is None:
                return
            if answer is not None:
                journal.add(answer, via="summary", turn=self._turn, request=self._request_id)
            journal.end_request(
                self._request_id,
                status,
                turn=self._turn,
                attempts=[attempt.to_dict() for attempt in attempts],
                stop=answer.stop if answer else None,
                usage=answer.usage if answer else None,
            )

    async def failed(self, error: BaseException, attempts: Sequence[Attempt]) -> None:
        await _outside(lambda: self.end(status_of(error), attempts, None))

    async def chunk(self, _chunk: Chunk) -> None:
        return None

    async def retry(self, *_: object) -> None:
        return None

    async def fallback(self, *_: object) -> None:
        return None

    async def overflow(self, *_: object) -> bool:
        return False


def _removed() -> SessionNotFound:
    return SessionNotFound("the user was removed meanwhile, and nothing is remembered; nothing is left to do")


def _is_removed(files: SessionFiles, ledger_id: str | None) -> bool:
    """Whether the whole user is gone: of a session that alone was deleted, the anchor tells."""
    if ledger_id is None:
        return False  # the turn was not stored
    anchor = read_anchor(files.anchor)
    if anchor and (ledger_id == anchor.ledger_id or is_deleted(ledger_id, anchor.deleted)):
        return False
    try:
        return (parse_line(read_first_line(files.ledger)) or {}).get("ledgerId") != ledger_id
    except FileMissing:
        return True


async def _outside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run as somebody who stands outside the call that left this behind: it may not have ended yet.

    A session that is busy for long is asked for again: nothing waits for this.
    """
    for _ in range(_TRIES):
        try:
            return await asyncio.create_task(work(), context=contextvars.Context())
        except SessionBusy:
            await asyncio.sleep(_PAUSE)
    return await asyncio.create_task(work(), context=contextvars.Context())
