"""A call on a damaged session says what it has to do without, once, and what to run."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, context_folder, json_lines, sessions_folder

from harness.agent import open_session
from harness.sessions.cache import SessionCache
from harness.testing import ScriptedModel


@pytest.fixture
async def ledger(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of two turns; the next call reads it as a new process does."""
    async with agent_of(workspace, ScriptedModel(["Hello.", "Fine."])) as agent:
        await agent.call("I am Alice.", ALICE)
        await agent.call("How are you?", ALICE)
    monkeypatch.setattr(open_session, "_cache", SessionCache())
    return sessions_folder(workspace) / "s1.log.jsonl"


def edit(ledger: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    ledger.write_bytes(b"\n".join(change(ledger.read_bytes().split(b"\n"))))


async def warnings_of_next(workspace: Path, key: str | None = None) -> list[str]:
    async with agent_of(workspace, ScriptedModel(["Yes."]), **({"anchor_key": key} if key else {})) as agent:
        call = agent.call("And now?", ALICE)
        await call
        return call.warnings


async def test_unreadable_lines_are_counted_and_placed(workspace: Path, ledger: Path) -> None:
    edit(ledger, lambda lines: [lines[0], lines[1][:-1] + b"?", *lines[2:4], b"\xff" * len(lines[4]), *lines[5:]])
    [told] = await warnings_of_next(workspace)
    assert told == (
        "session 's1': 2 damaged places were stepped over: line 2 (bad), line 5 (bad); "
        "verify the session to see what is missing"
    )


async def test_a_line_that_a_crash_cut_short_is_no_loss(workspace: Path, ledger: Path) -> None:
    with ledger.open("ab") as file:
        file.write(b'{"type":"mess')
    assert await warnings_of_next(workspace) == []
    open_session._cache = SessionCache()
    assert await warnings_of_next(workspace) == []


async def test_a_cut_end_is_told_until_the_ledger_notes_it(workspace: Path, ledger: Path) -> None:
    edit(ledger, lambda lines: [*lines[:-3], b""])
    first, *_ = await warnings_of_next(workspace)
    assert first.startswith("session 's1': 1 damaged place was stepped over: line ")
    assert "(truncated)" in first
    assert await warnings_of_next(workspace) == []


@pytest.mark.parametrize("damage", ["torn", "missing"])
async def test_where_only_the_anchor_is_gone_nothing_is_said_to_be_stepped_over(
    workspace: Path, ledger: Path, damage: str
) -> None:
    anchor = ledger.with_name("s1.head.json")
    if damage == "torn":
        anchor.write_bytes(anchor.read_bytes()[:200].ljust(512, b"\0"))
    else:
        anchor.unlink()
    [told] = await warnings_of_next(workspace)
    assert told == (
        "session 's1': all lines were read, but its anchor is missing or damaged, as after a power cut, so that nobody "
        "can say whether they are all as they were written; verify the session to have the rest checked"
    )
    assert await warnings_of_next(workspace) == []


@pytest.mark.parametrize("earlier", [0, 1, 2])
async def test_a_session_that_was_killed_in_its_first_request_lost_nothing_and_alarms_nobody(
    workspace: Path, ledger: Path, earlier: int, caplog: pytest.LogCaptureFixture
) -> None:
    """No anchor was due: nothing had been synced, and nobody had been answered."""
    edit(ledger, lambda lines: [*lines[: _request(lines) + 1 - earlier], b""])
    for name in ("s1.head.json", "s1.jsonl"):
        ledger.with_name(name).unlink()
    shutil.rmtree(context_folder(workspace))
    assert await found_in(workspace) == [("unanchored", False)]
    assert await warnings_of_next(workspace) == []
    assert caplog.messages == []
    assert await found_in(workspace) == []


@pytest.mark.parametrize("anchor", [None, b""])
async def test_a_session_that_was_killed_in_its_first_commit_lost_nothing_and_alarms_nobody(
    workspace: Path, ledger: Path, anchor: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The anchor is written behind the lines of the commit, and made before it is written."""
    for lines in first_commits(ledger):
        leave(workspace, ledger, lines, anchor)
        assert await found_in(workspace) == [("unanchored", False)]
        assert await warnings_of_next(workspace) == []
        assert await found_in(workspace) == []
    assert caplog.messages == []


def first_commits(ledger: Path) -> list[list[bytes]]:
    """Every beginning of a ledger up to the end of its first turn."""
    lines = ledger.read_bytes().split(b"\n")
    second_turn = next(n for n, line in enumerate(lines) if b"How are you?" in line)
    return [lines[:count] for count in range(1, second_turn + 1)]


def leave(workspace: Path, ledger: Path, lines: list[bytes], anchor: bytes | None) -> None:
    """Only these lines and this anchor, for a new process."""
    shutil.rmtree(context_folder(workspace), ignore_errors=True)
    ledger.with_name("s1.jsonl").unlink(missing_ok=True)
    ledger.with_name("s1.head.json").unlink(missing_ok=True)
    if anchor is not None:
        ledger.with_name("s1.head.json").write_bytes(anchor)
    edit(ledger, lambda _: [*lines, b""])
    open_session._cache = SessionCache()


@pytest.mark.parametrize("said", [b"How are you?", b'"request_begin"'])
async def test_an_anchor_is_missed_as_soon_as_anything_was_said_behind_its_commit(
    workspace: Path, ledger: Path, said: bytes
) -> None:
    ledger.with_name("s1.head.json").unlink()
    edit(ledger, lambda lines: [*lines[: [n for n, line in enumerate(lines) if said in line][-1] + 1], b""])
    assert ("unanchored", True) in await found_in(workspace)


@pytest.mark.parametrize("why", ["a request ended", "there was one", "a key signs them", "it was handed over"])
async def test_an_anchor_that_was_due_is_missed(workspace: Path, ledger: Path, why: str) -> None:
    anchor = ledger.with_name("s1.head.json")
    if why != "a request ended":
        edit(ledger, lambda lines: [*lines[: _request(lines) + 1], b""])
    if why == "it was handed over":
        edit(ledger, lambda lines: [lines[0][:-1] + b',"parent":{"session":"s0"}}', *lines[1:]])
    anchor.write_bytes(b"x" * 512)
    if why != "there was one":
        anchor.unlink()
    key = "a key that is long" if why == "a key signs them" else None
    assert ("unanchored", True) in await found_in(workspace, key)
    await warnings_of_next(workspace, key)
    assert [line["kind"] for line in json_lines(ledger) if line.get("kind") == "damage"] == ["damage"]


async def found_in(workspace: Path, key: str | None = None) -> list[tuple[str, bool]]:
    async with agent_of(workspace, ScriptedModel(), **({"anchor_key": key} if key else {})) as agent:
        return [(each.kind, each.error) for each in (await agent.sessions("alice").verify("s1")).findings]


def _request(lines: list[bytes]) -> int:
    return next(number for number, line in enumerate(lines) if b'"type":"request_begin"' in line)


@pytest.mark.parametrize("where", ["in the middle", "last"])
async def test_a_line_that_was_edited_to_be_shorter_is_not_noted_as_cut_off(
    workspace: Path, ledger: Path, where: str
) -> None:
    edit(ledger, lambda lines: _shorter(lines, where))
    [told] = await warnings_of_next(workspace)
    assert told.startswith(
        "session 's1': all lines were read, but its anchor is not that of this ledger's end, so that"
    )
    noted = [line["data"]["found"] for line in json_lines(ledger) if line.get("kind") == "damage"]
    assert [item["kind"] for found in noted for item in found] == ["unanchored"]


def _shorter(lines: list[bytes], where: str) -> list[bytes]:
    number = -2 if where == "last" else next(n for n, line in enumerate(lines) if b"Hello." in line)
    entry = json.loads(lines[number])
    if where == "last":
        entry.pop("turnId")
    else:
        entry["message"]["content"][0]["text"] = "Bye."
    lines[number] = json.dumps(entry, separators=(",", ":")).encode()
    return lines
