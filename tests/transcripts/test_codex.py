"""Codex: items before events, one message up to the next result, totals over restarts."""

import json
from typing import Any

import pytest


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-02T09:00:00.000Z", "type": "response_item", "payload": {"type": kind, **payload}}


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-02T09:00:00.000Z", "type": "event_msg", "payload": {"type": kind, **payload}}


def said(role: str, text: str) -> dict[str, Any]:
    return item("message", role=role, content=[{"type": "input_text", "text": text}])


def call(key: str) -> dict[str, Any]:
    return item("function_call", name="shell", arguments='{"command":["ls"]}', call_id=key)


def output(key: str, value: Any) -> dict[str, Any]:
    return item("function_call_output", call_id=key, output=value)


def tokens(total: int, last: int) -> dict[str, Any]:
    def usage(n: int) -> dict[str, int]:
        return {"input_tokens": 10 * n, "cached_input_tokens": 4 * n, "output_tokens": n}

    return event("token_count", info={"total_token_usage": usage(total), "last_token_usage": usage(last)})


def test_items_up_to_a_result_are_one_message(reading: Any) -> None:
    transcript = reading(
        said("user", "go"),
        item("reasoning", summary=[{"type": "summary_text", "text": "Look."}], encrypted_content="gAAA"),
        said("assistant", "Looking."),
        call("c1"),
        output("c1", "a.txt"),
        said("assistant", "Found."),
    )

    assert [turn.kind for turn in transcript.turns] == ["prompt", "answer", "results", "answer"]
    assert [block["type"] for block in transcript.turns[1].blocks] == ["thinking", "text", "toolUse"]
    assert transcript.stats()["assistant_msgs"] == 2


def test_a_reasoning_item_is_kept_whole(reading: Any) -> None:
    reasoning = item("reasoning", id="rs_1", summary=[], content=None, encrypted_content="gAAA")

    transcript = reading(
        {"type": "session_meta", "payload": {"id": "s1", "model_provider": "azure"}},
        {"type": "turn_context", "payload": {"model": "gpt-x"}},
        reasoning,
    )

    opaque = transcript.turns[0].blocks[0]["opaque"]
    assert opaque == {"provider": "azure", "model": "gpt-x", "data": reasoning["payload"]}
    assert transcript.session_id == "s1"
    assert transcript.stats()["encrypted_reasoning"] == 1


@pytest.mark.parametrize(
    "text",
    ["<environment_context>x</environment_context>", "# AGENTS.md instructions for /srv", "<skill>x</skill>"],
)
def test_injected_user_items_are_context(reading: Any, text: str) -> None:
    transcript = reading(said("user", text), said("developer", "rules"), said("user", "go"))

    assert [turn.kind for turn in transcript.turns] == ["context", "context", "prompt"]


def test_an_ide_wrapper_is_a_prompt(reading: Any) -> None:
    transcript = reading(said("user", "# Context from my IDE setup:\n\n## My request for Codex:\nfix it"))

    assert [turn.kind for turn in transcript.turns] == ["prompt"]


def test_prompts_that_exist_only_as_events_are_read(reading: Any) -> None:
    transcript = reading(
        said("user", "<environment_context>x</environment_context>"),
        event("user_message", message="first"),
        said("assistant", "one"),
        event("agent_message", message="one"),
        event("user_message", message="second"),
    )

    assert [turn.text for turn in transcript.turns if turn.kind == "prompt"] == ["first", "second"]
    assert [turn.text for turn in transcript.turns if turn.kind == "answer"] == ["one"]


def test_token_totals_of_a_resumed_rollout_are_added_up(reading: Any) -> None:
    transcript = reading(
        said("assistant", "one"), tokens(5, 5), tokens(5, 5), tokens(8, 3), said("user", "more"), tokens(2, 2)
    )

    stats = transcript.stats()
    assert (stats["tok_in"], stats["tok_cache_read"], stats["tok_out"]) == (60, 40, 10)
    assert transcript.turns[0].message["usage"]["output"] == 10


