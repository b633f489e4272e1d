"""A tool result as a model reads it back: piece by piece, with `recall` alone."""

from __future__ import annotations

import re
from typing import Any

from longtalk import asks_for_summary
from provider import Provider

from harness import HarnessAgent, RuntimeContext
from harness.messages import ToolResult
from harness.models import ModelRequest
from harness.testing import ScriptedModel

__all__ = ["read_back"]


class Reader:
    """Asks for one piece of a result, and keeps what it gets."""

    def __init__(self, evidence: str, span: str) -> None:
        self.results: tuple[ToolResult, ...] = ()
        self._asked = {"id": evidence, "chars": span}

    def __call__(self, request: ModelRequest) -> Any:
        last = request.messages[-1]
        if asks_for_summary(request):
            return "They talked."
        self.results = last.tool_results
        return "ok" if last.role == "tool" else ScriptedModel.tool_call("recall", **self._asked)


async def read_back(agent: HarnessAgent, ctx: RuntimeContext, evidence: str) -> str:
    """A result as the model reads it, piece by piece, with the tool alone."""
    pieces: list[str] = []
    span = ""
    while True:
        reader = Reader(evidence, span)
        await agent.call("Read it.", ctx, model=Provider(10**6, reader, name="reader"))
        [result] = reader.results
        head, _, piece = result.text.partition("\n")
        pieces.append(piece)
        more = re.search(r'go on with recall\(.*chars="(\d+-\d+)"', head)
        if more is None:
            return "".join(pieces)
        span = more[1]
