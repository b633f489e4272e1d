"""From the normal form to rows: tool runs, states, tags, and blocks of any shape."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.viewer.rows import row_of


def turn(*content: Any, kind: str = "answer", **fields: Any) -> dict[str, Any]:
    return {"key": "k1", "kind": kind, "role": "assistant", "content": list(content), **fields}


def call(name: str, call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": "toolUse", "id": call_id, "name": name, "input": {"command": "ls -la", "timeout": 5}, **fields}


def result(text: str, *, failed: bool = False, **fields: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": failed, **fields}


def test_calls_that_follow_each_other_are_one_row() -> None:
    row = row_of(turn(call("Bash"), call("Read", "c2"), call("Bash", "c3"), {"type": "text", "text": "done"}))
    assert [(part.kind, part.names) for part in row.parts] == [("tools", "Bash, Read"), ("markdown", "")]
    assert row.parts[0].calls[0].preview == "ls -la"


def test_a_text_between_calls_parts_the_runs() -> None:
    row = row_of(turn(call("Bash"), {"type": "text", "text": "and"}, call("Read", "c2")))
    assert [part.kind for part in row.parts] == ["tools", "markdown", "tools"]


def test_a_call_without_a_result_is_open_and_never_a_success() -> None:
    states = [
        part.calls[0].state
        for part in row_of(
            turn(call("A"), {"type": "text", "text": "x"}, call("B", result=result("r")), {"type": "text", "text": "y"},
                 call("C", result=result("r", failed=True, exitCode=2)))
        ).parts
        if part.calls
    ]  # fmt: skip
    assert states == ["open", "ok", "failed"]


def test_a_run_counts_what_failed_and_what_is_open() -> None:
    run = row_of(turn(call("A"), call("B", "c2", result=result("r", failed=True)))).parts[0]
    assert (run.failed, run.open) == (1, 1)


def test_withheld_reasoning_is_said_and_not_invented() -> None:
    part = row_of(turn({"type": "thinking", "text": ""})).parts[0]
    assert (part.kind, part.withheld, part.text) == ("thinking", True, "")


def test_only_what_people_and_models_say_is_markdown() -> None:
    text = {"type": "text", "text": "**x**"}
    kinds = {
        kind: row_of(turn(text, kind=kind)).parts[0].kind for kind in ("prompt", "queued", "answer", "context", "meta")
    }
    assert kinds == {
        "prompt": "markdown",
        "queued": "markdown",
        "answer": "markdown",
        "context": "plain",
        "meta": "plain",
    }


def test_context_is_folded_under_its_tag() -> None:
    row = row_of(turn({"type": "text", "text": "be brief"}, kind="context", tag="system-reminder"))
    assert (row.folded, row.name, row.preview) == (True, "Context: system-reminder", "be brief")


def test_a_turn_on_a_branch_that_was_left_is_folded() -> None:
    row = row_of(turn({"type": "text", "text": "never mind"}, aside="abandoned"))
    assert (row.folded, row.aside, row.preview) == (True, "abandoned", "never mind")


def test_what_was_cut_is_said() -> None:
    assert row_of(turn({"type": "text", "text": "x", "more": {"characters": 412_000}})).parts[0].more == 412_000


def test_a_picture_elsewhere_is_an_address_and_nothing_to_load() -> None:
    part = row_of(turn({"type": "image", "url": "https://evil.invalid/x.png"})).parts[0]
    assert (part.kind, part.text) == ("other", "A image that is not in the transcript: https://evil.invalid/x.png")


def test_a_block_nobody_knows_is_shown_whole() -> None:
    part = row_of(turn({"type": "hologram", "depth": 3})).parts[0]
    assert (part.kind, part.preview) == ("other", "Unknown kind of block: hologram")
    assert '"depth": 3' in part.text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "input", "result", "content", "media", "more", "ref", "files"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
kinds = st.sampled_from(["text", "thinking", "toolUse", "toolResult", "image", "x", 3, None])


@given(
    st.lists(
        st.builds(
            lambda kind, more: {**more, "type": kind},
            kinds,
            st.dictionaries(
                st.sampled_from(
                    ["text", "id", "name", "input", "result", "content", "media", "more", "url", "files", "isError"]
                ),
                json_values,
                max_size=5,
            ),
        )
    ),
    json_values,
)
def test_no_shape_of_a_field_raises(content: list[Any], usage: Any) -> None:
    row_of({"key": 1, "kind": None, "content": content, "usage": usage, "at": 7})
