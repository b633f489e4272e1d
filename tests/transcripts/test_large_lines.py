"""What stands on a line is reached by its key, however large the line, and whatever page gave the key."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.transcripts import Page, find, media, page, read, windows
from harness.transcripts.regions import View
from harness.viewer.window import rest

CEILING = 8 * 1024


def line(uuid: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | ({"id": f"m-{uuid}", "usage": {}} if kind == "assistant" else {})
    return {"type": kind, "uuid": uuid, "sessionId": "s", "message": message, **more}


def said(uuid: str, size: int = 0) -> dict[str, Any]:
    return line(uuid, "user", f"say {uuid} " + "x" * size)


def called(uuid: str, *calls: str) -> dict[str, Any]:
    return line(uuid, "assistant", [{"type": "tool_use", "id": key, "name": "Shot", "input": {}} for key in calls])


def result(key: str, size: int) -> dict[str, Any]:
    return line(f"r-{key}", "user", [{"type": "tool_result", "tool_use_id": key, "content": "y" * size}])


def picture(data: bytes) -> dict[str, Any]:
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()},
    }


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def pages(path: Path, window: int = 4096) -> list[Page]:
    """All pages from the beginning on, and all from the end back."""
    found = [page(path, where="head", window=window)]
    while not found[-1].at_end:
        found.append(page(path, where="after", cursor=found[-1].after, window=window))
    found.append(page(path, window=window))
    while (cursor := found[-1].before) is not None:
        found.append(page(path, where="before", cursor=cursor, window=window))
    return found


SIZES = st.sampled_from([0, 3000, 30_000])
LINES = st.lists(
    st.one_of(
        st.builds(said, st.sampled_from("abcdefgh"), SIZES),
        st.builds(lambda n: called(f"a{n}", f"c{n}", f"d{n}"), st.integers(0, 4)),
        st.builds(lambda key, n, size: result(f"{key}{n}", size), st.sampled_from("cd"), st.integers(0, 4), SIZES),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(LINES)
def test_every_turn_that_a_page_shows_is_on_the_page_around_it_however_large_its_line(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    path = write(tmp_path / "s.jsonl", [said("begin"), *lines])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "CEILING", CEILING)
        for shown in pages(path):
            for turn in shown.turns:
                around = page(path, where="around", cursor=turn.key, window=4096)
                assert [one.offset for one in around.turns if one.key == turn.key] == [turn.offset]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("front", [0, 1, 40])
def test_the_pictures_of_a_line_over_the_largest_window_are_given_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, front: int
) -> None:
    monkeypatch.setattr(windows, "CEILING", CEILING)
    data = [os.urandom(150_000 // count) for _ in range(count)]
    lines = [*(said(f"u{n}", 1000) for n in range(front)), line("p", "user", [picture(each) for each in data])]
    path = write(tmp_path / "s.jsonl", [*lines, said("last")])

    refs = [ref for one in pages(path) for each in one.to_dict()["turns"] for ref in _refs(each)]

    assert len(refs) == 2 * count
    assert [media(path, None, ref)[0] for ref in refs] == 2 * data


def test_a_screenshot_that_stands_twice_in_its_line_is_given_out_under_the_reference_of_any_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "CEILING", CEILING)
    data = os.urandom(100_000)
    content = [{"type": "tool_result", "tool_use_id": "c", "content": [picture(data)]}]
    lines = [said("u"), called("a", "c"), line("r", "user", content, toolUseResult=[picture(data)]), said("v")]
    path = write(tmp_path / "s.jsonl", lines)

    refs = {ref for one in pages(path) for each in one.to_dict()["turns"] for ref in _refs(each)}

    assert refs
    assert {media(path, None, ref)[0] for ref in refs} == {data}


def _refs(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*([value["ref"]] if "ref" in value else []), *(ref for each in value.values() for ref in _refs(each))]
    return [ref for each in value for ref in _refs(each)] if isinstance(value, list) else []


def test_a_result_over_the_largest_window_stands_with_its_call_on_every_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "CEILING", CEILING)
    others = [said(f"u{n}", 1500) for n in range(20)]
    large = [said("before", 30_000), called("a", "c"), result("c", 30_000), said("after", 30_000), said("more", 30_000)]
    path = write(tmp_path / "s.jsonl", [*others, *large, *others])

    shown = pages(path)

    assert {turn.kind for one in shown for turn in one.turns} == {"prompt", "answer", "results"}
    assert max(one.end - one.start for one in shown) < 2 * 30_000 + 2 * CEILING


def test_words_that_were_found_on_a_line_over_the_largest_window_lead_to_their_turn(tmp_path: Path) -> None:
    needle = line("n", "user", "needle " + "log line\n" * 900_000)
    path = write(tmp_path / "s.jsonl", [said("u"), needle, *(said(f"v{n}", 2000) for n in range(100))])
    hit = find(path, "s", "needle").hits[0]

    assert hit.key in {turn.key for turn in page(path, where="around", cursor=hit.key).turns}
    assert rest(path, "s", hit.key, 0)["key"] == hit.key


def test_a_key_that_leads_nowhere_costs_few_readings_of_a_large_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "s.jsonl", [*(said(f"u{n}", 1000) for n in range(3000)), said("large", 9_000_000)])
    key = f"r{read(path).turns[-1].offset}"
    regions: list[int] = []
    begin = View.region

    def counted(self: View, start: int, end: int, tip: str | None = None) -> Any:
        regions.append(end - start)
        return begin(self, start, end, tip)

    monkeypatch.setattr(View, "region", counted)
    shown = page(path, where="around", cursor=key)

    assert all(turn.key != key for turn in shown.turns)
    assert sum(size > 9_000_000 for size in regions) <= 3
