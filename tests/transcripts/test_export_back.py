"""What is written as another harness's session and read back: the same words by the same speakers, or it is said."""

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import answered, call, image, result, said, sample

from harness.errors import FileExists
from harness.transcripts import Transcript, read
from harness.transcripts.export import TARGETS, Redaction, export

FOREIGN = ["claude", "huggingface", "penguin-envelopes"]


def spoken(transcript: Transcript) -> list[tuple[str, str, list[str]]]:
    return [(turn.kind, turn.text, [block["type"] for block in turn.blocks]) for turn in transcript.turns]


def test_a_prompt_with_pictures_is_one_prompt_again_after_penguin(tmp_path: Path) -> None:
    text = {"type": "text", "text": "Look at this."}
    lines = [
        said(1, [text, image(), image()]),
        answered(2, "m1", {"type": "text", "text": "I see."}),
        said(3, [image()]),
    ]

    back = read(export(sample(tmp_path, lines), "penguin-envelopes", tmp_path / "o.jsonl").out)

    assert spoken(back) == [
        ("prompt", "Look at this.", ["text", "image", "image"]),
        ("answer", "I see.", ["text"]),
        ("prompt", "", ["image"]),
    ]
    assert back.stats()["prompts"] == 2


def test_what_was_typed_while_the_model_worked_is_queued_again_after_penguin(tmp_path: Path) -> None:
    back = read(export(sample(tmp_path), "penguin-envelopes", tmp_path / "o.jsonl").out)

    assert [turn.text for turn in back.turns if turn.kind == "queued"] == ["And hurry."]


def test_that_an_empty_result_becomes_words_is_said(tmp_path: Path) -> None:
    lines = [said(1, "go"), answered(2, "m", call("c", a=1)), said(3, [result("c", "")])]

    made = export(sample(tmp_path, lines), "penguin-envelopes", tmp_path / "o.jsonl")

    assert made.left_out == {"empty results": 1}


def pi(entry: str, parent: str | None, role: str, **fields: Any) -> dict[str, Any]:
    at = "2026-03-02T09:00:00.000Z"
    message = {"role": role, **fields}
    return {"type": "message", "id": entry, "parentId": parent, "timestamp": at, "message": message}


@pytest.mark.parametrize("target", FOREIGN)
def test_an_error_of_the_provider_does_not_become_the_words_of_the_model(tmp_path: Path, target: str) -> None:
    usage = {"input": 7, "output": 5, "cacheRead": 0, "cacheWrite": 0}
    answer = {"model": "m-1", "provider": "p", "stopReason": "stop", "usage": usage}
    text = [{"type": "text", "text": "Half of"}]
    lines = [
        {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-03-02T09:00:00Z", "cwd": "/srv"},
        pi("1", None, "user", content="go"),
        pi("2", "1", "assistant", content=text, errorMessage="429 too many", **answer),
        pi("3", "2", "assistant", content=[], errorMessage="500 broken", **answer),
        pi("4", "3", "user", content="again"),
    ]
    path = tmp_path / "p1.jsonl"
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    made = export(read(path), target, tmp_path / "o.jsonl")

    assert [(turn.kind, turn.text) for turn in read(made.out).turns] == [
        ("prompt", "go"),
        ("answer", "Half of"),
        ("prompt", "again"),
    ]
    assert made.left_out["foreign blocks"] == 2
    assert made.left_out["message usage"] == {"huggingface": 2}.get(target, 1)


def test_a_hugging_face_session_keeps_folder_branch_and_the_tokens_of_the_whole(tmp_path: Path) -> None:
    lines = [said(1, "go", gitBranch="main"), answered(2, "m", {"type": "text", "text": "gone"})]
    before = sample(tmp_path, lines)

    back = read(export(before, "huggingface", tmp_path / "o.jsonl").out)

    assert (back.head.cwd, back.head.branch) == ("/srv/shop", "main")
    assert back.head.usage == {"input": 10, "cacheRead": 3, "cacheWrite": 2, "output": 5}
    assert back.stats()["tok_out"] == 5


def test_a_bundle_still_tells_which_harness_it_was_and_who_was_started(tmp_path: Path) -> None:
    agent = {"toolUseResult": {"agentId": "a1"}}
    lines = [said(1, "go"), answered(2, "m", call("c", a=1)), said(3, [result("c", "done")], **agent)]

    whole = read(export(sample(tmp_path, lines), "bundle", tmp_path / "whole").out)
    redacted = read(export(sample(tmp_path, lines), "bundle", tmp_path / "less", redaction=Redaction()).out)

    assert (whole.format, whole.head.harness) == ("bundle", "Claude Code")
    assert [one.to_dict() for one in whole.head.subagents] == [{"sessionId": "agent-a1", "call": "c"}]
    assert redacted.head.subagents == ()


def test_no_two_targets_give_a_session_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sample(tmp_path)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")

    made = [export(before, target).out for target in TARGETS]

    assert len(set(made)) == len(TARGETS)
    assert all(
        read(made[list(TARGETS).index(target)]).turns for target in ("bundle", "claude", "huggingface", "penguin")
    )


@pytest.mark.parametrize("session", ["nul\0l", "x" * 9000, " ", "..", "a/b"])
def test_any_id_gives_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: str) -> None:
    monkeypatch.chdir(tmp_path)
    before = replace(sample(tmp_path), session_id=session)

    assert export(before, "markdown").out.resolve().parent == tmp_path.resolve()


@pytest.mark.parametrize("target", ["markdown", "bundle"])
def test_a_pipe_or_a_link_is_not_written_over_even_by_force(tmp_path: Path, target: str) -> None:
    out = tmp_path / "out"
    if target == "bundle":
        out.mkdir()
    pipe = out / "manifest.json" if target == "bundle" else out
    os.mkfifo(pipe)

    with pytest.raises(FileExists, match="no plain file and stays as it is"):
        export(sample(tmp_path), target, out, overwrite=True)

    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert not (out / "transcript.jsonl").exists()


@pytest.mark.parametrize("target", ["claude", "penguin-envelopes"])
def test_tokens_that_no_message_tells_are_said_to_be_left_out(tmp_path: Path, target: str) -> None:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-03-02T09:00:00.000Z", "type": kind, "payload": payload}

    def count(total: int, last: int) -> dict[str, Any]:
        spent = {"total_token_usage": {"output_tokens": total}, "last_token_usage": {"output_tokens": last}}
        return line("event_msg", type="token_count", info=spent)

    asked, answered_ = [{"type": "input_text", "text": "go"}], [{"type": "output_text", "text": "gone"}]
    lines = [
        line("session_meta", id="c1", cwd="/w"),
        line("response_item", type="message", role="user", content=asked),
        count(100, 100),
        line("response_item", type="message", role="assistant", content=answered_),
        count(130, 30),
    ]
    path = tmp_path / "rollout-c1.jsonl"
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in lines))
    before = read(path)

    made = export(before, target, tmp_path / "o.jsonl")

    assert (before.stats()["tok_out"], read(made.out).stats()["tok_out"]) == (130, 30)
    assert made.left_out["session usage"] == 1
