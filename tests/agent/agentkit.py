"""What the tests of the agent share: an agent on a script, and eyes on its files that are not the library's own."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness import HarnessAgent, RuntimeContext
from harness.agent import Call
from harness.messages import Msg, ToolResult, ToolUse
from harness.models import ModelRequest, RetryPolicy
from harness.testing import ScriptedModel

ALICE = RuntimeContext(session_id="s1", user_id="alice")
BOB = RuntimeContext(session_id="s1", user_id="bob")
call_of = ScriptedModel.tool_call


def agent_of(workspace: Path, model: Any, *tools: Any, hooks: Sequence[Any] = (), **options: Any) -> HarnessAgent:
    """An agent that sees nothing but the conversation, and waits for nothing between its tries."""
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace)
    builder = builder.without("workspace_context", "file_tools", "session_tools", "memory_tools")
    builder = builder.retry(options.pop("retry", RetryPolicy(base=0))).tools(*tools).hooks(*hooks)
    for name, value in options.items():
        values = value if isinstance(value, tuple) else (value,)
        builder = getattr(builder, name)(*values)
    return builder.build()


def exists(path: Path) -> bool:
    return path.exists()


def sessions_folder(workspace: Path, user: str = "alice", agent: str = "notes") -> Path:
    return workspace / "tenants" / user / "agents" / agent / "sessions"


def context_folder(workspace: Path, session: str = "s1", user: str = "alice", agent: str = "notes") -> Path:
    return workspace / "tenants" / user / "agents" / agent / "context" / session


def strict(raw: bytes) -> Any:
    """JSON as the standard has it: NaN and infinities are no part of it, and every text is UTF-8."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    value = json.loads(raw.decode("utf-8"), parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [strict(line) for line in path.read_bytes().split(b"\n") if line]


def ledger(workspace: Path, session: str = "s1", user: str = "alice") -> list[dict[str, Any]]:
    return json_lines(sessions_folder(workspace, user) / f"{session}.log.jsonl")


def of_kind(entries: Iterable[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The entries of a type, or the events of a kind."""
    return [entry for entry in entries if kind in (entry["type"], entry.get("kind"))]


def logged(workspace: Path, session: str = "s1", user: str = "alice") -> list[tuple[str, str, str]]:
    """Every logged message as (via, role, text); results and calls count as text."""
    messages = of_kind(ledger(workspace, session, user), "message")
    return [(entry["via"], entry["message"]["role"], dict_text(entry["message"])) for entry in messages]


def dict_text(message: dict[str, Any]) -> str:
    return " ".join(_block_text(block) for block in message["content"])


def _block_text(block: dict[str, Any]) -> str:
    if block["type"] == "toolUse":
        return f"{block['name']}({json.dumps(block['input'], ensure_ascii=False)})"
    if block["type"] == "toolResult":
        return " ".join(_block_text(inner) for inner in block["content"])
    return str(block.get("text", ""))


def shown(request: ModelRequest) -> list[tuple[str, str]]:
    """The messages of a request as (role, text)."""
    return [(message.role, dict_text(message.to_dict())) for message in request.messages]


def messages_of_case(case: list[dict[str, Any]]) -> list[Msg]:
    """The neutral messages of a case as ours."""
    made = []
    for item in case:
        blocks: list[Any] = [item["text"]] if "text" in item else []
        blocks += [ToolUse(id=call["id"], name=call["name"], input=call["args"]) for call in item.get("calls", [])]
        blocks += [ToolResult(id=result["id"], content=result["text"]) for result in item.get("results", [])]
        made.append(Msg(role=item["role"], blocks=blocks))
    return made


def assert_pair_complete(request: ModelRequest) -> None:
    """Each call has exactly one result, in the very next message, and no result is without its call."""
    messages = [message.to_dict() for message in request.messages]
    waiting: list[str] = []
    for message in messages:
        calls = [block["id"] for block in message["content"] if block["type"] == "toolUse"]
        results = [block["id"] for block in message["content"] if block["type"] == "toolResult"]
        assert results == waiting, f"results {results} where calls {waiting} wait"
        assert len(set(calls)) == len(calls)
        waiting = calls
    assert waiting == []


async def inexact(agent: HarnessAgent, ctx: RuntimeContext) -> list[str]:
    """The requests of a session whose context the ledger does not give again byte for byte."""
    tree = await agent.sessions(ctx).tree(ctx.session_id)
    raw = [json.loads(line) for line in tree.files.ledger.read_bytes().split(b"\n") if line]
    requests = [entry["id"] for entry in raw if entry["type"] == "request_begin"]
    return [request for request in requests if not (await tree.context_at(request)).exact]


class Held:
    """A step that answers only when it is let go, and tells that it was asked."""

    def __init__(self, answer: Any = "held") -> None:
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()
        self._answer = answer

    async def __call__(self, _request: ModelRequest) -> Any:
        self.asked.set()
        await self.let_go.wait()
        return self._answer


async def names(call: Call) -> list[str]:
    """The events of a call, by name."""
    return [event.event async for event in call]


async def until(condition: Any) -> None:
    """Give way to others until something holds; the test's own time limit is the end of patience."""
    while not condition():
        await asyncio.sleep(0.001)
