"""A disk that is full, or cannot be written to: the caller learns of it, nothing shrinks, and it goes on (case B32)."""

import contextlib
import errno
import logging
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from mutations import sessions_of

import harness
from harness.errors import ConfigError, PersistenceError
from harness.testing import check_ledger

FULL = 10**9
_write = os.write


class Disk:
    """Takes `room` more bytes below a folder; of the write that exceeds it, what still fits."""

    def __init__(self) -> None:
        self.room = FULL
        self.written = 0
        self.refused = 0

    def write(self, descriptor: int, data) -> int:
        try:
            place = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            place = ""
        if "/full/" not in place:
            return _write(descriptor, data)
        fits = min(len(data), self.room)
        if fits == 0 and len(data):
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = _write(descriptor, data[:fits])
        self.room -= count
        self.written += count
        return count


@pytest.fixture
def disk(monkeypatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(os, "write", disk.write)
    return disk


@pytest.fixture
def workspace(tmp_path) -> Path:
    return tmp_path / "full" / "w"


def sizes(workspace: Path) -> dict[str, int]:
    """Of what only ever grows."""
    folder = sessions_of(workspace)
    return {
        path.name: path.stat().st_size for path in [folder / "s.log.jsonl", *folder.glob("files/*/*")] if path.is_file()
    }


async def assert_it_goes_on(conversation, workspace: Path, turn: int) -> None:
    """The next call is stored, every line is whole, and nothing is missing that is not marked."""
    async with conversation.build(workspace) as agent:
        reply = await agent.call(f"turn {turn} state, after space was freed", conversation.context_of("s"))
        assert reply.text
        history = await agent.sessions("alice").history("s", 2)
        assert history[-1].text == reply.text
        report = await agent.sessions("alice").verify("s")
    assert report.ok, report.findings
    assert check_ledger((sessions_of(workspace) / "s.log.jsonl").read_bytes())[0] == []


async def outcome_of(call, disk: Disk) -> str:
    try:
        await call
    except PersistenceError as error:
        said = str(error)
        outcome = "failed with the reply" if getattr(error, "reply", None) else "failed"
    else:
        return "warned" if call.warnings else "copies only" if disk.refused else "stored"
    assert "No space left on device; free space on the disk and repeat the call" in said
    return outcome


@pytest.mark.slow
async def test_wherever_the_disk_gets_full_the_call_says_so_and_the_next_one_works(
    conversation, workspace, new_process, disk, caplog
):
    """Append, files, snapshot, index and compaction, each at many places: the turn compacts, and uses tools."""
    caplog.set_level(logging.CRITICAL)
    prompt, ctx = conversation.message_of(7), conversation.context_of("s")
    base = workspace / "base"
    async with conversation.build(base) as agent:
        for number in range(1, 6):
            await agent.call(conversation.message_of(number), ctx)
    outcomes, before, needed = Counter(), sizes(base), 0
    for tenth in [None, *range(0, 41, 2)]:
        place = Path(shutil.copytree(base, workspace / str(tenth)))
        new_process()
        if tenth is not None:
            disk.room = needed * tenth // 40
        start, disk.refused = disk.written, 0
        async with closing_on_a_full_disk(conversation.build(place)) as agent:
            outcomes[await outcome_of(agent.call(prompt, ctx), disk)] += 1
            needed = disk.written - start if tenth is None else needed
        after = sizes(place)
        assert all(after[name] >= size for name, size in before.items())
        disk.room = FULL
        new_process()
        await assert_it_goes_on(conversation, place, 8)
    assert outcomes["stored"] >= 1
    assert outcomes["failed"] >= 5
    assert outcomes["failed with the reply"] >= 1
    assert outcomes["copies only"] + outcomes["warned"] >= 1


class closing_on_a_full_disk:  # noqa: N801 - reads as a function
    """An agent whose list of sessions may not be written when it closes."""

    def __init__(self, agent) -> None:
        self.agent = agent

    async def __aenter__(self):
        return self.agent

    async def __aexit__(self, *_) -> None:
        with contextlib.suppress(PersistenceError):
            await self.agent.aclose()


def test_a_file_size_limit_of_the_system_is_an_error_that_says_what_to_do(tmp_path):
    script = f"""
import asyncio, resource, signal, sys
sys.path.insert(0, {str(Path(harness.__file__).parents[1])!r})
from harness import HarnessAgent, RuntimeContext
from harness.errors import PersistenceError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    ctx = RuntimeContext(session_id="s", user_id="alice")
    agent = HarnessAgent.builder().name("crash").model("offline").workspace({str(tmp_path)!r}).build()
    await agent.call("first", ctx)
    size = (agent.config.workspace / "tenants/alice/agents/crash/sessions/s.log.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
    try:
        await agent.call("second", ctx)
    except PersistenceError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print((await agent.call("third", ctx)).role)
    print([message.text for message in await agent.sessions("alice").history("s") if message.role == "user"])
    print((await agent.sessions("alice").verify("s")).ok)
    await agent.aclose()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    error, role, asked, ok = done.stdout.splitlines()
    assert "File too large; raise the limit of file sizes and repeat the call" in error
    assert (role, asked, ok) == ("assistant", "['first', 'third']", "True")


async def test_goes_on_without_the_disk_only_if_the_builder_said_so(conversation, workspace, disk, new_process):
    from harness.agent import HarnessAgent

    ctx = conversation.context_of("s")
    builder = HarnessAgent.builder().name("crash").model(conversation.Talker()).workspace(workspace)
    async with builder.on_disk_failure("continue").build() as agent:
        await agent.call("turn 1 plain", ctx)
        disk.room = 0
        call = agent.call("turn 2 plain", ctx)
        assert (await call).text.startswith("reply 2")
        assert any("this turn is not stored: " in warning for warning in call.warnings)
        assert "No space left on device" in " ".join(call.warnings)
        disk.room = FULL
        stored = agent.call("turn 3 plain", ctx)
        assert (await stored).text.startswith("reply 3")
        assert stored.warnings == []
        history = await agent.sessions("alice").history("s")
        assert [message.text for message in history if message.role == "user"] == ["turn 1 plain", "turn 3 plain"]
        assert (await agent.sessions("alice").verify("s")).ok


async def test_a_disk_that_recovers_within_the_call_stores_the_turn_without_a_warning(conversation, workspace, disk):
    from harness.agent import HarnessAgent

    class Recovering(conversation.Talker):
        async def stream(self, request):
            disk.room = FULL
            async for chunk in super().stream(request):
                yield chunk

    ctx = conversation.context_of("s")
    builder = HarnessAgent.builder().name("crash").model(Recovering()).workspace(workspace)
    async with builder.on_disk_failure("continue").build() as agent:
        await agent.call("turn 1 plain", ctx)
        disk.room = 0
        call = agent.call("turn 2 plain", ctx)
        await call
        assert call.warnings == []
        history = await agent.sessions("alice").history("s")
        assert [message.text for message in history if message.role == "user"] == ["turn 1 plain", "turn 2 plain"]
        assert (await agent.sessions("alice").verify("s")).ok


@pytest.mark.parametrize("new", [True, False], ids=["a new session", "a session that is there"])
async def test_on_a_read_only_disk_a_call_fails_or_goes_on_as_the_builder_said(
    conversation, workspace, new_process, monkeypatch, new
):
    ctx = conversation.context_of("s")
    if not new:
        async with conversation.build(workspace) as agent:
            await agent.call("turn 1 plain", ctx)
    real_open, real_mkdir = os.open, os.mkdir

    def read_only(path, flags, *rest, **options):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and "/full/" in str(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real_open(path, flags, *rest, **options)

    def no_folders(path, *rest, **options):
        if "/full/" in str(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real_mkdir(path, *rest, **options)

    workspace.parent.mkdir(exist_ok=True)
    new_process()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only)
        patch.setattr(os, "mkdir", no_folders)
        agent = conversation.build(workspace)
        with pytest.raises(PersistenceError, match="Read-only file system"):
            await agent.call("turn 2 plain", ctx)
        from harness.agent import HarnessAgent

        builder = HarnessAgent.builder().name("crash").model(conversation.Talker()).workspace(workspace)
        going_on = builder.on_disk_failure("continue").build()
        call = going_on.call("turn 2 plain", ctx)
        assert (await call).text.startswith("reply 2")
        assert any("this turn is not stored: " in warning for warning in call.warnings)
    async with conversation.build(workspace) as agent:
        await agent.call("turn 3 plain", ctx)
        history = await agent.sessions("alice").history("s")
        asked = [message.text for message in history if message.role == "user"]
        assert asked == (["turn 3 plain"] if new else ["turn 1 plain", "turn 3 plain"])


def test_another_choice_is_refused():
    from harness.agent import HarnessAgent

    with pytest.raises(ConfigError, match="it can be 'fail' or 'continue'"):
        HarnessAgent.builder().on_disk_failure("ignore")
