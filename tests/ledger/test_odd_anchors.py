"""An anchor whose sum is right and that says what no writer says: it decides nothing, and verify names it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from mutations import sessions_of

from harness.sessions.lines.sealed import seal, unseal

ODD: list[tuple[str, Any]] = [
    *[("boundary", {"seq": seq, "offset": offset}) for seq, offset in ((1, -5), (-3, 0), (1, 10**15), (1, 1e30), (2, 0.5))],
    *[("boundary", value) for value in ([], None, 5, {}, {"seq": 1}, {"seq": True, "offset": 0})],
    *[("count", value) for value in (-1, "5", None, 1e30, [], True)],
    *[("bytes", value) for value in (-9, 0, 1, "5", None)],
    *[("hash", value) for value in (None, 5, [])],
    *[("leaf", value) for value in (None, {}, 5)],
    *[("ledgerId", value) for value in (None, 5, [])],
    *[("deleted", value) for value in (5, "abc", [5], {})],
    *[("mac", value) for value in ("é", [], 5, "a" * 63)],
    ("session", "other"),
]  # fmt: skip


def copied(original: Path, tmp_path: Path) -> Path:
    """The session's folder in a workspace of its own, without the files that could stand in for the ledger."""
    shutil.copytree(original, tmp_path / "w")
    folder = sessions_of(tmp_path / "w")
    shutil.rmtree(folder.parent / "context")
    return folder


def change(folder: Path, **fields: Any) -> None:
    known = unseal((folder / "s.head.json").read_bytes())
    assert known is not None
    (folder / "s.head.json").write_bytes(seal({**known, **fields}))


@pytest.mark.parametrize(("name", "value"), ODD, ids=str)
async def test_an_odd_value_in_an_anchor_stops_nothing_and_shows(
    original: Path, conversation, new_process, tmp_path: Path, name: str, value: Any
) -> None:
    new_process()
    folder = copied(original, tmp_path)
    async with conversation.build(tmp_path / "w") as agent:
        before = (await agent.sessions("alice").tree("s")).messages()
    change(folder, **{name: value})
    async with conversation.build(tmp_path / "w") as agent:
        sessions = agent.sessions("alice")
        assert not (await sessions.verify("s")).ok
        assert (await sessions.tree("s")).messages() == before
        assert (await agent.call("turn 8 plain", conversation.context_of("s"))).text
        assert (await sessions.verify("s")).ok


@pytest.mark.parametrize("shift", [0, 3], ids=["the beginning of a later line", "within a line"])
async def test_a_boundary_where_no_view_begins_is_named_and_hides_nothing(
    original: Path, conversation, new_process, tmp_path: Path, shift: int
) -> None:
    new_process()
    folder = copied(original, tmp_path)
    async with conversation.build(tmp_path / "w") as agent:
        before = (await agent.sessions("alice").tree("s")).messages()
    raw = (folder / "s.log.jsonl").read_bytes()
    lines = raw.split(b"\n")[:-1]
    number = max(i for i, line in enumerate(lines) if b'"via":"user"' in line)
    offset = sum(len(line) + 1 for line in lines[:number]) + shift
    change(folder, boundary={"seq": number + 1, "offset": offset})
    async with conversation.build(tmp_path / "w") as agent:
        report = await agent.sessions("alice").verify("s")
        assert [(found.kind, found.line) for found in report.findings if found.error] == [("edited", number + 1)]
        assert "the view begins" in next(found.text for found in report.findings if found.error)
        assert (await agent.sessions("alice").tree("s")).messages() == before
