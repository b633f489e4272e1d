"""Every provider that pydantic-ai knows, through its direct request interface."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic_ai import messages as pai
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from harness.errors import ContextOverflow, HarnessError, ModelError, ModelMalformed, ModelRejected, ModelUnavailable
from harness.models.base import Chunk, Done, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta, ToolSpec
from harness.models.pydantic_ai_errors import setup_error, translated
from harness.models.pydantic_ai_messages import from_response, to_messages, usage_of
from harness.models.replay import for_provider
from harness.models.tokens import estimate_request
from harness.text import dumps

__all__ = ["PydanticAIModel", "openai_compatible"]


class PydanticAIModel:
    """A model of any provider, by `"provider:name"`, by a pydantic-ai model, or by a function that makes one.

    From a name or a function it makes a model for each event loop that asks, since connections belong
    to the loop that opened them; a model object that was handed in is used as it is, on any loop. Close
    it with `aclose` on each loop that used it.

    Options of a request are pydantic-ai's model settings: `temperature`, `max_tokens`, `timeout`,
    `thinking`, `extra_body`, a provider's own ones, … The SDK's own retries are off unless
    `max_retries` asks for them: the harness retries, visibly.

    `context_window` is for models whose window is not known. Raises `ConfigError` for unknown names,
    `MissingSetting` for missing keys, `MissingExtra` for missing packages.
    """

    def __init__(
        self, model: str | ProviderModel | Callable[[], ProviderModel], *, context_window: int | None = None
    ) -> None:
        self._make = _maker(model)
        self._lock = threading.Lock()
        self._models: WeakKeyDictionary[asyncio.AbstractEventLoop, ProviderModel] = WeakKeyDictionary()
        first = self._make()
        self._spare: ProviderModel | None = first
        self._provider, self._name = first.system, first.model_name
        self._window = context_window or getattr(first, "context_window", None)

    @property
    def provider(self) -> str:
        """The provider's name, such as `openai`."""
        return self._provider

    @property
    def name(self) -> str:
        """The model's name as it is asked for; the provider may answer under a dated one."""
        return self._name

    @property
    def context_window(self) -> int | None:
        """Tokens that fit into one request, where given or known."""
        return self._window

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer; see `Model.stream`. What other providers sealed is left out (`for_provider`)."""
        try:
            # Closed here and not by the garbage collector: a caller who stops must stop the provider at once.
            async with aclosing(self._stream(request)) as answer:
                async for chunk in answer:
                    yield chunk
        except Exception as error:
            ours = self._meant(translated(error, self._provider, self._name), request)
            if ours is error:
                raise
            raise ours from error

    def _meant(self, error: HarnessError, request: ModelRequest) -> HarnessError:
        """Some servers answer a request beyond their window with nothing, or with words nobody knows."""
        if not isinstance(error, ModelMalformed | ModelRejected) or not self._window:
            return error
        size = estimate_request(request)
        if size <= self._window:
            return error
        overflow = ContextOverflow(
            f"{self._provider}:{self._name}: no answer to about {size} tokens, with a window of {self._window} "
            f"({error}); shorten the context",
            provider=self._provider,
            model=self._name,
        )
        overflow.usage = error.usage
        return overflow

    async def aclose(self) -> None:
        """Close the connections that were opened on the running event loop. The model can be used again."""
        with self._lock:
            model = self._models.pop(asyncio.get_running_loop(), None)
        if model is not None:
            # pydantic-ai closes a client when the last of its users leaves: enter, then leave.
            async with model:
                pass

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        shown = for_provider(request.messages, self._provider, self._name)
        messages = await to_messages(ModelRequest(tuple(shown), request.system, load_media=request.load_media))
        async with model_request_stream(
            self._for_this_loop(),
            messages,
            model_settings=cast(ModelSettings, {"max_retries": 0, **request.options}),
            model_request_parameters=ModelRequestParameters(function_tools=[_tool(tool) for tool in request.tools]),
        ) as answer:
            calls: dict[int, tuple[str, str]] = {}
            try:
                async for event in answer:
                    for chunk in _chunks(event, calls):
                        yield chunk
            except Exception as error:
                raise _counted(translated(error, self._provider, self._name), answer.get()) from error
            response = answer.get()
        if response.state != "complete":
            broken = ModelUnavailable(
                f"{self._provider}:{self._name}: the answer broke off; try again",
                provider=self._provider,
                model=self._name,
            )
            raise _counted(broken, response)
        try:
            message = from_response(response, self._provider, self._name)
        except ModelMalformed as error:
            _counted(error, response)
            raise
        yield Done(message)

    def _for_this_loop(self) -> ProviderModel:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._models:
                self._models[loop] = self._spare or self._make()
                self._spare = None
            return self._models[loop]


def _counted(error: HarnessError, response: pai.ModelResponse) -> HarnessError:
    """The error with what the provider had counted when the answer broke off."""
    if isinstance(error, ModelError):
        error.usage = usage_of(response.usage)
    return error


def openai_compatible(
    base_url: str,
    model: str,
    *,
    api_key: str | None = None,
    provider: str = "openai-compatible",
    context_window: int | None = None,
) -> PydanticAIModel:
    """A model behind any server that speaks OpenAI's chat protocol: llama.cpp, vLLM, a gateway of your own.

    `base_url` usually ends in `/v1`. `provider` is the name under which answers are kept; give each
    service its own where one session may meet several. OPENAI_API_KEY is never sent to it. An answer
    that ends without a `finish_reason` counts as broken off.
    """
    try:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.profiles.openai import OpenAIModelProfile
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
    except ImportError as error:
        raise setup_error(error, f"openai:{model}") from error

    # A proxy that gives up ends the stream cleanly too: only a reason to finish shows that an answer is whole.
    whole = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)

    def make() -> ProviderModel:
        service = OpenAICompatibleProvider(provider, base_url=base_url, api_key=api_key, profile=whole)
        return OpenAIChatModel(model, provider=service)

    return PydanticAIModel(make, context_window=context_window)


def _maker(model: str | ProviderModel | Callable[[], ProviderModel]) -> Callable[[], ProviderModel]:
    if isinstance(model, ProviderModel):
        return lambda: model
    if not isinstance(model, str):
        return model
    return lambda: _inferred(model)


def _inferred(spec: str) -> ProviderModel:
    try:
        return infer_model(spec)
    except (UserError, ImportError, ValueError) as error:
        raise setup_error(error, spec) from error


def _tool(tool: ToolSpec) -> ToolDefinition:
    return ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))


def _chunks(event: object, calls: dict[int, tuple[str, str]]) -> Iterator[Chunk]:
    """What to show of one event. `calls` holds id and name of the tool calls begun so far, by their index."""
    if isinstance(event, pai.PartStartEvent):
        yield from _started(event.part, event.index, calls)
    elif isinstance(event, pai.PartDeltaEvent):
        yield from _continued(event.delta, event.index, calls)


def _started(part: object, index: int, calls: dict[int, tuple[str, str]]) -> Iterator[Chunk]:
    if isinstance(part, pai.TextPart) and part.content:
        yield TextDelta(part.content)
    elif isinstance(part, pai.ThinkingPart) and part.content:
        yield ThinkingDelta(part.content)
    elif isinstance(part, pai.ToolCallPart):
        calls[index] = (part.tool_call_id, part.tool_name)
        yield ToolCallDelta(part.tool_call_id, part.tool_name, _json_text(part.args))


def _continued(delta: object, index: int, calls: dict[int, tuple[str, str]]) -> Iterator[Chunk]:
    if isinstance(delta, pai.TextPartDelta) and delta.content_delta:
        yield TextDelta(delta.content_delta)
    elif isinstance(delta, pai.ThinkingPartDelta) and delta.content_delta:
        yield ThinkingDelta(delta.content_delta)
    elif isinstance(delta, pai.ToolCallPartDelta) and index in calls:
        call_id, name = calls[index]
        yield ToolCallDelta(call_id, name, _json_text(delta.args_delta))


def _json_text(arguments: str | dict[str, Any] | None) -> str:
    return arguments if isinstance(arguments, str) else dumps(arguments).decode() if arguments else ""