def test_a_web_search_without_an_id_gets_one_of_its_own(reading: Any) -> None:
    search = item("web_search_call", status="completed", action={"type": "search", "query": "x"})

    transcript = reading(said("user", "go"), search, search, event("web_search_end", call_id="ws_1", query="x"))

    assert [block["id"] for block in transcript.turns[1].blocks] == ["b166", "b340"]
    assert transcript.stats()["calls_open"] == 2


@pytest.mark.parametrize(
    ("value", "failed"),
    [
        (json.dumps({"output": "no", "metadata": {"exit_code": 2}}), True),
        (json.dumps({"output": "yes", "metadata": {"exit_code": 0}}), False),
        ("Wall time: 1 s\nProcess exited with code 1\nOutput:\n", True),
        ("the manual says: Exit code: none", False),
        ({"success": False, "content": "no"}, True),
    ],
)
def test_a_failed_tool_is_known_by_its_output(reading: Any, value: Any, failed: bool) -> None:
    transcript = reading(call("c1"), output("c1", value))

    assert transcript.turns[1].blocks[0]["isError"] is failed


def test_a_failure_only_the_event_tells_is_known(reading: Any) -> None:
    ended = event("exec_command_end", call_id="c1", exit_code=7)

    transcript = reading(call("c1"), ended, output("c1", "oops"))

    assert transcript.turns[1].blocks[0]["isError"] is True


def test_arguments_that_are_no_object_are_kept(reading: Any) -> None:
    patch = item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c1")

    transcript = reading(said("user", "go"), patch)

    assert transcript.turns[1].blocks[0]["input"] == {"input": "*** Begin Patch"}


def test_bare_items_of_the_first_generation_are_read(reading: Any) -> None:
    transcript = reading(
        {"id": "s0", "timestamp": "2025-08-01T00:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    )

    assert (transcript.format, transcript.session_id) == ("codex", "s0")
    assert [turn.kind for turn in transcript.turns] == ["prompt", "answer", "results"]
    assert transcript.warnings == ()


def test_a_compaction_does_not_repeat_the_history_it_replaces(reading: Any) -> None:
    old = said("user", "old")["payload"]

    transcript = reading(
        said("user", "old"),
        {"type": "compacted", "payload": {"message": "so far", "replacement_history": [old]}},
    )

    assert [(turn.kind, turn.text) for turn in transcript.turns] == [("prompt", "old"), ("compaction", "so far")]


def test_a_fork_does_not_count_what_its_parent_spent(reading: Any) -> None:
    def late(line: dict[str, Any]) -> dict[str, Any]:
        return {**line, "timestamp": "2026-03-02T09:05:00.000Z"}

    def meta(key: str, **more: Any) -> dict[str, Any]:
        return {"timestamp": "2026-03-02T09:00:00.000Z", "type": "session_meta", "payload": {"id": key, **more}}

    transcript = reading(
        meta("child", forked_from_id="parent"),
        meta("parent"),
        said("user", "old"),
        said("assistant", "old answer"),
        tokens(90, 90),
        late(said("user", "new")),
        late(said("assistant", "new answer")),
        late(tokens(97, 7)),
    )

    assert transcript.head.forked_from == "parent"
    assert transcript.stats()["tok_out"] == 7
    assert [turn.message.get("usage", {}).get("output") for turn in transcript.turns] == [None, None, None, 7]


def test_a_search_that_only_the_screen_showed_is_a_call(reading: Any) -> None:
    transcript = reading(said("user", "go"), event("web_search_end", call_id="ws_1", query="x"))

    block = transcript.turns[1].blocks[0]
    assert (block["name"], block["id"], block["input"]) == ("web_search", "ws_1", {"query": "x"})


def test_a_torn_line_with_its_whole_copy_behind_it_costs_nothing(reading: Any) -> None:
    whole = json.dumps(said("user", "hello")).encode()

    transcript = reading(said("user", "first"), whole[:60] + whole)

    assert [turn.text for turn in transcript.turns] == ["first", "hello"]
    assert [(warning.kind, warning.line) for warning in transcript.warnings] == [("bad_line", 2)]
