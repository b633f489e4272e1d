"""A conversation that is killed anywhere: no turn that was given is lost, and it goes on."""

import importlib.util
import logging
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from harness.errors import ConfigError, ScriptError
from harness.sessions import verify_chain
from harness.testing import CommittedTurn, Crash, CrashKit, Kill, check_ledger, check_session

SCRIPT = Path(__file__).with_name("conversation.py")
SESSIONS, KILLS_A_SESSION, TURNS = int(os.environ.get("HARNESS_CRASH_SESSIONS", "20")), 10, 8
"""Set HARNESS_CRASH_SESSIONS=100 for a thousand kills."""


def load_conversation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("crash_conversation", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


conversation = load_conversation()


@pytest.fixture(scope="module")
def kit() -> Iterator[CrashKit]:
    with CrashKit(f"{SCRIPT}:talk") as kit:
        yield kit


def order(workspace: Path, session: str = "s", first: int = 1, turns: int = TURNS) -> dict:
    return {"workspace": str(workspace), "session": session, "first": first, "turns": turns}


async def checked(workspace: Path, session: str, committed: list[CommittedTurn], number: int):
    """Check a session by a turn of kind `state`, so that the count it answers with can be checked too."""
    async with conversation.build(workspace) as agent:
        return await check_session(
            agent, conversation.context_of(session), committed, prompt=f"turn {number} state, please"
        )


def sessions_in(workspace: Path) -> Path:
    return workspace / "tenants/alice/agents/crash/sessions"


def large_files_in(workspace: Path) -> list[Path]:
    return [path for path in sessions_in(workspace).glob("files/*/*") if path.is_file()]


def count_in(reply: str) -> int:
    return int(reply.partition("counter ")[2] or 0)


@pytest.mark.slow
async def test_two_hundred_kills_lose_no_committed_turn_and_the_next_call_works(
    kit: CrashKit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)  # every damage is reported to the log, as it should be
    chance = random.Random(20261130)
    steps = kit.run(order(tmp_path / "measure")).steps
    crashes: list[Crash] = []
    for number in range(SESSIONS):
        session = f"session {number}"
        committed: list[CommittedTurn] = []
        first = chance.randrange(6)
        for _ in range(KILLS_A_SESSION):
            kill = a_kill(chance, steps)
            crash = kit.run(order(tmp_path, session, first, turns=100), kill)
            crashes.append(crash)
            committed += crash.committed
            first += crash.begun + 1
            check = await checked(tmp_path, session, committed, first - 1)
            assert check.problems == [], f"{session}, {kill}, {crash}"
            known = max((count_in(turn.reply) for turn in committed), default=0)
            assert count_in(check.reply) > known, f"{session}, {kill}: a state was lost"
            committed.append(CommittedTurn(first - 1, f"turn {first - 1} state, please", check.reply))
    assert_kills_were_spread(crashes)


def a_kill(chance: random.Random, steps: int) -> Kill:
    if chance.random() < 0.4:
        return Kill.after(chance.uniform(0, 0.25))
    return Kill.at_step(chance.randint(1, steps), chance.random())


def assert_kills_were_spread(crashes: list[Crash]) -> None:
    killed = [crash for crash in crashes if crash.killed]
    assert len(killed) == SESSIONS * KILLS_A_SESSION
    steps = Counter(crash.step for crash in killed)
    assert steps["write"] >= 30
    assert steps["fdatasync"] + steps["fsync"] >= 5
    assert steps[""] >= 40, "too few were killed by time alone"
    assert sum(crash.torn for crash in killed) >= 20
    assert sum(crash.begun > len(crash.committed) for crash in killed) >= 100
    assert len({len(crash.committed) for crash in killed}) >= 6


@pytest.mark.slow
async def test_every_single_file_operation_of_a_turn_with_tools_may_be_the_last(
    kit: CrashKit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    steps = kit.run(order(tmp_path / "measure", turns=1)).steps
    assert steps > 10
    for step in range(1, steps + 1):
        for portion in (0.0, 0.5, 1.0):
            workspace = tmp_path / f"{step}-{portion}"
            crash = kit.run(order(workspace, turns=1), Kill.at_step(step, portion))
            check = await checked(workspace, "s", list(crash.committed), 2)
            assert check.problems == [], f"step {step} ({crash.step}), portion {portion}"


async def test_the_killed_and_healed_ledger_verifies_without_an_error(kit: CrashKit, tmp_path: Path) -> None:
    crash = kit.run(order(tmp_path), Kill.at_step(40, 0.5))
    check = await checked(tmp_path, "s", list(crash.committed), 9)
    ledger = sessions_in(tmp_path) / "s.log.jsonl"
    assert check.problems == []
    assert [finding for finding in verify_chain(ledger.read_bytes()) if finding.error] == []


async def test_the_check_notices_a_committed_turn_that_is_missing(kit: CrashKit, tmp_path: Path) -> None:
    kit.run(order(tmp_path, turns=1))
    check = await checked(tmp_path, "s", [CommittedTurn(7, "turn 7 plain", "never given")], 2)
    assert check.problems[:2] == [
        "the prompt of committed turn 7 is in the ledger 0 times",
        "the reply of committed turn 7 is in the ledger 0 times",
    ]


async def test_the_check_notices_a_changed_context_file(kit: CrashKit, tmp_path: Path) -> None:
    kit.run(order(tmp_path, turns=1))
    context = sessions_in(tmp_path) / "s.jsonl"
    context.write_bytes(context.read_bytes().replace(b"turn 1", b"turn 7"))
    check = await checked(tmp_path, "s", [], 2)
    assert check.problems[0] == "line 2 of the context file is no line of the ledger"


async def test_the_check_notices_a_missing_file(kit: CrashKit, tmp_path: Path) -> None:
    crash = kit.run(order(tmp_path, first=4, turns=1))
    [large] = large_files_in(tmp_path)
    large.rename(tmp_path / "elsewhere")
    check = await checked(tmp_path, "s", list(crash.committed), 5)
    assert f"the ledger names the file {large.name}, which is not there" in check.problems


LINES = [
    b'{"type":"header","id":"a","seq":1}',
    b'{"type":"event","id":"b","seq":2,"prevHash":"e95a40a3acf76bb1e8cda4b5a8d36a0ae3ae1e1b8b7c9bc7b5b3b4b4f9e3a5f1"}',
]


@pytest.mark.parametrize(
    ("data", "problems", "torn"),
    [
        (LINES[0] + b"\n", [], 0),
        (LINES[0] + b"\n" + LINES[1][:20], [], 1),
        (LINES[0] + b"\n" + LINES[1][:20] + LINES[0] + b"\n", ["line 2 holds a torn record and a whole one"], 1),
        (LINES[0] + b"\n" + LINES[1] + b"\n", ["line 2 is not linked to the bytes of the line before it"], 0),
        (b'{"type":"event","id":"a","seq":2}\n', ["line 1 says it is line 2", "line 1 is a event"], 0),
    ],
)
def test_the_check_of_a_ledger_names_what_is_wrong(data: bytes, problems: list[str], torn: int) -> None:
    assert check_ledger(data) == (problems, torn)


def test_a_run_without_a_kill_reports_every_turn(kit: CrashKit, tmp_path: Path) -> None:
    crash = kit.run(order(tmp_path, turns=3))
    assert (crash.killed, crash.begun, [turn.number for turn in crash.committed]) == (False, 3, [1, 2, 3])
    assert crash.committed[1].reply == "reply 2: counter 1"


def test_a_kill_at_a_step_is_at_the_same_place_every_time(kit: CrashKit, tmp_path: Path) -> None:
    first, second = (kit.run(order(tmp_path / name, turns=1), Kill.at_step(9, 0.5)) for name in ("one", "two"))
    assert (first.killed, first.step, first.written) == (True, second.step, second.written) or first == second
    assert first.killed


def test_a_script_that_fails_is_an_error_of_the_script(kit: CrashKit, tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="KeyError: 'turns'"):
        kit.run({"workspace": str(tmp_path), "session": "s", "first": 1})


def test_kills_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="steps begin at 1"):
        Kill.at_step(0)
    with pytest.raises(ConfigError, match="give 0 or more"):
        Kill.after(-1)


def test_a_kit_without_its_process_says_how_to_use_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="use it as `with CrashKit"):
        CrashKit("conversation:talk").run(order(tmp_path))
