"""Results of closed turns in short: by shape, the same every time, and never cut within a line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sessions import result_digest


def digest(text: str, tool: str = "fetch", *, is_error: bool = False, chars: int | None = None) -> str:
    return result_digest(text, tool=tool, is_error=is_error, evidence="12.3", chars=chars)


def test_a_short_result_is_itself_without_a_tag() -> None:
    assert digest("42 files") == "42 files"


def test_an_error_is_whole_however_long_it_is() -> None:
    assert digest("boom " * 2000, is_error=True) == "boom " * 2000


def test_output_of_a_command_shows_both_its_ends_and_how_many_lines_are_left_out() -> None:
    lines = [f"compiling module number {n}" for n in range(1, 31)] + ["Exit code: 1"]
    assert digest("\n".join(lines), "bash").split("\n") == [
        *[f"compiling module number {n}" for n in range(1, 11)],
        "[11 lines omitted]",
        *[f"compiling module number {n}" for n in range(22, 31)],
        "Exit code: 1",
        "[evidence:12.3 — 813 chars; call recall to expand]",
    ]


def test_output_of_up_to_twenty_lines_is_whole() -> None:
    text = "\n".join(f"compiling module number {n}" for n in range(20))
    assert digest(text, "Bash") == text


def test_a_line_that_is_too_long_is_counted_and_the_lines_around_it_stay() -> None:
    assert digest("started\n" + "x" * 3000 + "\nExit code: 0\n", "bash") == (
        "started\n[a line of 3000 chars]\nExit code: 0\n[evidence:12.3 — 3022 chars; call recall to expand]"
    )


def test_a_list_of_links_keeps_every_title_and_address() -> None:
    found = [{"title": f"Page {n}", "url": f"https://example.org/{n}", "text": "t" * 300} for n in (1, 2)]
    assert digest(json.dumps([*found, {"url": "https://example.org/3", "text": "t" * 300}])) == (
        "array of 3 links:\n- Page 1 (https://example.org/1)\n- Page 2 (https://example.org/2)\n"
        "- (https://example.org/3)\n[evidence:12.3 — 1076 chars; call recall to expand]"
    )


def test_another_list_is_its_length_and_its_first_item() -> None:
    assert digest(json.dumps([{"row": n, "value": "v" * 40} for n in range(90)])) == (
        'array of 90\nfirst: {"row":0,"value":"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"}\n'
        "[evidence:12.3 — 5930 chars; call recall to expand]"
    )


def test_an_object_is_its_keys_with_short_values_lengths_of_lists_and_the_links_in_them() -> None:
    value = {
        "status": "ok",
        "rows": [1] * 400,
        "hits": [{"title": "A page", "url": "https://example.org/a", "body": "b" * 200}],
        "raw": "r" * 3000,
        "meta": {"one": "1" * 100, "two": "2" * 100},
    }
    assert digest(json.dumps(value)).split("\n") == [
        "object of 5 keys:",
        'status: "ok"',
        "rows: array of 400",
        "hits: array of 1 links:",
        "- A page (https://example.org/a)",
        "raw: text of 3000 chars",
        "meta: object of 2 keys: one, two",
        f"[evidence:12.3 — {len(json.dumps(value))} chars; call recall to expand]",
    ]


def test_json_that_a_command_printed_goes_by_its_shape() -> None:
    text = json.dumps({"exit_code": 2, "stdout": "line\n" * 300})
    assert digest(text, "bash").split("\n")[1:3] == ["exit_code: 2", "stdout: text of 1500 chars"]


def test_text_is_its_headings_its_first_sentence_and_its_size() -> None:
    text = "# Guide\n\nHow to build it. First you need a saw.\n\n## Tools\n\n" + "Take a hammer and nails. " * 40
    assert digest(text) == (
        "# Guide\n## Tools\nHow to build it.\n[7 lines, 1059 bytes]\n[evidence:12.3 — 1059 chars; call recall to expand]"
    )


def test_a_listing_without_a_sentence_begins_with_its_first_line() -> None:
    text = "\n".join(f"{n} import module number {n}" for n in range(1, 41))
    assert digest(text).split("\n")[:2] == ["1 import module number 1", f"[40 lines, {len(text)} bytes]"]


def test_up_to_three_hundred_characters_are_whole() -> None:
    assert digest("A" * 300) == "A" * 300
    assert digest("A" * 301).startswith("[1 line, 301 bytes]\n")


def test_a_sentence_ends_in_chinese_too() -> None:
    assert digest("这是第一句话。后面还有很多内容。" * 20).split("\n")[0] == "这是第一句话。"


def test_a_blob_without_a_space_is_its_size_only() -> None:
    assert digest("QUJD" * 1000) == "[1 line, 4000 bytes]\n[evidence:12.3 — 4000 chars; call recall to expand]"


def test_what_looks_like_json_and_is_none_is_text() -> None:
    text = "[draft] The plan is ready. " + "More of it follows here. " * 40
    assert digest(text).startswith("[draft] The plan is ready.\n[1 line, ")


def test_of_very_many_links_keys_or_headings_the_rest_is_counted() -> None:
    links = json.dumps([{"title": f"Page {n}", "text": "t" * 90} for n in range(70)])
    keys = json.dumps({f"key {n}": "v" * 200 for n in range(70)})
    headings = "\n".join(f"# Heading {n}\nSome more text below it." for n in range(70))
    assert [digest(text).count(more) for text, more in ((links, "[20 more]"), (keys, "[10 more]"))] == [1, 1]
    assert "[30 more]" in digest(headings)


def test_the_tag_counts_the_whole_result_where_only_a_preview_is_here() -> None:
    assert digest("QUJD" * 1000, chars=90_000).endswith("[evidence:12.3 — 90000 chars; call recall to expand]")


def test_what_is_counted_in_a_preview_is_called_one() -> None:
    assert digest("Of note. " * 200, chars=90_000).split("\n")[-2] == "[preview: 1 line, 1800 bytes]"
    made = digest("\n".join(["a line of output"] * 50), "bash", chars=90_000)
    assert "[30 lines of the preview omitted]" in made.split("\n")


@pytest.mark.parametrize(
    "text",
    [
        "[" + "9" * 400 + ',"a"' * 200 + "]",
        '["\\ud800' + "x" * 700 + '"]',
        "[" * 300 + "]" * 300,
        '{"a":' * 200 + "1" + "}" * 200,
    ],
)
def test_strange_json_gives_storable_text(text: str) -> None:
    assert len(digest(text).encode()) <= max(len(text), 600)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.sampled_from(["url", "title", "k", "rows"]), inner),
)


@given(st.one_of(st.text(), json_values.map(json.dumps), st.lists(st.text(max_size=700)).map("\n".join)))
def test_a_digest_is_never_longer_than_the_result_and_either_that_or_tagged(text: str) -> None:
    for tool in ("bash", "fetch"):
        made = digest(text, tool)
        assert made == digest(text, tool)
        assert len(made) <= len(text)
        assert made == text or made.endswith(f"[evidence:12.3 — {len(text)} chars; call recall to expand]")


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=900), max_size=60))
def test_every_line_of_output_is_whole_or_counted(lines: list[str]) -> None:
    text = "\n".join(["$ make", *lines, "done"])
    notes = {f"[a line of {len(line)} chars]" for line in lines} | {f"[{len(lines) - 18} lines omitted]"}
    *kept, tag = digest(text, "bash").split("\n")
    assert all(line in ("$ make", *lines) or line in notes for line in kept)
    assert tag == "done" or kept[-1] == "done"
