"""A provider that checks what it is sent, by rules of its own: it knows nothing of how a request came about."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from harness.errors import ContextOverflow
from harness.messages import Msg, Usage
from harness.models import Chunk, Done, ModelRequest
from harness.testing import ScriptedModel

__all__ = ["Provider", "complaints", "size_of"]

_MESSAGE, _TOOL = 4, 8
"""Tokens that a message, and a tool, cost besides their text."""


def complaints(request: ModelRequest, provider: str = "", model: str = "") -> list[str]:
    """What a strict provider would refuse in a request: roles, order, pairs, ids, nothing empty, no foreign payload."""
    messages = [message.to_dict() for message in request.messages]
    wrong = list(_about_order(messages))
    for number, message in enumerate(messages):
        wrong += [f"message {number}: {what}" for what in _about_content(message, provider, model)]
    return wrong


def _about_order(messages: list[dict[str, Any]]) -> Iterator[str]:
    if not messages:
        yield "there are no messages"
        return
    if messages[0]["role"] != "user":
        yield f"the first message is of role {messages[0]['role']}"
    if messages[-1]["role"] == "assistant":
        yield "the last message is the model's own"
    waiting: list[str] = []
    before = ""
    for number, message in enumerate(messages):
        results = _ids(message, "toolResult")
        if results != waiting:
            yield f"message {number}: results {results} where {waiting} wait"
        if message["role"] == before == "assistant":
            yield f"message {number}: two answers in a row"
        waiting, before = _ids(message, "toolUse"), message["role"]
    if waiting:
        yield f"calls {waiting} have no result"


def _about_content(message: dict[str, Any], provider: str, model: str) -> Iterator[str]:
    role, content = message["role"], message["content"]
    if role not in ("user", "assistant", "tool"):
        yield f"its role is {role}"
    if all(block["type"] == "text" and not block["text"].strip() for block in content):
        yield "it is empty"
    calls = _ids(message, "toolUse")
    if len(set(calls)) < len(calls):
        yield f"it has one id for several calls: {calls}"
    for block in content:
        kind = block["type"]
        if (kind == "toolUse" and role != "assistant") or (kind == "toolResult") != (role == "tool"):
            yield f"a {kind} stands in a message of role {role}"
        if kind == "toolUse" and not (block["id"] and block["name"] and isinstance(block["input"], dict)):
            yield f"a call lacks its id, its name or its arguments: {block}"
        if kind == "toolResult" and not any(inner.get("text") or inner.get("media") for inner in block["content"]):
            yield f"the result of {block['id']} is empty"
        opaque = block.get("opaque")
        if opaque and (opaque["provider"], opaque.get("model")) != (provider, model):
            yield f"a payload is that of {opaque['provider']}"


def _ids(message: dict[str, Any], kind: str) -> list[str]:
    return [block["id"] for block in message["content"] if block["type"] == kind]


def size_of(request: ModelRequest) -> int:
    """Tokens of a request as this provider counts them: four characters each, of East Asian script one each."""
    texts = [request.system, *(_text(message.to_dict()["content"]) for message in request.messages)]
    tools = [json.dumps([tool.name, tool.description, dict(tool.parameters)]) for tool in request.tools]
    extra = _MESSAGE * len(request.messages) + _TOOL * len(tools)
    return extra + sum(_tokens(text) for text in [*texts, *tools])


def _text(content: list[dict[str, Any]]) -> str:
    """Everything in a message that a model reads."""
    parts: list[str] = []
    for block in content:
        parts += [block[key] for key in ("text", "name") if isinstance(block.get(key), str)]
        parts += [json.dumps(block["input"], ensure_ascii=False)] if "input" in block else []
        parts += [_text(block["content"])] if isinstance(block.get("content"), list) else []
    return "\n".join(parts)


def _tokens(text: str) -> int:
    wide = sum(1 for letter in text if ord(letter) >= 0x2E80)
    return wide + (len(text) - wide) // 4


class Provider:
    """A model behind a strict provider with a window.

    It answers with what `model` says, or with what `answer` makes of a request. A request that is too large is
    refused as providers do, and counted in `refused`; what is wrong with one stands in `wrong`. `largest` is the
    size of the largest one that was taken, `last` the newest. Tokens are counted by `count` and told as usage.
    """

    def __init__(
        self,
        window: int,
        answer: Callable[[ModelRequest], Any] | Any,
        *,
        name: str = "strict",
        provider: str = "acceptance",
        count: Callable[[ModelRequest], int] = size_of,
        keep: bool = False,
    ) -> None:
        self.provider, self.name = provider, name
        self.context_window: int | None = window
        self.largest = self.asked = 0
        self.wrong: list[str] = []
        self.refused: list[int] = []
        self.requests: list[ModelRequest] = []
        self.last = ModelRequest(())
        self._window, self._answer, self._count, self._keep = window, answer, count, keep

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Check, then answer."""
        size = self._take(request)
        if hasattr(self._answer, "stream"):
            model: Any = self._answer
        else:
            model = ScriptedModel([self._answer(request)], provider=self.provider, name=self.name)
        async for chunk in model.stream(request):
            yield Done(_counted(chunk.message, size)) if isinstance(chunk, Done) else chunk

    def _take(self, request: ModelRequest) -> int:
        self.asked += 1
        self.wrong += [f"request {self.asked}: {what}" for what in complaints(request, self.provider, self.name)]
        size = self._count(request)
        if size > self._window:
            self.refused.append(size)
            raise ContextOverflow(f"{size} tokens are too many", window=self._window)
        self.largest, self.last = max(self.largest, size), request
        if self._keep:
            self.requests.append(request)
        return size


def _counted(message: Msg, size: int) -> Msg:
    return message.with_changes(usage=Usage(input=size, output=_MESSAGE + _tokens(_text(message.to_dict()["content"]))))
