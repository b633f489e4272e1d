"""Windows: whatever their size and way, put together they are the whole; a growing file is followed."""

import json
import pickle
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from growing import KINDS as GROWING

from harness.errors import ConfigError
from harness.transcripts import Page, Turn, candidates, join, page, read, stitched
from harness.transcripts.lines import MAX_LINE

CAP = 20_000
KINDS = ["claude", "codex", "gemini", "hermes", "openclaw", "opencode", "penguin", "pi", "sts"]


def backwards(path: Path, session: str | None, window: int) -> list[Page]:
    pages = [page(path, session, window=window)]
    while (cursor := pages[-1].before) is not None:
        pages.append(page(path, session, where="before", cursor=cursor, window=window))
    return pages[::-1]


def forwards(path: Path, session: str | None, window: int) -> list[Page]:
    pages = [page(path, session, where="head", window=window)]
    while not pages[-1].at_end:
        pages.append(page(path, session, where="after", cursor=pages[-1].after, window=window))
    return pages


def sessions(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if (
            path.suffix in (".jsonl", ".json", ".db")
            and "meta" not in path.parts
            and not path.name.endswith("meta.json")
        ):
            yield from ((one.path, one.session_id) for one in candidates(path))


def prompt(text: str, number: int = 0) -> dict[str, Any]:
    return {"type": "user", "uuid": f"u{number}-{text[:9]}", "sessionId": "s", "message": {"content": text}}


def answer(key: str, *content: dict[str, Any]) -> dict[str, Any]:
    message = {"id": key, "content": list(content), "usage": {"output_tokens": 1}}
    return {"type": "assistant", "uuid": f"a-{key}-{len(json.dumps(content))}", "sessionId": "s", "message": message}


def result(key: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": key, "content": "done"}
    return {"type": "user", "uuid": f"r-{key}", "sessionId": "s", "message": {"content": [block]}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(key: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": "Read", "input": {"file_path": "a.py"}}


def write(path: Path, *lines: Any) -> Path:
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_joined_windows_are_the_full_read_for_every_file_and_window_size(shared: Path, kind: str) -> None:
    for path, session in sessions(shared / "traces" / kind):
        whole = read(path, session, cap=CAP).turns
        for window in [size * 1024 for size in (32, 64, 128, 384, 1024, 8192)]:
            for pages in (backwards(path, session, window), forwards(path, session, window)):
                assert pages[0].start == 0
                assert [one.end for one in pages[:-1]] == [other.start for other in pages[1:]]
                assert join(pages) == whole, (path.name, window)


LINES = st.lists(
    st.one_of(
        st.builds(lambda n: prompt(f"say {n}", n), st.integers(0, 9)),
        st.builds(lambda n: answer(f"m{n}", text(f"word {n}")), st.integers(0, 5)),
        st.builds(lambda n: answer(f"m{n}", call(f"c{n}")), st.integers(0, 5)),
        st.builds(lambda n: result(f"c{n}"), st.integers(0, 5)),
        st.just(b""),
        st.just(b'{"torn'),
        st.builds(lambda n: {"type": "progress", "uuid": "p", "sessionId": "s", "data": "x" * n}, st.integers(0, 4000)),
    ),
    max_size=60,
)


@settings(max_examples=40)
@given(LINES, st.sampled_from([4096, 8192, 20_000]))
def test_joined_windows_are_the_full_read_for_any_lines(tmp_path: Path, lines: list[Any], window: int) -> None:
    path = write(tmp_path / "any.jsonl", prompt("begin"), *lines)
    whole = read(path, cap=CAP).turns

    assert join(backwards(path, None, window)) == whole
    assert join(forwards(path, None, window)) == whole


@pytest.mark.parametrize("kind", GROWING)
def test_calls_and_results_have_the_same_ids_on_a_page_and_in_the_whole(tmp_path: Path, kind: str) -> None:
    session = GROWING[kind](tmp_path)
    session.say(24)
    whole = read(session.path, cap=CAP).turns

    for pages in (backwards(session.path, None, 4096), forwards(session.path, None, 4096)):
        assert ids(turn for one in pages for turn in one.turns) == ids(whole)
    told = [key for _, keys in ids(whole) for key in keys]
    assert len(told) == 2 * len(set(told))  # a call and its result


def ids(turns: Iterable[Turn]) -> list[tuple[str, list[str]]]:
    return [(turn.key, [block["id"] for block in turn.blocks if block.get("id")]) for turn in turns]


def test_pages_begin_and_end_at_whole_turns(tmp_path: Path) -> None:
    lines = []
    for n in range(60):
        lines += [prompt(f"question {n} {'x' * 400}", n), answer(f"m{n}", call(f"c{n}")), result(f"c{n}")]
        lines += [answer(f"e{n}", text(f"answer {n} {'y' * 400}"))]
    path = write(tmp_path / "s.jsonl", *lines)

    pages = backwards(path, None, 8192)

    assert len(pages) > 5
    assert all(one.turns[0].kind == "prompt" for one in pages)
    assert [turn.key for one in pages for turn in one.turns] == [turn.key for turn in read(path).turns]
    assert sum(turn.final for one in pages for turn in one.turns) == 60


def test_a_call_without_a_result_is_open_and_never_succeeded(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", prompt("go"), answer("m1", call("c1"), call("c2")), result("c2"))

    shown = stitched(page(path).turns)

    assert [block.get("open") for block in shown[1]["content"]] == [True, None]
    assert "result" not in shown[1]["content"][0]
    assert shown[1]["content"][1]["result"] == {"content": [text("done")], "isError": False, "name": "Read"}


def test_a_growing_file_is_followed_and_an_open_call_closes(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", prompt("go"), answer("m1", call("c1")))
    first = page(path)

    nothing = page(path, where="after", cursor=first.after)
    with path.open("ab") as file:
        file.write(json.dumps(result("c1")).encode() + b"\n" + b'{"type":"assis')
    more = page(path, where="after", cursor=nothing.after)
    with path.open("ab") as file:
        rest = json.dumps(answer("m2", text("done"))).encode()
        file.write(rest.removeprefix(b'{"type": "assis').removeprefix(b'{"type":"assis'))
    last = page(path, where="after", cursor=more.after)

    assert (nothing.turns, nothing.at_end) == ((), True)
    assert [(turn.kind, turn.key) for turn in more.turns] == [("answer", "b82"), ("results", "r292")]
    assert first.turns[-1].key == "b82"
    assert more.resent == 1
    assert more.end < path.stat().st_size
    assert last.at_end


def test_a_follower_too_far_behind_gets_the_end_and_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", prompt("go"))
    first = page(path)
    with path.open("ab") as file:
        for n in range(9000):
            file.write(json.dumps(prompt(f"{n} " + "x" * 1000, n)).encode() + b"\n")

    late = page(path, where="after", cursor=first.after)

    assert (late.gap, late.at_end) == (True, True)
    assert late.start > 0


def test_a_line_too_large_to_read_blocks_no_way(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps(prompt("first")).encode() + b"\n")
        file.write(b'{"type":"user","message":"')
        for _ in range(MAX_LINE // (1 << 20) + 1):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n' + json.dumps(prompt("last")).encode() + b"\n")

    pages = backwards(path, None, 4096)

    assert [turn.text for turn in join(pages)] == ["first", "last"]
    assert any(one.blocked for one in pages)
    assert [one.end for one in pages[:-1]] == [other.start for other in pages[1:]]


def test_a_page_around_a_turn_holds_it(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *(prompt(f"{n} " + "x" * 500, n) for n in range(200)))
    wanted = read(path).turns[100]

    shown = page(path, where="around", cursor=wanted.key, window=8192)

    keys = [turn.key for turn in shown.turns]
    assert wanted.key in keys
    assert 0 < keys.index(wanted.key) < len(keys) - 1


@settings(max_examples=40)
@given(LINES)
def test_the_page_around_any_turn_of_the_whole_holds_it(tmp_path: Path, lines: list[Any]) -> None:
    path = write(tmp_path / "any.jsonl", prompt("begin"), *lines)

    for turn in read(path, cap=CAP).turns:
        assert turn.key in {one.key for one in page(path, where="around", cursor=turn.key, window=4096).turns}


def test_the_page_around_a_result_that_was_given_twice_holds_it(tmp_path: Path) -> None:
    block = {"type": "tool_result", "tool_use_id": "c1", "content": "done, otherwise"}
    between = [prompt(f"{n} " + "x" * 500, n) for n in range(200)]
    again = {**result("c1"), "message": {"content": [block]}}
    twice = [answer("m2", text("Again."), call("c1")), again]
    path = write(tmp_path / "s.jsonl", answer("m1", call("c1")), result("c1"), *between, *twice, *between)
    wanted = next(turn for turn in read(path).turns if turn.kind == "meta")

    shown = page(path, where="around", cursor=wanted.key, window=8192)

    assert wanted.key in {turn.key for turn in shown.turns}


def test_a_block_is_cut_to_its_cap_and_says_how_much_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", prompt("a" * 25_000))

    block = page(path).turns[0].blocks[0]

    assert (len(block["text"]), block["more"]) == (20_000, {"characters": 5000})
    assert len(read(path).turns[0].text) == 25_000


@pytest.mark.parametrize("cursor", ["", "x", "b", "b-1", "b1~~~x", "\u0661", "b" + "9" * 40])
def test_a_cursor_that_is_none_is_refused(tmp_path: Path, cursor: str) -> None:
    path = write(tmp_path / "s.jsonl", prompt("go"))

    with pytest.raises(ConfigError, match="no cursor"):
        page(path, where="before", cursor=cursor)


def test_pages_that_do_not_abut_are_not_joined(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *(prompt(f"{n} " + "x" * 900, n) for n in range(40)))
    pages = forwards(path, None, 8192)

    with pytest.raises(ConfigError, match="do not abut"):
        join([pages[0], pages[2]])


def test_a_page_goes_through_a_pipe_unchanged_and_costs_little_beside_its_turns(tmp_path: Path) -> None:
    spoken = [(prompt("go", n), answer(f"m{n}", call(f"c{n}")), result(f"c{n}")) for n in range(50)]
    shown = page(write(tmp_path / "one.jsonl", *(line for lines in spoken for line in lines)))

    sent = pickle.dumps(shown, protocol=pickle.HIGHEST_PROTOCOL)
    received = pickle.loads(sent)

    assert received == shown
    assert join([received]) == shown.turns
    assert len(shown.pieces) == 150
    assert len(sent) - len(pickle.dumps(shown.turns, protocol=pickle.HIGHEST_PROTOCOL)) < 150 * 90
