"""Conversations for the tests of track 2."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.sessions import SessionTree

MakeTree = Callable[..., SessionTree]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder `sessions/` that is not there yet."""
    return tmp_path / "agents" / "notes" / "sessions"


@pytest.fixture
def make_tree(folder: Path) -> MakeTree:
    """Trees of one agent and tenant; each is a cold handle, as of a new process."""

    def make(session_id: str = "s-1", **options: Any) -> SessionTree:
        given = {"agent": "notes", "namespace": ("alice",), **options}
        return SessionTree(folder, session_id, **given)

    return make


class Talk:
    """Says things into a tree the way a call does."""

    @staticmethod
    def user(text: str, message_id: str) -> dict[str, Any]:
        return {"id": message_id, "role": "user", "content": [{"type": "text", "text": text}]}

    @staticmethod
    def assistant(text: str, message_id: str, *calls: str) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        blocks += [{"type": "toolUse", "id": call, "name": "look", "input": {}} for call in calls]
        return {"id": message_id, "role": "assistant", "content": blocks}

    @staticmethod
    def result(message_id: str, *calls: str, text: str = "found") -> dict[str, Any]:
        blocks = [
            {"type": "toolResult", "id": call, "name": "look", "content": [{"type": "text", "text": text}]}
            for call in calls
        ]
        return {"id": message_id, "role": "tool", "content": blocks}

    @staticmethod
    def request(tree: SessionTree, purpose: str = "execute") -> str:
        binding = tree.bind([{"name": "prompt", "text": "Be brief."}], [], "m-1", "test", {})
        return tree.begin_request(purpose, 1, binding, tree.messages(), tree.turn, "compaction")

    @classmethod
    async def answer(cls, tree: SessionTree, text: str, message_id: str, *calls: str) -> str:
        """One request and its committed output; the request's id."""
        request = cls.request(tree)
        await tree.commit(sync=False)
        tree.add_message(cls.assistant(text, message_id, *calls), via="model", request=request)
        tree.end_request(request, "completed", "stop", {"input": 1, "output": 1})
        await tree.commit(sync=True)
        return request

    @classmethod
    async def turn(cls, tree: SessionTree, number: int, *, tool: bool = False) -> None:
        """A whole turn: prompt `u<n>`, perhaps a call with its result, answer `a<n>`."""
        tree.add_message(cls.user(f"question {number}", f"u{number}"), via="user")
        if tool:
            await cls.answer(tree, "", f"c{number}", f"call-{number}")
            tree.add_message(cls.result(f"r{number}", f"call-{number}"), via="tool")
        await cls.answer(tree, f"answer {number}", f"a{number}")

    @staticmethod
    def ids(tree: SessionTree) -> list[str]:
        return [message["id"] for message in tree.messages()]


@pytest.fixture
def talk() -> type[Talk]:
    return Talk


@pytest.fixture
def lines() -> Callable[[Path], list[dict[str, Any]]]:
    """Parse a file as a stranger would: one JSON object a line, split at line feeds only."""

    def parse(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_bytes().removesuffix(b"\n").split(b"\n")]

    return parse
