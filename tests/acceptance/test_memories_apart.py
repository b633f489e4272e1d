"""Two users of one agent at once: what is remembered of one is never shown, written or kept with the other."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import HarnessAgent, RuntimeContext
from harness.memory import MaintenanceConfig
from harness.models import Chunk, ModelRequest, OfflineModel

USERS = ("alice", "bob")


class Watched:
    """The offline model; keeps what it was asked, by what stands in it."""

    provider, name = "offline", "watched"

    def __init__(self) -> None:
        self._model = OfflineModel()
        self.context_window = self._model.context_window
        self.seen: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        self.seen.append("\n".join([request.system, *(message.text for message in request.messages)]))
        await asyncio.sleep(0)  # the other's requests come in between
        async for chunk in self._model.stream(request):
            yield chunk


def canary(user: str, number: int) -> str:
    return f"My code {number} is canary-{user}-{number}."


def builder(workspace: Path, model: Any) -> Any:
    made = HarnessAgent.builder().name("notes").model(model).workspace(workspace)
    return made.memory_flush().memory_maintenance(MaintenanceConfig(gap_seconds=0))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["compaction", "working_set"])
async def test_what_two_users_say_at_once_never_meets_in_memory_or_in_a_request(workspace: Path, policy: str) -> None:
    model = Watched()
    async with getattr(builder(workspace, model), policy)().build() as agent:
        for number in range(1, 9):
            contexts = [RuntimeContext(session_id=f"s{number % 3}", user_id=user) for user in USERS]
            await asyncio.gather(*(agent.call(canary(ctx.user_id, number), ctx) for ctx in contexts))
    async with getattr(builder(workspace, model), policy)().build() as agent:
        asked = [agent.call("What is my code 1?", RuntimeContext(session_id="new", user_id=user)) for user in USERS]
        replies = await asyncio.gather(*asked)
    assert ["canary-alice-1" in replies[0].text, "canary-bob-1" in replies[1].text] == [True, True]
    assert not [text for text in model.seen if all(f"canary-{user}" in text for user in USERS)]
    for user, other in (USERS, USERS[::-1]):
        files = [path for path in (workspace / "tenants" / user).rglob("*") if path.is_file()]
        assert f"canary-{user}-1" in (workspace / "tenants" / user / "MEMORY.md").read_text()
        assert not [path for path in files if f"canary-{other}".encode() in path.read_bytes()]
