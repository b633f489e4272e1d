"""Files that a crash cut short, seen from the agent: the next call goes on, on a line of its own."""

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from places import agent_in

from harness.agent import open_session
from harness.context import RuntimeContext
from harness.sessions import SessionCache, verify_chain

CTX = RuntimeContext(session_id="s", user_id="alice")


@pytest.fixture
def restart(monkeypatch: pytest.MonkeyPatch):
    return lambda: monkeypatch.setattr(open_session, "_cache", SessionCache())


def files_in(workspace: Path) -> tuple[Path, Path]:
    folder = workspace / "tenants/alice/agents/agent/sessions"
    return folder / "s.log.jsonl", folder / "s.jsonl"


async def say(workspace: Path, text: str, restart) -> list[str]:
    """One call in what might be a new process; the whole history after it."""
    restart()
    async with agent_in(workspace) as agent:
        await agent.call(text, CTX)
        return [message.text for message in await agent.sessions("alice").history("s")]


def cut_both(workspace: Path, cut: int) -> bytes:
    """Cut bytes off the end of ledger and context file; what is left of the ledger."""
    for path in files_in(workspace):
        path.write_bytes(path.read_bytes()[:-cut])
    return files_in(workspace)[0].read_bytes()


def cut_the_commit(workspace: Path) -> bytes:
    """Cut both files so that the ledger ends within the line that commits the last answer."""
    data = files_in(workspace)[0].read_bytes()
    return cut_both(workspace, len(data) - data.rfind(b'{"type":"request_end"') - 97)


# The answer's own line stands, the one that commits it is cut: without track 1 nobody knows that it was given.
@pytest.mark.parametrize(
    ("cut", "torn", "second"), [("commit", 1, "[stopped]"), (97, 1, "heard: two"), (1, 0, "heard: two")]
)
async def test_a_cut_end_costs_at_most_the_cut_record_however_often_it_is_reopened(
    tmp_path: Path, restart, cut: int | str, torn: int, second: str
) -> None:
    await say(tmp_path, "one", restart)
    await say(tmp_path, "two", restart)
    shutil.rmtree(tmp_path / "tenants/alice/agents/agent/context")
    before = cut_both(tmp_path, cut) if isinstance(cut, int) else cut_the_commit(tmp_path)
    ledger, context = files_in(tmp_path)
    for number in range(3):
        history = await say(tmp_path, f"after {number}", restart)
        assert history[:4] == ["one", "heard: one", "two", second]
        assert history[-2:] == [f"after {number}", f"heard: after {number}"]
        data = ledger.read_bytes()
        assert data.startswith(before)
        assert [found.kind for found in verify_chain(data)] == ["torn"] * torn
        assert sum(not whole(line) for line in data.splitlines()) == torn
        assert all(whole(line) for line in context.read_bytes().splitlines())


async def test_an_answer_that_track_1_knows_comes_back_when_the_line_that_commits_it_is_cut(
    tmp_path: Path, restart
) -> None:
    await say(tmp_path, "one", restart)
    await say(tmp_path, "two", restart)
    cut_the_commit(tmp_path)
    history = await say(tmp_path, "three", restart)
    assert history == ["one", "heard: one", "two", "heard: two", "three", "heard: three"]


def whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
