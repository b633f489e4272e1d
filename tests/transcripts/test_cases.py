"""Known hazards, each with the answer its case gives."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ConfigError
from harness.messages import Msg
from harness.transcripts import Transcript, join, media, page, read, stitched


def expected(shared: Path, case: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shared / "cases" / case / "expected.json").read_bytes())["read"][name]
    return found


def neutral(transcript: Transcript) -> list[dict[str, Any]]:
    """The turns as the cases write them."""
    return [shape(turn.message) for turn in transcript.turns if turn.kind in ("prompt", "answer", "results")]


def shape(message: dict[str, Any]) -> dict[str, Any]:
    blocks = message["content"]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    thinking = [block["text"] for block in blocks if block["type"] == "thinking"]
    calls = [block for block in blocks if block["type"] == "toolUse"]
    results = [block for block in blocks if block["type"] == "toolResult"]
    found: dict[str, Any] = {"role": message["role"]}
    if texts:
        found["text"] = "\n".join(texts)
    if thinking:
        found["thinking"] = "\n".join(thinking)
    if calls:
        found["calls"] = [{"id": call["id"], "name": call["name"], "args": call["input"]} for call in calls]
    if results:
        found["results"] = [{"id": result["id"], "text": Msg.tool(result).tool_results[0].text} for result in results]
    return found


def without_thinking(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in message.items() if key != "thinking"} for message in messages]


def test_b12_lines_of_one_reply_are_one_message_and_cost_once(shared: Path) -> None:
    case = expected(shared, "B12", "duplicate-ids.jsonl")

    transcript = read(shared / "cases/B12/duplicate-ids.jsonl")
    stats = transcript.stats()

    assert neutral(transcript) == case["messages"]
    assert (stats["tok_in"], stats["tok_out"]) == (31, 240)
    assert (stats["tok_cache_read"], stats["tok_cache_write"]) == (2300, 230)
    assert transcript.warnings == ()


@pytest.mark.parametrize("name", ["codex-dual.jsonl", "codex-items-only.jsonl", "codex-item-completed.jsonl"])
def test_b23_three_shapes_of_one_talk_give_the_same_messages(shared: Path, name: str) -> None:
    case = expected(shared, "B23", name)

    transcript = read(shared / "cases/B23" / name)

    assert without_thinking(neutral(transcript)) == case["messages"]
    assert transcript.stats()["prompts"] == 3
    assert transcript.warnings == ()


def test_b41_what_the_tool_wrote_itself_is_kept_but_is_no_prompt(shared: Path) -> None:
    transcript = read(shared / "cases/B41/meta-lines.jsonl")

    main = [turn for turn in transcript.turns if not turn.sidechain]
    assert [turn.text for turn in main if turn.kind == "prompt"] == ["Sort the letters.", "Now by date."]
    assert [turn.kind for turn in main] == [
        *("meta", "context", "context", "context", "prompt", "answer", "results", "answer", "meta", "context", "prompt")
    ]
    assert sum(turn.sidechain for turn in transcript.turns) == 2
    assert (transcript.stats()["tok_in"], transcript.stats()["tok_out"]) == (16, 16)


def test_b49_odd_fields_cost_no_neighbour(shared: Path) -> None:
    transcript = read(shared / "cases/B49/odd-shapes.jsonl")

    assert [turn.text for turn in transcript.turns if turn.text] == ["Start.", "plain string", "numeric time", "End."]
    assert transcript.stats()["tool_calls"] == transcript.stats()["results_matched"] == 1
    located = {(warning.kind, warning.line) for warning in transcript.warnings}
    assert ("unknown_record", 7) in located
    assert {("not_a_record", 10), ("not_a_record", 11), ("not_a_record", 12), ("not_a_record", 13)} <= located


@pytest.mark.parametrize("name", ["crlf.jsonl", "bom.jsonl", "bom-crlf.jsonl", "blank-lines.jsonl"])
def test_b59_line_ends_marks_and_blanks_do_not_matter(shared: Path, name: str) -> None:
    case = expected(shared, "B59", name)

    transcript = read(shared / "cases/B59" / name)

    assert neutral(transcript) == case["messages"]
    assert transcript.warnings == ()


def test_b59_utf16_is_refused_by_name(shared: Path) -> None:
    with pytest.raises(ConfigError, match=r"utf16\.jsonl is not UTF-8"):
        read(shared / "cases/B59/utf16.jsonl")


def test_b71_bare_nan_is_read_as_text_and_reported(shared: Path) -> None:
    transcript = read(shared / "cases/B71/nan.jsonl")

    assert len(neutral(transcript)) == 5
    assert [(warning.kind, warning.line) for warning in transcript.warnings] == [("altered", 2), ("altered", 4)]
    assert "number" in transcript.warnings[0].text
    json.dumps([turn.message for turn in transcript.turns], allow_nan=False)


def test_b74_a_line_too_deep_costs_itself_at_most(shared: Path) -> None:
    transcript = read(shared / "cases/B74/deep.jsonl")

    assert [turn.text for turn in transcript.turns if turn.text] == ["Nest.", "Still here?", "Yes."]
    assert [warning.line for warning in transcript.warnings] == [2]


def test_b19_half_a_surrogate_pair_becomes_a_replacement_character(shared: Path) -> None:
    transcript = read(shared / "cases/B19/surrogate.jsonl")

    messages = neutral(transcript)
    assert messages[2]["results"][0]["text"] == "half \ufffd here, tail \ufffd, whole \U0001f600"
    assert messages[3]["text"].endswith("ends with \ufffd")
    assert transcript.stats()["bad_lines"] == 0


def test_b47_a_picture_stored_twice_is_one_and_its_bytes_come_on_demand(shared: Path) -> None:
    path = shared / "cases/B47/image-twice.jsonl"

    shown = stitched(page(path).turns)
    result = next(block["result"] for turn in shown for block in turn["content"] if "result" in block)
    picture = next(block for block in result["content"] if block["type"] == "image")
    data, kind = media(path, None, picture["media"]["ref"])

    assert read(path).stats()["images"] == 1
    assert picture["media"] == {"mediaType": kind, "bytes": 1544, "ref": picture["media"]["ref"]}
    assert (len(data), data[:4]) == (1544, b"\x89PNG")
    assert [block["text"] for block in result["content"] if block["type"] == "text"] == ["taken"]


def test_b47_a_line_of_forty_megabytes_costs_its_page_a_few_times_its_size(shared: Path, tmp_path: Path) -> None:
    lines = (shared / "cases/B47/image-twice.jsonl").read_bytes().splitlines(keepends=True)
    record = json.loads(lines[2])
    block = record["message"]["content"][0]["content"]
    next(item for item in block if item["type"] == "image")["source"]["data"] = "A" * 40_000_000
    path = tmp_path / "large.jsonl"
    path.write_bytes(b"".join([*lines[:2], json.dumps(record).encode() + b"\n", *lines[3:]]))

    shown = page(path)

    pages = [shown]
    while (cursor := pages[0].before) is not None:
        pages.insert(0, page(path, where="before", cursor=cursor))

    assert len(pickle.dumps(pages)) < 100_000
    assert [turn.kind for turn in join(pages)] == ["prompt", "answer", "results", "answer"]


@pytest.mark.parametrize(("name", "texts"), [("pi-v1.jsonl", 3), ("pi-v9.jsonl", 1)])
def test_b54_old_and_newer_files_of_pi_are_read(shared: Path, name: str, texts: int) -> None:
    transcript = read(shared / "cases/B54" / name)

    said = [turn.text for turn in transcript.turns if turn.text and turn.kind != "compaction"]
    assert len(said) == texts
    assert [warning.kind for warning in transcript.warnings] == (["newer_version"] if name == "pi-v9.jsonl" else [])


@pytest.mark.parametrize("case", ["B10/xss.jsonl", "B75/ansi.jsonl"])
def test_b10_b75_hostile_text_is_read_as_it_stands(shared: Path, case: str) -> None:
    transcript = read(shared / "cases" / case)

    assert transcript.stats()["bad_lines"] == 0
    assert [warning.kind for warning in transcript.warnings] in ([], ["duplicate_result"])
    assert "window.__p=9" in json.dumps([turn.message for turn in page(shared / "cases" / case).turns]) or "B75" in case
