"""One request to a model: its stream, its retries, and the models to fall back on.

This knows nothing of sessions. What happens on the way (a chunk, a retry, another model) is told to
an `Observer`; the turn logs it, shows it, and decides what to do with the answer.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.errors import (
    ConfigError,
    ContextOverflow,
    HarnessError,
    ModelAuthError,
    ModelError,
    ModelMalformed,
    ModelTimeout,
    ModelUnavailable,
)
from harness.hooks.uninterrupted import is_being_cancelled
from harness.messages import Msg, Usage
from harness.models.base import Chunk, Done, Model, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta
from harness.models.retry import RetryPolicy
from harness.sessions.view.pairing import in_its_place
from harness.text import said

__all__ = ["Attempt", "Observer", "Outcome", "RequestLimits", "Requester", "status_of"]

log = logging.getLogger("harness.models")

_CHUNKS_IN_A_ROW = 16

RequestMaker = Callable[[Model], ModelRequest]


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How patient a request is. `timeout` is seconds without any chunk; None waits for ever."""

    retry: RetryPolicy
    timeout: float | None


@dataclass(slots=True)
class Attempt:
    """One try: why it was made, how it ended, and how long it took; the ledger keeps it."""

    reason: str
    started: float = field(default_factory=time.monotonic)
    settlement: str = "unknown"
    domain: str | None = None
    latency_ms: int = 0
    text: str = ""
    """What the stream had given when it ended."""
    usage: Usage | None = None
    """What the provider counted for a try that was not the answer, where it said so."""

    def settle(self, settlement: str, error: BaseException | None = None) -> None:
        """Note the end of the try."""
        self.settlement = settlement
        self.domain = _domain_of(error) if error else None
        counted = error.usage if isinstance(error, ModelError) else None
        self.usage = counted if isinstance(counted, Usage) and counted.is_possible else None
        self.latency_ms = round((time.monotonic() - self.started) * 1000)

    def to_dict(self) -> dict[str, Any]:
        """The ledger's form."""
        result: dict[str, Any] = {"reason": self.reason}
        if self.domain:
            result["domain"] = self.domain
        counted = {"usage": self.usage.to_dict()} if self.usage else {}
        return {**result, "settlement": self.settlement, "latencyMs": self.latency_ms, **counted}


class Observer(Protocol):
    """What a requester tells while it works."""

    async def begin(self, model: Model, ordinal: int) -> Sequence[Msg]:
        """A request to this model is about to go out; log it and give the messages it shows."""
        ...

    async def chunk(self, chunk: Chunk, /) -> None:
        """A piece of the answer."""
        ...

    async def retry(self, model: Model, error: ModelError, delay: float, attempt: int) -> None:
        """The same request is sent again after `delay` seconds."""
        ...

    async def fallback(self, model: Model, error: ModelError, following: Model) -> None:
        """This model is given up; `following` is asked next."""
        ...

    async def overflow(self, model: Model, error: ContextOverflow) -> bool:
        """The request was too large for this model; whether it is smaller now and can be sent once more."""
        ...

    async def failed(self, error: BaseException, attempts: Sequence[Attempt]) -> None:
        """The request that was begun last has no answer and will get none."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer, with what it took to get it."""

    message: Msg
    model: Model
    attempts: tuple[Attempt, ...]


