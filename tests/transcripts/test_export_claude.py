"""Claude Code JSONL: what was read can be read again, with the same counts."""

import csv
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import SEALED, SESSION, answered, lines_of, said, sample, write

from harness.transcripts import Transcript, read
from harness.transcripts.export import export

SAID = ("prompts", "text_blocks", "thinking_blocks", "encrypted_reasoning", "images", "compactions")
TOOLS = ("tool_calls", "tool_results", "results_matched", "results_orphan", "calls_open", "failed_results")
TOKENS = ("tok_in", "tok_cache_write", "tok_cache_read", "tok_out")
SAME = (*SAID, *TOOLS, *TOKENS)


def again(transcript: Transcript, tmp_path: Path) -> Transcript:
    return read(export(transcript, "claude", tmp_path / "again.jsonl").out)


def test_a_session_of_its_own_format_has_the_same_turns(tmp_path: Path) -> None:
    before = sample(tmp_path)
    after = again(before, tmp_path)
    assert [(t.kind, t.at, t.aside, t.message["content"]) for t in after.turns] == [
        (t.kind, t.at, t.aside, t.message["content"]) for t in before.turns
    ]


def test_a_session_of_its_own_format_has_the_same_census(tmp_path: Path) -> None:
    before, after = sample(tmp_path).stats(), again(sample(tmp_path), tmp_path).stats()
    assert {name for name in before if before[name] != after[name]} == {"bytes"}


def test_the_seal_of_its_own_reasoning_is_byte_for_byte_the_same(tmp_path: Path) -> None:
    lines = lines_of(export(sample(tmp_path), "claude", tmp_path / "o.jsonl").out)
    blocks = [block for line in lines if line["type"] == "assistant" for block in line["message"]["content"]]
    assert blocks[0] == SEALED
    assert list(blocks[0]) == list(SEALED)


def test_each_line_names_the_one_before_it(tmp_path: Path) -> None:
    lines = lines_of(export(sample(tmp_path), "claude", tmp_path / "o.jsonl").out)
    named = [line.get("uuid") for line in lines]
    boundary = next(number for number, line in enumerate(lines) if line.get("subtype") == "compact_boundary")
    assert len(set(named)) == len(lines)
    assert [line["parentUuid"] for line in lines] == [
        None if number in (0, boundary) else named[number - 1] for number in range(len(lines))
    ]
    assert {line["sessionId"] for line in lines} == {SESSION}


def test_an_export_of_the_same_session_is_the_same_file(tmp_path: Path) -> None:
    one = export(sample(tmp_path), "claude", tmp_path / "1.jsonl").files[0].sha256
    assert one == export(sample(tmp_path), "claude", tmp_path / "2.jsonl").files[0].sha256


def test_an_id_that_is_no_uuid_becomes_one(tmp_path: Path) -> None:
    transcript = read(write(tmp_path, name="monday.jsonl"))
    lines = lines_of(export(transcript, "claude", tmp_path / "o.jsonl").out)
    assert {line["sessionId"] for line in lines} == {"9e2a2d1b-ab1b-5822-879d-32d743bdeb05"}


def test_a_seal_of_another_provider_is_left_out_and_counted(shared: Path, tmp_path: Path) -> None:
    name = "codex/rollout-2026-05-11T11-26-55-019e1625-789d-76c0-80ab-3724b5ddb799.jsonl"
    made = export(read(shared / "traces" / name), "claude", tmp_path / "o.jsonl")
    assert made.left_out == {"sealed reasoning": 25, "exit codes": 46}
    assert b"encrypted_content" not in made.out.read_bytes()


def test_text_of_a_harness_that_has_no_tag_is_no_prompt_afterwards(shared: Path, tmp_path: Path) -> None:
    after = again(read(shared / "traces/sts/doc-shape.jsonl"), tmp_path)
    assert [(turn.kind, turn.text) for turn in after.turns][:2] == [
        ("context", "<system-reminder>\nYou are terse.\n</system-reminder>"),
        ("prompt", "List the files"),
    ]


def test_messages_of_one_id_stay_apart(tmp_path: Path) -> None:
    lines = [said(1, "a"), answered(2, "m", {"type": "text", "text": "b"})]
    transcript = sample(tmp_path, lines)
    twice = Transcript(**{**vars(transcript), "turns": (*transcript.turns, transcript.turns[1])})
    assert again(twice, tmp_path).stats()["assistant_msgs"] == 2


# What is different, and why: abandoned branches are left out; tokens that only the session as a whole knows have no
# place; a file made of every kind of record has compactions without a text, and media that are none.
DIFFERENT = {
    "pi/nasty/abandoned-branch.jsonl": {*SAME},
    "openclaw/fixture-large.jsonl": {"text_blocks"},
    "openclaw/5994da29-6105-4afc-9d32-cfd2cb2517b5.jsonl": {"text_blocks"},
    "pi/large-session.jsonl": {"text_blocks"},
    "opencode/opencode-1.18.33-small.db#ses_dd261cb13ffeLFsUtHaXkuxNer": {"text_blocks"},
    "opencode/export_ses_dd261cb13ffeLFsUtHaXkuxNer.json#ses_dd261cb13ffeLFsUtHaXkuxNer": {"text_blocks"},
    "hermes/state-0.19.0-small.db#20261130_180146_2142dc": {*TOKENS},
    "hermes/state-0.19.0-small.db#20261130_180201_9575be": {*TOKENS},
    "codex/rollout-2025-09-24T20-12-23-01997ea4-a70d-7da3-8c20-c736db82a7c5.jsonl": {*TOKENS},
    "codex/all-line-types.jsonl": {"images", "compactions"},
    "penguin/session-2026-07-18-11-10-22-3f8a1c2d_001.jsonl": {"text_blocks"},
}


def manifest(shared: Path) -> list[str]:
    with open(shared / "traces" / "MANIFEST.tsv", encoding="utf-8", newline="") as file:
        return [row["file"] for row in csv.DictReader(file, delimiter="\t")]


def test_every_real_session_has_equal_counts_afterwards(shared: Path, tmp_path: Path) -> None:
    differences = []
    for number, name in enumerate(manifest(shared)):
        path, _, session = name.partition("#")
        before = read(shared / "traces" / path, session or None)
        after = read(export(before, "claude", tmp_path / f"{number}.jsonl").out).stats()
        found = {column for column in SAME if before.stats()[column] != after[column]}
        differences += [f"{name}: {column}" for column in sorted(found - DIFFERENT.get(name, set()))]
    assert differences == []


@pytest.mark.parametrize("case", ["B19/surrogate.jsonl", "B66/stamps.jsonl", "B71/nan.jsonl", "B75/ansi.jsonl"])
def test_odd_sessions_are_written_as_strict_json(shared: Path, tmp_path: Path, case: str) -> None:
    before = read(shared / "cases" / case)
    made = export(before, "claude", tmp_path / "o.jsonl")
    assert b"NaN" not in made.out.read_bytes().replace(b'"NaN"', b"")
    assert read(made.out).stats()["prompts"] == before.stats()["prompts"]
