"""What the tests of the working set share: conversations under it, and what their requests show."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentkit import ALICE, agent_of, dict_text, inexact, ledger, of_kind
from fitkit import Windowed

from harness import HarnessAgent
from harness.agent import open_session
from harness.hooks import WorkingSet
from harness.models import ModelRequest
from harness.sessions.cache import SessionCache

LONG = "word " * 120
"""About 150 tokens."""


def working(workspace: Path, model: Any, *tools: Any, config: WorkingSet | None = None, **options: Any) -> HarnessAgent:
    return agent_of(workspace, model, *tools, working_set=config or WorkingSet(), **options)


def long_answer(request: ModelRequest) -> str:
    return f"answer to {request.messages[-1].text[:12]} {LONG}"


def restart(monkeypatch: Any) -> None:
    """What a new process would know of sessions: nothing."""
    monkeypatch.setattr(open_session, "_cache", SessionCache())


async def say(agent: HarnessAgent, numbers: Iterable[int], **options: Any) -> None:
    for number in numbers:
        await agent.call(f"prompt {number}: {LONG}", ALICE, **options)


def texts(request: ModelRequest) -> list[str]:
    return [dict_text(message.to_dict()) for message in request.messages]


def asked_in_full(request: ModelRequest) -> list[int]:
    """The numbers of the prompts that a request shows whole."""
    said = [message.text for message in request.messages if message.role == "user"]
    return [int(text.split(":")[0].removeprefix("prompt ")) for text in said if text.startswith("prompt ")]


def cards_in(request: ModelRequest) -> list[int]:
    """The numbers of the turns that a request shows as a card."""
    lines = [line for text in texts(request) if text.startswith("<turns>") for line in text.split("\n")]
    return [int(line.split()[0].removeprefix("#")) for line in lines if line.startswith("#")]


def packet_in(request: ModelRequest) -> str:
    """The text of the packet that a request shows; empty for none."""
    return next((text for text in texts(request) if text.startswith("<context_summary>")), "")


def selections(workspace: Path) -> list[Any]:
    """The `select` of each request of the conversation."""
    begun = of_kind(ledger(workspace), "request_begin")
    return [entry["select"] for entry in begun if entry["purpose"] == "execute"]


async def assert_exact(agent: HarnessAgent) -> None:
    assert await inexact(agent, ALICE) == []


__all__ = [
    "LONG",
    "Windowed",
    "asked_in_full",
    "assert_exact",
    "cards_in",
    "long_answer",
    "packet_in",
    "restart",
    "say",
    "selections",
    "texts",
    "working",
]
