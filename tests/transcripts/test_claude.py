"""Claude Code: what is a message, what is a prompt, what belongs together."""

import json
from pathlib import Path
from typing import Any

from harness.transcripts import Transcript, candidates, read


def line(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    """A user or assistant line; a fields `message_id`, `model` and `usage` go into its message."""
    inner = {"id": "message_id", "model": "model", "usage": "usage", "stop_reason": "stop_reason"}
    message = {"role": kind, "content": content}
    message |= {name: fields.pop(field) for name, field in inner.items() if field in fields}
    return {"type": kind, "uuid": f"u-{id(message)}", "sessionId": "s", "message": message, **fields}


def call(key: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": {"n": key}}


def result(key: str, content: Any = "done", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": content, **fields}


def kinds(transcript: Transcript) -> list[str]:
    return [turn.kind for turn in transcript.turns]


def test_blocks_of_one_message_id_are_one_message_wherever_they_stand(reading: Any) -> None:
    transcript = reading(
        line("user", "go"),
        line("assistant", [call("t1")], message_id="m1", model="claude-x"),
        line("user", [result("t1")]),
        line("assistant", [call("t2")], message_id="m1", model="claude-x"),
        line("user", [result("t2")]),
    )

    assert kinds(transcript) == ["prompt", "answer", "results"]
    assert [block["id"] for block in transcript.turns[1].blocks] == ["t1", "t2"]
    assert [block["id"] for block in transcript.turns[2].blocks] == ["t1", "t2"]


def test_results_stand_behind_their_calls_in_call_order(reading: Any) -> None:
    transcript = reading(
        line("user", "go"),
        line("assistant", [call("a"), call("b")], message_id="m1"),
        line("assistant", [{"type": "text", "text": "waiting"}], message_id="m2"),
        line("user", [result("b", "second")]),
        line("user", [result("a", "first")]),
    )

    assert kinds(transcript) == ["prompt", "answer", "results", "answer"]
    assert [(block["id"], block["name"]) for block in transcript.turns[2].blocks] == [("a", "Bash"), ("b", "Bash")]


def test_a_result_without_a_call_stands_alone_and_a_call_without_result_is_open(reading: Any) -> None:
    transcript = reading(
        line("user", "go"), line("assistant", [call("a")], message_id="m1"), line("user", [result("z")])
    )

    assert kinds(transcript) == ["prompt", "answer", "orphan"]
    assert (transcript.stats()["calls_open"], transcript.stats()["results_orphan"]) == (1, 1)


def test_the_first_of_two_results_is_kept_and_the_second_reported(reading: Any) -> None:
    transcript = reading(
        line("assistant", [call("a")], message_id="m1"),
        line("user", [result("a", "one")]),
        line("user", [result("a", "two")]),
    )

    assert transcript.turns[1].blocks[0]["content"] == [{"type": "text", "text": "one"}]
    assert [(warning.kind, warning.line) for warning in transcript.warnings] == [("duplicate_result", 3)]


def test_the_largest_usage_of_a_message_counts(reading: Any) -> None:
    transcript = reading(
        line("assistant", "a", message_id="m1", usage={"input_tokens": 5, "output_tokens": 2}),
        line("assistant", "b", message_id="m1", usage={"input_tokens": 5, "output_tokens": 90}),
    )

    assert transcript.turns[0].message["usage"] == {"input": 5, "cacheRead": 0, "cacheWrite": 0, "output": 90}
    stats = transcript.stats()
    assert (stats["tok_out"], stats["tok_out_first"], stats["tok_out_naive"]) == (90, 2, 92)


def test_a_thinking_block_keeps_the_record_of_its_provider_whole(reading: Any) -> None:
    block = {"type": "thinking", "thinking": "A  b\u00e9.", "signature": "c2ln", "extra": {"z": 1, "a": 2}}

    transcript = reading(line("assistant", [block], message_id="m1", model="claude-x"))

    kept = transcript.turns[0].blocks[0]
    assert kept == {
        "type": "thinking",
        "text": "A  b\u00e9.",
        "opaque": {"provider": "anthropic", "model": "claude-x", "data": block},
    }
    assert list(kept["opaque"]["data"]["extra"]) == ["z", "a"]


def test_reasoning_without_text_is_counted_as_withheld(reading: Any) -> None:
    blocks = [{"type": "redacted_thinking", "data": "xx"}, {"type": "thinking", "thinking": "", "signature": "s"}]

    stats = reading(line("assistant", blocks, message_id="m1")).stats()

    assert (stats["thinking_blocks"], stats["encrypted_reasoning"]) == (0, 2)


def test_harness_text_beside_a_prompt_does_not_hide_it(reading: Any) -> None:
    content = [
        {"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"},
        {"type": "text", "text": "Fix it."},
    ]

    transcript = reading(line("user", content))

    assert [(turn.kind, turn.role) for turn in transcript.turns] == [("context", "system"), ("prompt", "user")]
    assert transcript.turns[1].text == "Fix it."


def test_a_persons_own_tag_is_a_prompt(reading: Any) -> None:
    transcript = reading(line("user", "<script>alert(1)</script>"))

    assert kinds(transcript) == ["prompt"]
    assert transcript.stats()["prompts_lt"] == 0


def test_a_picture_alone_is_a_prompt(reading: Any) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}

    transcript = reading(line("user", [{"type": "image", "source": source}]))

    assert kinds(transcript) == ["prompt"]
    assert transcript.turns[0].blocks[0]["media"]["data"] == b"\x89PNG"


def test_a_compact_summary_is_no_prompt(reading: Any) -> None:
    transcript = reading(
        {"type": "system", "subtype": "compact_boundary", "content": "compacted", "uuid": "b", "sessionId": "s"},
        line("user", "This session is continued.", isCompactSummary=True),
        line("user", "go on"),
    )

    assert kinds(transcript) == ["compaction", "compaction", "prompt"]
    assert (transcript.stats()["prompts"], transcript.stats()["compactions"]) == (1, 1)


def test_exactly_the_same_line_again_counts_once_and_the_same_words_twice(reading: Any) -> None:
    said = line("assistant", "Yes.", message_id="m1")
    other = line("assistant", "Yes.", message_id="m2") | {"uuid": "other"}

    transcript = reading(said, said, other)

    assert [turn.text for turn in transcript.turns] == ["Yes.", "Yes."]


def test_a_model_made_up_by_the_harness_is_none(reading: Any) -> None:
    transcript = reading(
        line("assistant", "limit reached", message_id="m1", model="<synthetic>"),
        line("assistant", "ok", message_id="m2", model="claude-x"),
    )

    assert transcript.stats()["models"] == "claude-x"
    assert "model" not in transcript.turns[0].message


def test_leading_summaries_do_not_hide_the_format(reading: Any) -> None:
    summaries = [{"type": "summary", "summary": "older", "leafUuid": str(n)} for n in range(16)]

    transcript = reading(*summaries, line("user", "Hello"))

    assert (transcript.format, transcript.stats()["prompts"]) == ("claude", 1)


def queue(operation: str, content: str | None = None) -> dict[str, Any]:
    told = {"type": "queue-operation", "operation": operation, "sessionId": "s"}
    return {**told, "content": content} if content is not None else told


def test_a_prompt_that_only_the_queue_has_is_shown_once(reading: Any) -> None:
    taken = {"type": "attachment", "uuid": "q", "attachment": {"type": "queued_command", "prompt": "taken"}}

    transcript = reading(
        line("user", "start"),
        *(
            queue("enqueue", text)
            for text in ("waiting", "sent later", "taken", "back", "<task-notification>x</task-notification>")
        ),
        queue("popAll", "back"),
        line("user", "sent later"),
        taken,
    )

    assert [(turn.kind, turn.text) for turn in transcript.turns] == [
        ("prompt", "start"),
        ("queued", "waiting"),
        ("prompt", "sent later"),
        ("queued", "taken"),
    ]
    assert transcript.stats()["prompts"] == 2


def queued_and_typed(found: Transcript) -> list[tuple[str, str]]:
    return [(turn.kind, turn.text) for turn in found.turns if turn.kind in ("prompt", "queued")]


def test_a_prompt_that_nobody_took_does_not_swallow_the_same_words_said_anew(reading: Any) -> None:
    said_anew = reading(line("user", "start"), queue("enqueue", "go on"), line("user", "hello"), line("user", "go on"))

    assert queued_and_typed(said_anew) == [
        ("prompt", "start"),
        ("queued", "go on"),
        ("prompt", "hello"),
        ("prompt", "go on"),
    ]


def test_a_prompt_that_nobody_took_is_not_taken_for_a_later_one_of_the_same_words(reading: Any) -> None:
    lost = [line("user", "start"), queue("enqueue", "go on"), line("user", "hello")]
    taken = [queue("enqueue", "go on"), queue("dequeue"), line("user", "go on")]
    back = [queue("enqueue", "go on"), queue("popAll", "go on")]

    for later, seen in ((taken, [("prompt", "go on")]), (back, [])):
        assert queued_and_typed(reading(*lost, *later)) == [
            ("prompt", "start"),
            ("queued", "go on"),
            ("prompt", "hello"),
            *seen,
        ]


def test_the_title_is_the_given_name_else_the_first_words_of_a_person(reading: Any) -> None:
    words = line("user", "Sort   the\nletters.")
    named = {"type": "custom-title", "sessionId": "s", "customTitle": "Letters"}

    assert reading(words).head.title == "Sort the letters."
    assert reading(words, named).head.title == "Letters"


def test_a_sub_agent_has_the_id_under_which_its_file_is_listed(tmp_path: Path) -> None:
    started = line("user", [result("c1")], toolUseResult={"agentId": "a1b2"})
    parent, child = tmp_path / "main.jsonl", tmp_path / "main" / "subagents" / "agent-a1b2.jsonl"
    child.parent.mkdir(parents=True)
    for path, lines in ((parent, [line("assistant", [call("c1")]), started]), (child, [line("user", "count")])):
        path.write_text("".join(json.dumps(one) + "\n" for one in lines))

    (agent,) = read(parent).head.subagents

    assert (agent.session_id, agent.source, agent.call) == ("agent-a1b2", str(child), "c1")
    assert candidates(child)[0].session_id == "agent-a1b2"
