"""A model with a window, as a provider has one: it refuses what is too large and what is not in order."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from harness.errors import ContextOverflow
from harness.models import Chunk, ModelRequest, estimate_request
from harness.testing import ScriptedModel

SUMMARISE = "You summarise conversations"


def asks_for_summary(request: ModelRequest) -> bool:
    return SUMMARISE in request.system


def complain(request: ModelRequest) -> list[str]:
    """What a provider would refuse in a request: roles, pairs, order, nothing empty."""
    wrong: list[str] = []
    messages = [message.to_dict() for message in request.messages]
    if not messages or messages[0]["role"] != "user":
        wrong.append("the first message is not a user's")
    waiting: list[str] = []
    for number, message in enumerate(messages):
        calls = [block["id"] for block in message["content"] if block["type"] == "toolUse"]
        results = [block["id"] for block in message["content"] if block["type"] == "toolResult"]
        if results != waiting:
            wrong.append(f"message {number}: results {results} where {waiting} wait")
        if not message["content"] or message["role"] not in ("user", "assistant", "tool"):
            wrong.append(f"message {number}: empty, or of role {message['role']}")
        if message["role"] == "assistant" and number and messages[number - 1]["role"] == "assistant":
            wrong.append(f"message {number}: two answers in a row")
        waiting = calls
    return [*wrong, *([f"calls {waiting} have no result"] if waiting else [])]


class Windowed:
    """Answers with what `answer` and `summary` make of a request; counts tokens as it is told to.

    `declares` is whether it says how large its window is before anybody asks, `reveals` whether it
    says so when it refuses. `weight` is what one estimated token really is.
    """

    provider, name = "test", "windowed"

    def __init__(
        self,
        window: int,
        answer: Callable[[ModelRequest], Any] = lambda request: f"heard {len(request.messages)}",
        summary: Callable[[ModelRequest], Any] = lambda _: "SUMMARY",
        *,
        declares: bool = False,
        reveals: bool = True,
        weight: float = 1.0,
    ) -> None:
        self.window = window
        self.context_window = window if declares else None
        self.requests: list[ModelRequest] = []
        self.summaries: list[ModelRequest] = []
        self.refused: list[int] = []
        self._answer, self._summary, self._reveals, self._weight = answer, summary, reveals, weight

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        assert complain(request) == []
        size = round(estimate_request(request) * self._weight)
        if size > self.window:
            self.refused.append(size)
            raise ContextOverflow("too long", window=self.window if self._reveals else None)
        summing_up = asks_for_summary(request)
        (self.summaries if summing_up else self.requests).append(request)
        step = (self._summary if summing_up else self._answer)(request)
        async for chunk in ScriptedModel([step], provider=self.provider, name=self.name).stream(request):
            yield chunk
