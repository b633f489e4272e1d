"""The Hugging Face session format, and the row with the Hub's columns."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import SESSION, answered, call, lines_of, said, sample

from harness.transcripts import read
from harness.transcripts.export import export

COLUMNS = [
    *("harness", "session_id", "prompt", "messages", "tools", "metadata"),
    *("sent_at", "num_user_messages", "num_tool_calls", "trace", "file_path"),
]
SAME = ("prompts", "thinking_blocks", "tool_calls", "tool_results", "results_matched", "calls_open", "failed_results")


def test_the_first_line_says_which_harness_and_session_it_is(tmp_path: Path) -> None:
    header = lines_of(export(sample(tmp_path), "huggingface", tmp_path / "o.jsonl").out)[0]
    assert (header["type"], header["harness"], header["id"], header["name"]) == (
        "session",
        "claude_code",
        SESSION,
        "Look at the shop.",
    )


def test_messages_have_the_fields_of_the_format(tmp_path: Path) -> None:
    found = lines_of(export(sample(tmp_path), "huggingface", tmp_path / "o.jsonl").out)[1:]
    assert {line["type"] for line in found} == {"message"}
    assert found[2]["message"] == {
        "role": "assistant",
        "content": "Looking.",
        "reasoningContent": "I look first.",
        "toolCalls": [
            {"id": "c1", "function": {"name": "Bash", "arguments": '{"command":"ls"}'}},
            {"id": "c2", "function": {"name": "Bash", "arguments": '{"command":"pwd"}'}},
        ],
        "model": "claude-x",
        "timestamp": 1772359203000,
    }
    assert found[4]["message"] == {
        "role": "tool",
        "content": "failed badly",
        "toolCallId": "c2",
        "isError": True,
        "timestamp": 1772359204000,
    }


def test_what_has_no_place_is_counted(tmp_path: Path) -> None:
    made = export(sample(tmp_path), "huggingface", tmp_path / "o.jsonl")
    marks = {"queued marks": 1, "compaction marks": 1}
    assert made.left_out == {"media": 2, "message usage": 3, "sealed reasoning": 2, "sidechain": 2, **marks}


def test_an_unknown_time_is_left_out(tmp_path: Path) -> None:
    lines = [{**said(1, "When?"), "timestamp": "soon"}]
    found = lines_of(export(sample(tmp_path, lines), "huggingface", tmp_path / "o.jsonl").out)
    assert found[1]["message"] == {"role": "user", "content": "When?"}


def test_a_row_has_the_columns_of_the_hub_in_its_order(tmp_path: Path) -> None:
    [row] = lines_of(export(sample(tmp_path), "huggingface-row", tmp_path / "o.row.jsonl").out)
    assert list(row) == COLUMNS
    assert (row["prompt"], row["sent_at"]) == ("Look at the shop.", "2026-03-01T10:00:02.000Z")
    assert (row["num_user_messages"], row["num_tool_calls"]) == (3, 3)
    assert row["tools"] == [{"type": "function", "function": {"name": "Bash"}}]
    assert row["file_path"] == f"{SESSION}.jsonl"


def test_a_row_holds_the_session_and_its_messages(tmp_path: Path) -> None:
    transcript = sample(tmp_path)
    [row] = lines_of(export(transcript, "huggingface-row", tmp_path / "o.row.jsonl").out)
    assert row["trace"] == export(transcript, "huggingface", tmp_path / "o.jsonl").out.read_text(encoding="utf-8")
    assert row["messages"][2]["tool_calls"][0] == {
        "type": "function",
        "id": "c1",
        "function": {"name": "Bash", "arguments": '{"command":"ls"}'},
    }
    assert row["messages"][4] == {"role": "tool", "content": "failed badly", "tool_call_id": "c2"}


def test_numbers_that_json_does_not_know_are_written_as_text(tmp_path: Path) -> None:
    lines = [said(1, "go"), answered(2, "m", call("c", value=float("nan")))]
    found = lines_of(export(sample(tmp_path, lines), "huggingface", tmp_path / "o.jsonl").out)
    assert found[2]["message"]["toolCalls"][0]["function"]["arguments"] == '{"value":"NaN"}'


@pytest.mark.parametrize(
    "name",
    [
        "codex/rollout-2026-05-11T11-26-55-019e1625-789d-76c0-80ab-3724b5ddb799.jsonl",
        "gemini/jsonl_v040.jsonl",
        "openclaw/fddf0592-3380-414e-ae03-c2e7eeaf2167.jsonl",
        "claude/a7da6a22-facc-4fcd-8bab-f83c87862004.jsonl",
    ],
)
def test_a_real_session_has_the_same_prompts_and_calls_afterwards(shared: Path, tmp_path: Path, name: str) -> None:
    before = read(shared / "traces" / name)
    after = read(export(before, "huggingface", tmp_path / "o.jsonl").out)
    assert {column: after.stats()[column] for column in SAME} == {column: before.stats()[column] for column in SAME}
    assert after.warnings == ()
