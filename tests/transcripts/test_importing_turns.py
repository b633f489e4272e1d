"""What an import makes of that which is no message: it opens no turn, and nothing is lost of it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import answered, call, image, line, lines_of, result, said, sample

from harness import HarnessAgent, RuntimeContext
from harness.errors import TranscriptRefused
from harness.sessions import SessionTree
from harness.sessions.checking.verify import verify_session
from harness.sessions.lines.layout import Owner
from harness.testing import ScriptedModel
from harness.transcripts import Transcript, read
from harness.transcripts.export import export
from harness.transcripts.importing import Imported, import_transcript

OWNER = Owner("new", "a", ())
ASKED = said(1, "Hi.")
ANSWERED = answered(2, "m", {"type": "text", "text": "Hello."})
REMINDER = said(3, "<system-reminder>Be kind.</system-reminder>")
NOTE = line(3, "system", subtype="informational", content="Saved.")


async def imported(transcript: Transcript, folder: Path) -> tuple[SessionTree, Imported]:
    tree = SessionTree(folder, "new", agent="a", namespace=())
    made = await import_transcript(transcript, tree)
    assert verify_session(tree.files, OWNER).ok
    fresh = SessionTree(folder, "new", agent="a", namespace=())
    await fresh.load()
    return fresh, made


def logged(tree: SessionTree) -> list[str]:
    """Who said each message, and the kind of each event, in the order of the lines."""
    lines = [each for each in lines_of(tree.files.ledger) if each["type"] in ("message", "event")]
    return [each["via"] if each["type"] == "message" else each["kind"] for each in lines]


def roles(tree: SessionTree) -> list[str]:
    return [message["role"] for message in tree.messages()]


async def ledger_with(workspace: Path, *names: str) -> Path:
    """A session of two turns behind which it was given names."""
    ctx = RuntimeContext(session_id="s1", user_id="alice")
    agent = HarnessAgent.builder().name("notes").model(ScriptedModel(["Noted.", "Noted, too."])).workspace(workspace)
    async with agent.build() as running:
        await running.call("My name is Alice.", ctx)
        await running.call("I live in Rome.", ctx)
        for name in names:
            await running.sessions("alice").rename("s1", name)
        (branch,) = await running.sessions("alice").branches("s1")
        await running.sessions("alice").label("s1", branch.leaf, "here")
    return workspace / "tenants/alice/agents/notes/sessions/s1.log.jsonl"


@pytest.mark.parametrize("through", ["", "claude", "penguin"])
async def test_a_session_that_was_renamed_stays_answered_and_keeps_its_title(tmp_path: Path, through: str) -> None:
    source = read(await ledger_with(tmp_path / "ws", "Journey", "Trip"))
    if through:
        place = tmp_path / "out.jsonl"
        export(source, through, place)
        source = read(place)
    tree, made = await imported(source, tmp_path / "s")
    assert tree.view().open_turn is None
    assert (roles(tree), made.messages, made.prompts) == (["user", "assistant"] * 2, 4, 2)
    if through != "penguin":  # which has no place for a title
        titles = [each["data"]["title"] for each in lines_of(tree.files.ledger) if each.get("kind") == "title"]
        assert titles == ["Trip"]


@pytest.mark.parametrize("last", [REMINDER, NOTE], ids=["context", "meta"])
async def test_what_stands_behind_the_last_answer_opens_no_turn(tmp_path: Path, last: dict[str, Any]) -> None:
    tree, made = await imported(sample(tmp_path, [ASKED, ANSWERED, last]), tmp_path / "s")
    assert tree.view().open_turn is None
    assert (logged(tree), roles(tree)) == (["user", "model", "imported"], ["user", "assistant"])
    assert (made.messages, made.harness_texts) == (2, 1)


async def test_a_note_in_an_open_turn_is_no_message_either(tmp_path: Path) -> None:
    lines = [ASKED, answered(2, "m", call("c1")), NOTE, said(4, [result("c1", "ok")]), NOTE]
    tree, _ = await imported(sample(tmp_path, lines), tmp_path / "s")
    assert logged(tree) == ["user", "model", "tool", "imported", "imported"]
    assert roles(tree) == ["user", "assistant", "tool"]


async def test_text_in_front_of_a_prompt_belongs_to_the_turn_that_it_opens(tmp_path: Path) -> None:
    again = [said(4, "And?"), answered(5, "n", {"type": "text", "text": "Well."})]
    lines = [{**REMINDER, "uuid": "u0"}, ASKED, ANSWERED, REMINDER, *again]
    tree, _ = await imported(sample(tmp_path, lines), tmp_path / "s")
    assert logged(tree) == ["user", "hook", "model"] * 2
    turns = [each["turnId"] for each in lines_of(tree.files.ledger) if each["type"] == "message"]
    assert turns == [turns[0]] * 3 + [turns[3]] * 3
    assert [turn.id for turn in tree.view().turns] == [turns[0], turns[3]]


async def test_text_after_which_the_model_went_on_stays_in_front_of_what_it_said(tmp_path: Path) -> None:
    lines = [ASKED, ANSWERED, REMINDER, answered(4, "n", {"type": "text", "text": "More."})]
    tree, _ = await imported(sample(tmp_path, lines), tmp_path / "s")
    assert logged(tree) == ["user", "model", "hook", "model"]
    assert tree.view().open_turn is None


async def test_what_is_no_message_is_read_again_as_it_was(tmp_path: Path) -> None:
    source = sample(tmp_path, [ASKED, ANSWERED, NOTE])
    tree, _ = await imported(source, tmp_path / "s")
    again, _ = await imported(read(tree.files.ledger), tmp_path / "t")
    for made in (tree, again):
        turns = read(made.files.ledger).turns
        assert [(turn.kind, turn.text, turn.at) for turn in turns] == [
            (turn.kind, turn.text, turn.at) for turn in source.turns
        ]


async def test_each_message_keeps_the_time_at_which_it_was_said(tmp_path: Path) -> None:
    tree, _ = await imported(sample(tmp_path), tmp_path / "s")
    kept = [each["message"]["meta"] for each in lines_of(tree.files.ledger) if each.get("via") == "model"]
    assert [meta["imported"]["at"] for meta in kept] == [f"2026-03-01T10:00:{at}.000Z" for at in ("03", "09", "13")]


@pytest.mark.parametrize("meta", ["x", {"imported": "x"}, {"imported": {"at": 5}}, {"imported": {}}])
async def test_a_time_that_is_none_is_stepped_over(tmp_path: Path, meta: object) -> None:
    path = await ledger_with(tmp_path / "ws")
    with_meta = b'"meta":%s,"role":"user"' % json.dumps(meta).encode()
    path.write_bytes(path.read_bytes().replace(b'"role":"user"', with_meta))
    turns = read(path).turns
    assert all(turn.at is not None for turn in turns if turn.kind == "prompt")


async def test_media_of_what_is_no_message_are_counted_as_left_out(tmp_path: Path) -> None:
    last = said(3, [{"type": "text", "text": "<system-reminder>Look.</system-reminder>"}, image()], isMeta=True)
    _, made = await imported(sample(tmp_path, [ASKED, ANSWERED, last]), tmp_path / "s")
    assert (made.harness_texts, made.left_out) == (1, {"media": 1})


@pytest.mark.parametrize("only", [REMINDER, NOTE], ids=["context", "meta"])
async def test_a_session_in_which_only_the_harness_spoke_is_refused(tmp_path: Path, only: dict[str, Any]) -> None:
    tree = SessionTree(tmp_path / "s", "new", agent="a", namespace=())
    with pytest.raises(TranscriptRefused, match="has no message to import"):
        await import_transcript(sample(tmp_path, [only]), tree)
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["new.lock"]
