"""Requests beside the conversation while the session is held, such as those for a summary."""

from __future__ import annotations

from collections.abc import Sequence

from harness.agent.config import AgentConfig
from harness.agent.journal import Journal
from harness.agent.requesting import Attempt, Requester, RequestLimits, status_of
from harness.errors import ModelError
from harness.hooks import Notices, SystemPart
from harness.messages import MessageDict, Msg
from harness.models.base import Chunk, Model, ModelRequest, ToolSpec
from harness.sessions.view.turns import blocks_of
from harness.text import error_text

__all__ = ["LoggedSideModel"]


class LoggedSideModel:
    """Side requests of a call that holds its session: logged like those of the loop, with their purpose."""

    def __init__(
        self, config: AgentConfig, journal: Journal, models: Sequence[Model], notices: Notices, turn: str | None = None
    ) -> None:
        self._config = config
        self._journal = journal
        self._models = tuple(models)
        self._notices = notices
        self._turn = turn

    async def ask(
        self,
        purpose: str,
        system: str,
        messages: Sequence[MessageDict],
        instruction: str,
        model: Model | None = None,
    ) -> Msg:
        """See `harness.hooks.SideModel`."""
        asked = self._journal.as_stored(Msg.user(instruction).cleaned())
        turn = self._turn or self._journal.open_turn_id
        self._journal.add(asked, via="summary", turn=turn)
        parts = self._journal.shown((SystemPart(purpose, system),))
        await self._journal.tree.look_for_media(messages)
        select, shown = self._journal.tree.select([*messages, asked.to_dict()])
        request = _SideRequest(self, purpose, parts, shown, select, turn)
        models = (model, *self._models) if model else self._models
        requester = Requester(models, RequestLimits(self._config.retry, self._config.model_timeout))
        outcome = await requester.ask(request, request.make)
        answer = outcome.message.with_changes(model=outcome.model.name, provider=outcome.model.provider).cleaned()
        self._journal.add(answer, via="summary", turn=turn, request=request.request_id)
        request.end("completed", outcome.attempts, answer)
        return answer

    def tools(self, messages: Sequence[MessageDict]) -> tuple[ToolSpec, ...]:
        """Declared, though none is run, where a call is shown: providers refuse calls to tools they are not told of."""
        calls = any(blocks_of(message, kind) for message in messages for kind in ("toolUse", "toolResult"))
        return self._config.toolkit.specs() if calls else ()


class _SideRequest:
    """One side request on its way; what a requester tells goes into the ledger."""

    def __init__(
        self,
        side: LoggedSideModel,
        purpose: str,
        system: tuple[SystemPart, ...],
        messages: list[MessageDict],
        select: list[str],
        turn: str | None,
    ) -> None:
        self.request_id = ""
        self._side = side
        self._purpose = purpose
        self._system = system
        self._messages = messages
        self._tools = side.tools(messages)
        self._select = select
        self._turn = turn

    def make(self, _model: Model, messages: Sequence[Msg]) -> ModelRequest:
        return ModelRequest(
            messages=tuple(messages),
            system=self._system[0].text,
            tools=self._tools,
            options=self._side._config.model_options,
            load_media=self._side._journal.load_media,
        )

    async def begin(self, model: Model, ordinal: int) -> Sequence[Msg]:
        side = self._side
        messages = side._journal.built_for(self._messages, model.provider, model.name)
        self.request_id = side._journal.begin_request(
            purpose=self._purpose,
            attempt=ordinal,
            system=self._system,
            tools=self._tools,
            options=side._config.model_options,
            provider=model.provider,
            model=model.name,
            turn=self._turn,
            messages=messages,
            select=self._select,
        )
        await side._journal.commit(sync=False)
        return messages

    async def chunk(self, _chunk: Chunk) -> None:
        return None

    async def retry(self, model: Model, error: ModelError, delay: float, attempt: int) -> None:
        name, text = f"{model.provider}:{model.name}", error_text(error)
        details = {"model": name, "error": text, "attempt": attempt, "seconds": delay}
        await self._side._notices.notice("retry", {"purpose": self._purpose, **details})

    async def fallback(self, model: Model, error: ModelError, following: Model) -> None:
        names = {"from": f"{model.provider}:{model.name}", "to": f"{following.provider}:{following.name}"}
        await self._side._notices.notice("fallback", {"purpose": self._purpose, **names, "error": error_text(error)})

    async def overflow(self, *_: object) -> bool:
        return False  # whoever asks decides what to show instead

    async def failed(self, error: BaseException, attempts: Sequence[Attempt]) -> None:
        self.end(status_of(error), attempts, None)

    def end(self, status: str, attempts: Sequence[Attempt], answer: Msg | None) -> None:
        self._side._journal.end_request(
            self.request_id,
            status,
            turn=self._turn,
            attempts=[attempt.to_dict() for attempt in attempts],
            stop=answer.stop if answer else None,
            usage=answer.usage if answer else None,
        )
