"""An anchor says where the view begins, and the ledger says it too: verify compares them, repair makes the anchor anew."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from random_talks import CTX, PLACE, STEPS, RandomTalk

from harness import HarnessAgent
from harness.agent import open_session
from harness.hooks import CompactionConfig
from harness.sessions import Finding, verify_session
from harness.sessions.ledger.reading import active_path, scan
from harness.sessions.lines.anchor import parse_anchor
from harness.sessions.lines.entries import START, Position
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.sealed import seal, unseal
from harness.sessions.view.turns import boundary_of
from harness.testing import ScriptedModel

SAID = "the anchor says that the view begins"


def files_of(workspace: Path, session: str = "s") -> SessionFiles:
    return SessionFiles(workspace / PLACE / "sessions", session)


def about_the_view(files: SessionFiles) -> list[Finding]:
    report = verify_session(files, Owner(files.name, "notes", ("alice",)))
    return [found for found in report.findings if found.text.startswith(SAID)]


def starts_of(data: bytes) -> list[Position]:
    """Where each line begins."""
    places, offset = [], 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        places.append(Position(number, offset))
        offset += len(line)
    return places


def move(files: SessionFiles, to: Position) -> None:
    """What somebody without a key can do to an anchor who can write files."""
    block = unseal(files.anchor.read_bytes())
    assert block
    assert block.pop("sum", None) is None
    files.anchor.write_bytes(seal({**block, "boundary": {"seq": to.seq, "offset": to.offset}}))


def built(workspace: Path) -> HarnessAgent:
    open_session._cache._open.clear()
    config = CompactionConfig(trigger_messages=50, keep_messages=6)
    return (
        HarnessAgent.builder()
        .name("notes")
        .model(ScriptedModel([*map(str, range(20))]))
        .workspace(workspace)
        .compaction(config)
        .build()
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose session has a boundary that keeps several turns, and a branch before it."""
    workspace = tmp_path_factory.mktemp("kept") / "w"

    async def talk() -> None:
        async with built(workspace) as agent:
            for number in range(3):
                await agent.call(f"fact {number}", CTX)
            turns = (await agent.sessions("alice").tree("s")).view().turns
            await agent.sessions("alice").branch("s", turns[1].entry_ids[-1])
            for number in range(3, 7):
                await agent.call(f"fact {number}", CTX)
            await agent.sessions("alice").compact("s")
            await agent.call("and then?", CTX)

    asyncio.run(talk())
    return workspace


async def test_a_boundary_that_was_moved_anywhere_is_named_and_repair_puts_it_back(kept: Path, tmp_path: Path) -> None:
    shutil.copytree(kept, tmp_path / "w")
    files = files_of(tmp_path / "w")
    anchor = files.anchor.read_bytes()
    right = parse_anchor(anchor)
    assert right
    assert right.boundary.seq > 1
    assert about_the_view(files) == []
    for place in starts_of(files.ledger.read_bytes()):
        move(files, place)
        found = about_the_view(files)
        if place == right.boundary:
            assert found == []
            continue
        assert [(one.kind, one.line, one.error) for one in found] == [("edited", place.seq, True)]
        assert f"by the ledger it is line {right.boundary.seq}, byte {right.boundary.offset}" in found[0].text


@pytest.mark.parametrize("called", [False, True], ids=["at once", "after a call that saw too little"])
async def test_repair_puts_a_boundary_back_that_hides_turns_which_are_kept(
    kept: Path, tmp_path: Path, called: bool
) -> None:
    shutil.copytree(kept, tmp_path / "w")
    shutil.rmtree(tmp_path / "w" / PLACE / "context")
    files = files_of(tmp_path / "w")
    async with built(tmp_path / "w") as agent:
        before = (await agent.sessions("alice").tree("s")).messages()
    entries, _, _ = scan(files.ledger.read_bytes(), START)
    boundary = next(entry for entry in entries if entry.kind == "compaction")
    later = [entry for entry in entries if entry.data.get("via") == "user" and entry.seq < boundary.seq][-1]
    move(files, later.position)
    async with built(tmp_path / "w") as agent:
        sessions = agent.sessions("alice")
        if called:
            await agent.call("what did I say?", CTX)
        assert not (await sessions.verify("s")).ok
        assert (await sessions.repair("s")).ok
        assert (await sessions.verify("s")).findings == ()
        assert (await sessions.tree("s")).messages()[: len(before)] == before
    async with built(tmp_path / "w") as agent:
        assert (await agent.sessions("alice").tree("s")).messages()[: len(before)] == before