class Requester:
    """Asks one model after the other until one answers."""

    def __init__(self, models: Sequence[Model], limits: RequestLimits) -> None:
        self.models = tuple(models)
        self.limits = limits

    async def ask(self, observer: Observer, make: Callable[[Model, Sequence[Msg]], ModelRequest]) -> Outcome:
        """The first answer. Raises the last model's `ModelError` when none gives one."""
        for ordinal, model in enumerate(self.models, start=1):
            try:
                return await self._fitting(observer, model, ordinal, make)
            except ModelError as error:
                if ordinal == len(self.models):
                    raise
                await observer.fallback(model, error, self.models[ordinal])
        raise ModelUnavailable("there is no model to ask; give the builder one")

    async def _fitting(
        self, observer: Observer, model: Model, ordinal: int, make: Callable[[Model, Sequence[Msg]], ModelRequest]
    ) -> Outcome:
        """One model's answer; where the request is too large for it, a smaller one is sent, once."""
        try:
            return await self._with_retries(observer, model, make(model, await observer.begin(model, ordinal)))
        except ContextOverflow as error:
            if not await observer.overflow(model, error):
                raise
        return await self._with_retries(observer, model, make(model, await observer.begin(model, ordinal)))

    async def _with_retries(self, observer: Observer, model: Model, request: ModelRequest) -> Outcome:
        attempts: list[Attempt] = []
        while True:
            attempts.append(Attempt("retry" if attempts else "initial"))
            try:
                message = await self._once(observer, model, request, attempts[-1])
            except ModelError as error:
                attempts[-1].settle(_settlement_of(error), error)
                delay = self.limits.retry.delay(len(attempts), error)
                if delay is None:
                    await observer.failed(error, attempts)
                    raise
                await observer.retry(model, error, delay, len(attempts) + 1)
                await self._sleep(observer, delay, attempts)
            except BaseException as error:
                attempts[-1].settle("cancelled" if isinstance(error, asyncio.CancelledError) else "failed", error)
                await observer.failed(error, attempts)
                raise
            else:
                attempts[-1].settle("ok")
                return Outcome(message, model, tuple(attempts))

    @staticmethod
    async def _sleep(observer: Observer, delay: float, attempts: Sequence[Attempt]) -> None:
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError as error:
            await observer.failed(error, attempts)
            raise

    async def _once(self, observer: Observer, model: Model, request: ModelRequest, attempt: Attempt) -> Msg:
        stream = _begun(model, request)
        try:
            for number in itertools.count(1):
                chunk = _checked(model, await self._next(model, stream))
                if isinstance(chunk, Done):
                    return _whole(model, _counted(model, chunk.message))
                if isinstance(chunk, TextDelta):
                    attempt.text += chunk.text
                await observer.chunk(chunk)
                if number % _CHUNKS_IN_A_ROW == 0:
                    await asyncio.sleep(0)  # a stream that never waits must not keep others waiting
        except StopAsyncIteration:
            place = f"{model.provider}:{model.name}"
            raise ModelMalformed(
                f"{place} ended its stream without an answer", provider=model.provider, model=model.name
            ) from None
        finally:
            await self._close(model, stream)
        raise AssertionError("the count above never ends")

    async def _close(self, model: Model, stream: AsyncIterator[Chunk]) -> None:
        """Let the stream go. What goes wrong here takes no answer away, and waits for nobody."""
        close = getattr(stream, "aclose", None)
        if close is None:
            return
        try:
            async with asyncio.timeout(self.limits.timeout):
                await close()
        except Exception:
            log.warning("the stream of %s:%s could not be closed", model.provider, model.name, exc_info=True)

    async def _next(self, model: Model, stream: AsyncIterator[Chunk]) -> Chunk:
        limit = asyncio.timeout(self.limits.timeout)
        try:
            async with limit:
                return await anext(stream)
        except (HarnessError, StopAsyncIteration):
            raise
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
                raise
            raise _translated(model, error, self.limits.timeout if limit.expired() else None) from error


def _begun(model: Model, request: ModelRequest) -> AsyncIterator[Chunk]:
    try:
        return model.stream(request)
    except HarnessError:
        raise
    except Exception as error:
        raise _translated(model, error, None) from error


def _checked(model: Model, chunk: Any) -> Chunk:
    """The chunk, if it is one. Raises `ModelMalformed` for what no part of the loop could use."""
    match chunk:
        case Done(message=Msg()) | TextDelta(text=str()) | ThinkingDelta(text=str()):
            return chunk
        case ToolCallDelta(id=str(), name=str(), arguments=str()):
            return chunk
        case _:
            raise ModelMalformed(
                f"{model.provider}:{model.name} sent {chunk!r:.200}, which is no chunk of an answer",
                provider=model.provider, model=model.name,
            )  # fmt: skip


def _counted(model: Model, message: Msg) -> Msg:
    """An answer without a usage that nobody can have counted: no reader would take it, so it is not known."""
    if message.usage is None or message.usage.is_possible:
        return message
    log.warning("%s:%s reports a usage that cannot be, %r; it is not known", model.provider, model.name, message.usage)
    return message.with_changes(usage=None)


def _whole(model: Model, message: Msg) -> Msg:
    """The answer, validated. Raises `ModelMalformed`."""
    try:
        return in_its_place(message.checked())
    except ConfigError as error:
        place = f"{model.provider}:{model.name}"
        raise ModelMalformed(
            f"{place} answered with a message that is none: {error}", provider=model.provider, model=model.name
        ) from None


def _translated(model: Model, error: BaseException, timeout: float | None) -> ModelError:
    """A model that raises something of its own still gives the caller an error of our tree."""
    place = f"{model.provider}:{model.name}"
    if timeout is not None:
        return ModelTimeout(
            f"{place} sent nothing for {timeout:g} s; allow it more (`model_timeout`), or add a fallback model",
            provider=model.provider, model=model.name,
        )  # fmt: skip
    return ModelError(f"{place} raised {said(error)}", provider=model.provider, model=model.name)


def status_of(error: BaseException) -> str:
    """The status of a request that ended in this error, in the ledger's words."""
    match error:
        case asyncio.CancelledError():
            return "aborted"
        case ModelTimeout():
            return "timeout"
        case ModelMalformed():
            return "malformed"
        case ModelAuthError():
            return "auth"
        case _:
            return "failed"


def _settlement_of(error: ModelError) -> str:
    """Refusals cost nothing; where the connection broke, the provider may have billed the work."""
    return "unknown" if isinstance(error, ModelTimeout | ModelMalformed) else "failed"


def _domain_of(error: BaseException) -> str:
    match error:
        case ModelAuthError():
            return "account"
        case ModelTimeout():
            return "deadline"
        case ModelUnavailable():
            return "provider"
        case ModelMalformed():
            return "model"
        case ModelError():
            return "request"
        case _:
            return "unknown"
