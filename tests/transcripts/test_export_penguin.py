"""penguin-harness shards and envelopes: written by its rules, readable by its reader."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import SESSION, answered, call, lines_of, result, said, sample

from harness.transcripts import read
from harness.transcripts.export import export
from harness.transcripts.formats.penguin import id_in_file

TOOLS = ("tool_calls", "tool_results", "results_matched", "results_orphan", "calls_open", "failed_results")
SAME = (
    "thinking_blocks",
    "encrypted_reasoning",
    "images",
    "tok_in",
    "tok_cache_write",
    "tok_cache_read",
    "tok_out",
    *TOOLS,
)


def kinds(lines: list[dict]) -> list[str]:
    return [line["payload"].get("type", line["type"]) for line in lines]


def test_a_compaction_begins_a_new_shard_in_the_folder_of_the_first_day(tmp_path: Path) -> None:
    made = export(sample(tmp_path), "penguin", tmp_path / "out")
    assert [str(one.path.relative_to(made.out)) for one in made.files] == [
        f"2026-03-01/{SESSION}_001.jsonl",
        f"2026-03-01/{SESSION}_002.jsonl",
    ]


def test_a_shard_ends_with_the_compaction_and_the_next_begins_with_its_summary(tmp_path: Path) -> None:
    first, second = (lines_of(one.path) for one in export(sample(tmp_path), "penguin", tmp_path / "out").files)
    assert kinds(first)[-2:] == ["compaction_begin", "compaction_end"]
    assert kinds(second)[:2] == ["session_meta", "text"]
    assert second[1]["payload"] == {
        "type": "text",
        "role": "user",
        "text": "[context_summary]\nThey looked at the shop.\n[/context_summary]",
        "sender": "harness",
    }


def test_a_request_is_a_bracket_around_what_the_model_said(tmp_path: Path) -> None:
    first = lines_of(export(sample(tmp_path), "penguin", tmp_path / "out").files[0].path)
    assert kinds(first)[4:12] == [
        *("request_begin", "thinking", "text", "tool_call", "tool_call", "request_end", "token_usage"),
        "tool_call_output",
    ]
    assert first[10]["payload"]["request"] == {"cache_read": 3, "cache_write": 2, "output": 5, "total": 20}


def test_totals_of_the_session_go_on_over_its_shards(tmp_path: Path) -> None:
    last = lines_of(export(sample(tmp_path), "penguin", tmp_path / "out").files[1].path)[-1]
    assert last["payload"]["session"] == {"cache_read": 9, "cache_write": 6, "output": 15, "total": 60}


def test_a_prompt_typed_while_the_model_worked_is_steering(tmp_path: Path) -> None:
    lines = lines_of(export(sample(tmp_path), "penguin-envelopes", tmp_path / "o.jsonl").out)
    texts = [line["payload"]["text"] for line in lines if line["payload"].get("sender") == "user"]
    assert texts == ["Look at the shop.", "[user_steering]And hurry.[/user_steering]", "Open it."]


def test_empty_output_is_written_as_the_format_wants_it(tmp_path: Path) -> None:
    lines = [said(1, "go"), answered(2, "m", call("c", a=1)), said(3, [result("c", "")])]
    written = lines_of(export(sample(tmp_path, lines), "penguin-envelopes", tmp_path / "o.jsonl").out)
    assert written[-1]["payload"]["output"] == "[no output]"


def test_the_envelopes_are_the_shards_one_behind_the_other(tmp_path: Path) -> None:
    transcript = sample(tmp_path)
    shards = export(transcript, "penguin", tmp_path / "out").files
    stream = export(transcript, "penguin-envelopes", tmp_path / "o.jsonl").out.read_bytes()
    assert stream == b"".join(one.path.read_bytes() for one in shards)


def test_a_summary_at_the_very_end_begins_no_shard(tmp_path: Path) -> None:
    lines = [
        said(1, "go"),
        answered(2, "m", {"type": "text", "text": "gone"}),
        said(3, "They went.", isCompactSummary=True),
    ]
    made = export(sample(tmp_path, lines), "penguin", tmp_path / "out")
    assert len(made.files) == 1
    assert [turn.kind for turn in read(made.out).turns] == ["prompt", "answer", "compaction"]


def in_file(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks with the ids that they have in a file, without the place of the line."""
    return [{**block, "id": id_in_file(block["id"])} if "id" in block else block for block in blocks]


def test_its_own_sessions_have_the_same_turns_afterwards(shared: Path, tmp_path: Path) -> None:
    before = read(shared / "traces/penguin/session-2026-07-18-11-10-22-3f8a1c2d_001.jsonl")
    after = read(export(before, "penguin", tmp_path / "out").out)
    assert [(turn.kind, in_file(turn.blocks)) for turn in after.turns][:-1] == [
        (turn.kind, in_file(turn.blocks)) for turn in before.turns
    ][:-1]
    assert after.turns[-1].text == "[context_summary]\nhello.txt was created.\n[/context_summary]"


@pytest.mark.parametrize(
    "name",
    [
        "claude/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl",
        "claude/a7da6a22-facc-4fcd-8bab-f83c87862004.jsonl",
        "codex/rollout-2026-05-11T11-26-55-019e1625-789d-76c0-80ab-3724b5ddb799.jsonl",
        "pi/large-session.jsonl",
        "gemini/session-2026-01-16T11-01-file-ops-37b7abef.json",
    ],
)
def test_a_real_session_has_the_same_calls_and_tokens_afterwards(shared: Path, tmp_path: Path, name: str) -> None:
    before = read(shared / "traces" / name)
    after = read(export(before, "penguin", tmp_path / "out").out)
    assert {column: after.stats()[column] for column in SAME} == {column: before.stats()[column] for column in SAME}
    assert after.warnings == ()
