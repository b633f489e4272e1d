"""A conversation of every kind of turn, at rest, and the script that makes it."""

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutations import sessions_of

from harness.agent import open_session
from harness.sessions import SessionCache
from harness.sessions.lines.anchor import parse_anchor

SCRIPT = Path(__file__).parents[1] / "acceptance/conversation.py"


@pytest.fixture(scope="session")
def conversation():
    spec = importlib.util.spec_from_file_location("ledger_conversation", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def original(conversation, tmp_path_factory) -> Path:
    """The workspace of a conversation with tools, states, media, large results and compactions."""
    workspace = tmp_path_factory.mktemp("original") / "w"

    async def talk():
        async with conversation.build(workspace) as agent:
            for number in range(7):
                await agent.call(conversation.message_of(number), conversation.context_of("s"))
            await agent.call("turn 7 plain: è tardi, 日本語", conversation.context_of("s"))

    asyncio.run(talk())
    return workspace


@pytest.fixture(scope="session")
def ledger(original):
    folder = sessions_of(original)
    lines = (folder / "s.log.jsonl").read_bytes().split(b"\n")[:-1]
    return lines, parse_anchor((folder / "s.head.json").read_bytes())


@pytest.fixture
def new_process(monkeypatch):
    """Forget what this process remembers of sessions, as a new process would."""
    return lambda: monkeypatch.setattr(open_session, "_cache", SessionCache())