async def test_after_going_back_before_a_boundary_the_view_begins_where_it_did_then(tmp_path: Path) -> None:
    files = files_of(tmp_path / "w")
    seen = []
    async with built(tmp_path / "w") as agent:
        sessions = agent.sessions("alice")
        for number in range(5):
            await agent.call(f"fact {number}", CTX)
        end = (await sessions.tree("s")).view().turns[-1].entry_ids[-1]
        await sessions.compact("s")
        await agent.call("one way", CTX)
        for _ in range(2):
            await sessions.branch("s", end)
            seen.append((await sessions.tree("s")).boundary)
            assert about_the_view(files) == []
            await agent.call("another way", CTX)
            await sessions.compact("s")
            seen.append((await sessions.tree("s")).boundary)
            assert about_the_view(files) == []
    assert seen[0] == seen[2] == START
    assert seen[1] > START
    assert seen[3] > START
    anchor = parse_anchor(files.anchor.read_bytes())
    assert anchor
    assert anchor.boundary == seen[3]


class Looked(RandomTalk):
    """A talk whose anchor is compared with its ledger after each step."""

    async def watch(self, steps: list[tuple[str, int]]) -> None:
        for step, size in steps:
            await self.play(step, size)
            self.agrees(files_of(self.workspace))

    def agrees(self, files: SessionFiles) -> None:
        if not files.ledger.exists():
            return
        assert about_the_view(files) == []
        anchor = parse_anchor(files.anchor.read_bytes()) if files.anchor.exists() else None
        data = files.ledger.read_bytes()
        if anchor and anchor.bytes <= len(data):
            entries, _, tail = scan(data[: anchor.bytes], START)
            if (tail.count, tail.hash) == (anchor.count, anchor.hash):
                assert anchor.boundary == boundary_of(active_path(entries, damaged=True) or [])


@settings(max_examples=50)
@given(steps=STEPS, pick=st.integers(0, 10**6))
def test_an_anchor_agrees_with_its_ledger_after_whatever_happened_until_it_is_moved(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], pick: int
) -> None:
    workspace = tmp_path_factory.mktemp("looked") / "workspace"
    talk = Looked(workspace)

    async def play() -> None:
        await talk.watch(steps)
        files = files_of(workspace)
        report = verify_session(files, Owner("s", "notes", ("alice",))) if files.ledger.exists() else None
        if report is None or not report.ok or not report.anchored:
            return
        await copied(talk, workspace)
        anchor = parse_anchor(files.anchor.read_bytes())
        assert anchor
        places = [place for place in starts_of(files.ledger.read_bytes())[: anchor.count] if place != anchor.boundary]
        move(files, places[pick % len(places)])
        assert len(about_the_view(files)) == 1

    asyncio.run(play())


async def copied(talk: Looked, workspace: Path) -> None:
    """A fork, and a session that was taken out of a bundle and goes on under another name."""
    await talk.sessions.fork("s", to="forked")
    bundle = workspace.with_name("s.zip")
    await talk.sessions.export("s", bundle)
    await talk.sessions.import_session(bundle, session_id="taken", take_over=True)
    for name in ("forked", "taken"):
        talk.agrees(files_of(workspace, name))
        assert (await talk.sessions.verify(name)).ok


@settings(max_examples=25)
@given(steps=STEPS)
def test_an_anchor_that_is_one_write_behind_its_ledger_says_what_was_so_then(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """A crash between ledger and anchor leaves the ledger of now with the anchor of then."""
    workspace = tmp_path_factory.mktemp("behind") / "workspace"
    talk, before = Looked(workspace), b""

    async def play() -> None:
        nonlocal before
        for step, size in steps:
            await talk.play(step, size)
            files = files_of(workspace)
            if not files.anchor.exists():
                continue
            now, before = files.anchor.read_bytes(), before or files.anchor.read_bytes()
            files.anchor.write_bytes(before)
            talk.agrees(files)
            files.anchor.write_bytes(now)
            before = now

    asyncio.run(play())
