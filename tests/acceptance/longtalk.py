"""A conversation of any length with a fact in its third turn, and what is true of it at its end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import HarnessAgent, RuntimeContext
from harness.messages import Msg, ToolUse
from harness.models import ModelRequest, RetryPolicy
from harness.tools import tool

__all__ = [
    "ALICE",
    "FACT",
    "LongTalk",
    "asks_for_summary",
    "builder",
    "look",
    "paths_of",
    "request_ids",
    "said",
    "talker",
]

ALICE = RuntimeContext(session_id="long", user_id="alice")
FACT = "The code word of this project is marmalade-4711."
_TURN = re.compile(r"turn (\d+):")
_RESULT = "".join(f"line {n}: {'value ' * 12}\n" for n in range(20))


@tool
def look(n: int) -> str:
    """Look something up."""
    return f"record {n}\n{_RESULT}"


def asks_for_summary(request: ModelRequest) -> bool:
    """Whether this is no part of the conversation; both policies' prompts say so in these words."""
    return "Answer with the summary only." in f"{request.system}\n{request.messages[-1].text}"


def talker(request: ModelRequest) -> Any:
    """Answers by the last message alone: looks things up every third turn, recalls when it is asked for the code word."""
    last = request.messages[-1]
    if asks_for_summary(request):
        return f"Summary of {len(request.messages)} messages: they talk about records, and go on."
    if last.role == "tool":
        [result] = last.tool_results
        found = re.search(r"marmalade-\d+", result.text) if result.name == "recall" else None
        return f"It is {found[0]}." if found else f"Found: {result.text[:30]}"
    if "code word" in last.text and "?" in last.text:
        return ToolUse(id="ask", name="recall", input={"query": "code word project"})
    numbers = _TURN.findall(last.text)
    assert numbers, last.text[:500]
    number = int(numbers[-1])
    return ToolUse(id=f"look-{number}", name="look", input={"n": number}) if number % 3 == 0 else f"answer {number}"


class LongTalk:
    """Says the turns one after the other; every call goes through the agent that is given."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def prompt(self, number: int) -> str:
        """The words of a turn; some are in another script."""
        fact = f" {FACT}" if number == 3 else ""
        filler = "記録について話しましょう。" * 6 if number % 7 == 0 else "We talk about the records, one by one. " * 4
        return f"turn {number}:{fact} {filler}"

    async def run(self, agent: HarnessAgent, question: str = "What was the code word of this project?") -> Msg:
        """All turns but the last one, then the question; the reply to it."""
        for number in range(1, self.turns):
            await agent.call(self.prompt(number), ALICE)
        return await agent.call(question, ALICE)


def paths_of(workspace: Path, session: str = "long") -> tuple[Path, Path]:
    """The ledger and the context file."""
    folder = workspace / "tenants/alice/agents/notes/sessions"
    return folder / f"{session}.log.jsonl", folder / f"{session}.jsonl"


def builder(workspace: Path, model: Any) -> Any:
    """An agent with the session tools and one of the conversation's own."""
    made = HarnessAgent.builder().name("notes").model(model).workspace(workspace).retry(RetryPolicy(base=0))
    return made.without("workspace_context", "file_tools", "memory_tools").tools(look)


def said(ledger: Path) -> tuple[list[str], list[str], list[str]]:
    """Of all messages in the ledger: what people said, the models' answers, the calls that have a result."""
    people: list[str] = []
    answers: list[str] = []
    results: list[str] = []
    with open(ledger, "rb") as file:
        for raw in file:
            if b'"type":"message"' not in raw[:20]:
                continue
            entry = json.loads(raw)
            blocks = entry["message"]["content"]
            if entry["via"] == "user":
                people += [block["text"] for block in blocks if block["type"] == "text"]
            elif entry["via"] == "model":
                answers += [block["text"] for block in blocks if block["type"] == "text"]
            elif entry["via"] == "tool":
                results += [block["id"] for block in blocks]
    return people, answers, results


def request_ids(ledger: Path) -> Iterator[str]:
    """The ids of all requests in a ledger."""
    with open(ledger, "rb") as file:
        for raw in file:
            if raw.startswith(b'{"type":"request_begin"'):
                yield json.loads(raw)["id"]
