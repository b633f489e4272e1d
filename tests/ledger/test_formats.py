"""Ledgers of every format so far open; one of a later format is refused by name and left alone (B54)."""

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder, shown

from harness.errors import NewerFormat
from harness.sessions.lines.formats import FORMAT
from harness.testing import ScriptedModel

FIXTURES = Path(__file__).parents[1] / "data" / "formats"


def placed(workspace: Path, number: int, session: str = "s1") -> Path:
    """A fixture in its place in a workspace; the ledger."""
    folder = sessions_folder(workspace)
    shutil.copytree(FIXTURES / str(number), folder)
    return folder / f"{session}.log.jsonl"


def with_format(ledger: Path, number: object) -> bytes:
    first, _, rest = ledger.read_bytes().partition(b"\n")
    raw = json.dumps({**json.loads(first), "format": number}, separators=(",", ":")).encode() + b"\n" + rest
    ledger.write_bytes(raw)
    return raw


def test_there_is_a_session_of_every_format() -> None:
    assert sorted(int(path.name) for path in FIXTURES.iterdir() if path.is_dir()) == [*range(1, FORMAT + 1)]


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
async def test_a_session_of_every_format_opens_verifies_and_goes_on(workspace: Path, number: int) -> None:
    ledger = placed(workspace, number)
    before = ledger.read_bytes()
    model = ScriptedModel(["Yes."])
    async with agent_of(workspace, model) as agent:
        sessions = agent.sessions("alice")
        assert (await sessions.verify("s1")).ok
        assert [message.text for message in await sessions.history("s1")] == [
            "What is this?", "A picture.", "And the report?", "", "", "Long.", "Bye.", "Bye.",
        ]  # fmt: skip
        await agent.call("Still there?", ALICE)
        assert (await sessions.verify("s1")).ok
    assert ledger.read_bytes().startswith(before)
    assert [text[:40] for _, text in shown(model.requests[0])] == [
        "<context_summary>\nThey looked at a pictu",
        "And the report?", "report({})", "line\n" * 8, "Long.", "Bye.", "Bye.", "Still there?",
    ]  # fmt: skip


@pytest.mark.parametrize("number", [FORMAT + 1, 99, "2", None])
async def test_a_later_format_is_refused_by_name_and_not_touched(workspace: Path, number: object) -> None:
    ledger = placed(workspace, 1)
    raw = with_format(ledger, number)
    async with agent_of(workspace, ScriptedModel(["never"])) as agent:
        sessions = agent.sessions("alice")
        for asked in (
            agent.call("Still there?", ALICE), sessions.history("s1"), sessions.tree("s1"), sessions.compact("s1"),
            sessions.export("s1", workspace / "s1.zip"),
        ):  # fmt: skip
            with pytest.raises(NewerFormat, match=r"s1\.log\.jsonl has format .*use the version"):
                await asked
        assert [info.id for info in await sessions.list()] == ["s1"]
    assert ledger.read_bytes() == raw


async def test_one_session_of_a_later_format_does_not_stop_the_rest(workspace: Path) -> None:
    with_format(placed(workspace, 1), 99)
    async with agent_of(workspace, ScriptedModel(["fine"])) as agent:
        await agent.call("And another picture?", ALICE.with_changes(session_id="s2"))
        assert [hit.session_id for hit in await agent.sessions("alice").search("picture")] == ["s2"]
        assert [info.id for info in await agent.sessions("alice").list()] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("mark", "end"), [(b"", b"\r\n"), (b"\xef\xbb\xbf", b"\n"), (b"\xef\xbb\xbf", b"\r\n"), (b"", b"\n\n")]
)
async def test_a_ledger_that_an_editor_has_saved_goes_on_and_says_so(workspace: Path, mark: bytes, end: bytes) -> None:
    """Byte order mark, CRLF and blank lines (B59): nothing is lost, and nothing is hidden either."""
    ledger = placed(workspace, 1)
    edited = mark + ledger.read_bytes().replace(b"\n", end)
    ledger.write_bytes(edited)
    model = ScriptedModel(["Yes."])
    async with agent_of(workspace, model) as agent:
        assert not (await agent.sessions("alice").verify("s1")).ok
        await agent.call("Still there?", ALICE)
        history = await agent.sessions("alice").history("s1", 3)
    assert ledger.read_bytes().startswith(edited)
    assert [message.text for message in history] == ["Bye.", "Still there?", "Yes."]
    assert "\r" not in str(shown(model.requests[0]))
    assert len(shown(model.requests[0])) == 8
