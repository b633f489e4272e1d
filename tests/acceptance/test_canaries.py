"""One agent object, a hundred users at once: nothing of one is ever seen by another."""

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from canaries import CANARY, AwaitingHook, CanaryModel, CanaryTools, Diary, LogWatch, ThreadHook, Watch

from harness.agent import HarnessAgent
from harness.context import RuntimeContext
from harness.errors import ModelRejected
from harness.filesystem import NamespaceFactory, user_namespace
from harness.hooks import CompactionConfig

USERS, ROUNDS = 100, 6


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    handler = LogWatch(watch)
    loggers = [logging.getLogger("harness.trace"), logging.getLogger("canaries")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    yield watch
    for logger in loggers:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


def build(workspace: Path, watch: Watch, namespace: NamespaceFactory = user_namespace) -> HarnessAgent:
    tools = CanaryTools(watch)
    agent = (
        HarnessAgent.builder()
        .name("canary")
        .model(CanaryModel(watch, seed=3))
        .workspace(workspace)
        .namespace(namespace)
        .tools(tools)
        .hooks(AwaitingHook(watch), ThreadHook(watch))
        .state_module(Diary)
        .compaction(CompactionConfig(trigger_messages=40, keep_messages=20))
        .build()
    )
    tools.agent = agent
    return agent


def context_of(user: str) -> RuntimeContext:
    # Every user has the same session id: only the namespace keeps them apart.
    return RuntimeContext(session_id="chat", user_id=user)


def prompt_of(user: str, number: int, kind: str = "all") -> str:
    return f"round {number} of canary-{user}-{number}: {kind}"


async def rounds_of(agent: HarnessAgent, watch: Watch, user: str) -> None:
    """All rounds of one user, the replies taken in turn by await, as a stream, and as an Observable."""
    for number in range(ROUNDS):
        call = agent.call(prompt_of(user, number), context_of(user))
        if number % 3 == 1:
            async for event in call:
                watch.check("stream", user, event.to_dict())
        elif number % 3 == 2:
            call.observable().subscribe(lambda event: watch.check("observable", user, event.to_dict()))
        reply = await call
        watch.check("reply", user, reply.text)
        watch.check_equal("reply is the own one", reply.text, f"done with canary-{user}-{number}")


async def failing_rounds_of(agent: HarnessAgent, watch: Watch, user: str) -> None:
    """A neighbour whose every call ends in an error, in the midst of the others."""
    for number in range(ROUNDS):
        with pytest.raises(ModelRejected):
            await agent.call(prompt_of(user, number, "explode"), context_of(user))


def assert_folders_are_clean(workspace: Path, users: list[str]) -> int:
    """Each tenant's folder holds that tenant's canaries and no other's, in every byte of every file."""
    checked = 0
    roots = {root.name: root for root in (workspace / "tenants").iterdir()}
    assert sorted(roots) == sorted(users)
    for user, root in roots.items():
        files = [path for path in root.rglob("*") if path.is_file()]
        found = {name for path in files for name in CANARY.findall(f"{path} {path.read_bytes().decode('latin-1')}")}
        assert found == {user}, f"the folder of {user} holds {found - {user}}"
        ledgers = [path for path in files if path.name.endswith(".log.jsonl")]
        assert [json.loads(path.read_bytes().partition(b"\n")[0])["tenant"] for path in ledgers] == [[user]] * len(
            ledgers
        )
        checked += len(files)
    return checked


@pytest.mark.slow
async def test_ten_thousand_interleaved_operations_of_a_hundred_users_cross_nowhere(
    tmp_path: Path, watch: Watch
) -> None:
    users = [f"u{number:03}" for number in range(USERS)]
    neighbours = users[:5]
    async with build(tmp_path, watch) as agent:
        await asyncio.gather(
            *(rounds_of(agent, watch, user) for user in users[5:]),
            *(failing_rounds_of(agent, watch, user) for user in neighbours),
        )
        assert watch.crossings == []
        assert operations(watch) >= 10_000
        for user in users[5:]:
            hits = await agent.sessions(user).search("canary", limit=1000)
            assert {name for hit in hits for name in CANARY.findall(hit.snippet)} == {user}
            assert [info.id for info in await agent.sessions(user).list()] == ["chat", "side"]
            history = await agent.sessions(user).history("chat", 10)
            assert history[-1].text == f"done with canary-{user}-{ROUNDS - 1}"
    assert assert_folders_are_clean(tmp_path, users) > 1000


def operations(watch: Watch) -> int:
    """Tools that ran to their end: writes, reads, searches, states, logs, nested calls. Checks are not counted."""
    return watch.done["sync hook after a tool"]


async def test_every_kind_of_check_was_made(tmp_path: Path, watch: Watch) -> None:
    async with build(tmp_path, watch) as agent:
        await asyncio.gather(*(rounds_of(agent, watch, user) for user in ("u001", "u002", "u003")))
        with pytest.raises(ModelRejected):
            await agent.call(prompt_of("u004", 0, "explode"), context_of("u004"))
    assert watch.crossings == []
    assert sorted(kind for kind, count in watch.done.items() if count >= 3) == [
        "filesystem",
        "hook",
        "log record of canaries",
        "log record of harness.trace",
        "model",
        "model after awaiting",
        "nested call",
        "observable",
        "recall",
        "reply",
        "reply is the own one",
        "scope after a nested call",
        "scope in a hook",
        "scope in a sync hook",
        "scope in a thread",
        "scope in to_thread",
        "state",
        "stream",
        "sync hook after a tool",
        "sync hook before a tool",
        "sync tool",
    ]


def test_calls_from_many_threads_keep_apart(tmp_path: Path, watch: Watch) -> None:
    users = [f"u{number:03}" for number in range(16)]
    agent = build(tmp_path, watch)

    def one(user: str) -> list[str]:
        return [agent.call(prompt_of(user, number), context_of(user)).block().text for number in range(2)]

    with ThreadPoolExecutor(8) as threads:
        replies = dict(zip(users, threads.map(one, users), strict=True))
    assert replies == {user: [f"done with canary-{user}-0", f"done with canary-{user}-1"] for user in users}
    assert watch.crossings == []
    assert assert_folders_are_clean(tmp_path, users) > 100


def test_threads_with_loops_of_their_own_keep_apart(tmp_path: Path, watch: Watch) -> None:
    users = [f"u{number:03}" for number in range(8)]
    agent = build(tmp_path, watch)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda user: asyncio.run(rounds_of(agent, watch, user)), users))
    assert watch.crossings == []
    assert watch.done["reply is the own one"] == 8 * ROUNDS
    assert assert_folders_are_clean(tmp_path, users) > 50


async def test_a_state_of_one_user_is_never_the_start_of_another(tmp_path: Path, watch: Watch) -> None:
    async with build(tmp_path, watch) as agent:
        for user in ("u001", "u002"):
            await agent.call(prompt_of(user, 0), context_of(user))
        again = await agent.sessions("u002").tree("chat")
    assert again.states()["diary"] == {"canaries": ["canary-u002-0"]}


async def test_the_watch_notices_two_users_that_share_a_namespace(tmp_path: Path, watch: Watch) -> None:
    async with build(tmp_path, watch, lambda _: ("everybody",)) as agent:
        for user in ("u001", "u002"):
            await agent.call(prompt_of(user, 0), context_of(user))
    assert "model of u002 met ['u001']" in watch.crossings
    assert "recall of u002 met ['u001']" in watch.crossings


def test_the_watch_notices_a_stranger(watch: Watch) -> None:
    watch.check("model", "u001", "canary-u001-3 canary-u002-4")
    assert watch.crossings == ["model of u001 met ['u002']"]
