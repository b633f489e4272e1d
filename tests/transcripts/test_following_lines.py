"""Later lines change what earlier ones say: who follows has what a new reader gets, however the file grows."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from follower import Follower, told_anew

from harness.errors import TranscriptRefused
from harness.transcripts import Turn, page, read

Batch = list[dict[str, Any]]
WINDOW = 128 * 1024


def grow(path: Path, lines: Batch) -> None:
    with path.open("ab") as end:
        end.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def same(turn: Turn) -> Turn:
    """A turn without its line's number, which a page in the middle of a file cannot know."""
    return turn._replace(line=0)


def shown(turns: dict[str, Turn]) -> list[Turn]:
    return [same(turn) for turn in turns.values()]


def prompt(text: str, number: int, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": f"u{number}", "sessionId": "s", "message": {"content": text}, **more}


def answer(key: str, *content: dict[str, Any], uuid: str = "") -> dict[str, Any]:
    return {
        "type": "assistant",
        "uuid": uuid or f"a{key}",
        "sessionId": "s",
        "message": {"id": key, "content": content},
    }


def call(number: int) -> dict[str, Any]:
    return answer(f"m{number}", {"type": "tool_use", "id": f"c{number}", "name": "run", "input": {}})


def said(text: str, key: str, uuid: str = "") -> dict[str, Any]:
    return answer(key, {"type": "text", "text": text}, uuid=uuid)


def result(number: int) -> dict[str, Any]:
    return prompt([{"type": "tool_result", "tool_use_id": f"c{number}", "content": "done"}], 100 + number)  # type: ignore[arg-type]


def queue(operation: str, content: str | None = None) -> dict[str, Any]:
    told = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, "sessionId": "s", **told}


def taken(text: str) -> dict[str, Any]:
    command = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
    return {"type": "attachment", "uuid": "x", "sessionId": "s", "attachment": command}


BEGIN = [prompt("go", 1), call(1)]
CLAUDE: dict[str, list[Batch]] = {
    "a prompt waits and is said by a person's line": [
        [queue("enqueue", "next")],
        [result(1)],
        [queue("dequeue")],
        [prompt("next", 2), said("ok", "m9")],
    ],
    "a prompt waits and is taken in the middle": [
        [queue("enqueue", "next")],
        [taken("next")],
        [result(1), said("ok", "m9")],
    ],
    "a prompt waits and is withdrawn": [[queue("enqueue", "next")], [queue("popAll", "next")], [result(1)]],
    "a prompt waits, another is said, then the same words": [
        [queue("enqueue", "later")],
        [result(1), said("ok", "m2")],
        [prompt("another", 3), said("fine", "m3")],
        [prompt("later", 4)],
    ],
    "a result comes two prompts later": [
        [prompt("more", 2), said("x", "m5")],
        [prompt("and", 3), said("y", "m6")],
        [result(1)],
    ],
    "a message is taken up again": [
        [result(1), said("part 1", "mm")],
        [prompt("more", 2), said("other", "m2")],
        [said("part 2", "mm", "again")],
    ],
    "the last word is not the last": [[result(1), said("one", "m2")], [said("two", "m3")], [said("three", "m4")]],
}


@pytest.mark.parametrize("story", list(CLAUDE))
def test_who_follows_claude_code_has_what_a_new_reader_gets(tmp_path: Path, story: str) -> None:
    path = tmp_path / "s.jsonl"
    grow(path, BEGIN)
    follower = Follower(path)

    for batch in CLAUDE[story]:
        grow(path, batch)
        assert not follower.look().gap
        assert shown(follower.turns) == shown(told_anew(path))


LINES = st.one_of(
    st.builds(lambda n: prompt(f"say {n}", n), st.integers(0, 5)),
    st.builds(lambda n: prompt(f"side {n}", 50 + n, isSidechain=True), st.integers(0, 3)),
    st.builds(lambda n, m: said(f"word {n}", f"m{n}", f"{m}"), st.integers(0, 5), st.integers(0, 99)),
    st.builds(call, st.integers(0, 5)),
    st.builds(result, st.integers(0, 5)),
    st.builds(lambda n: queue("enqueue", f"say {n}"), st.integers(0, 5)),
    st.builds(lambda n: queue("popAll", f"say {n}"), st.integers(0, 5)),
    st.builds(lambda n: taken(f"say {n}"), st.integers(0, 5)),
    st.just(queue("dequeue")),
)


@settings(max_examples=40)
@given(st.lists(st.lists(LINES, min_size=1, max_size=4), min_size=2, max_size=8))
def test_any_lines_of_claude_code_are_followed_to_what_they_are(tmp_path: Path, batches: list[Batch]) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"")
    grow(path, [prompt("begin", 99)])
    follower = Follower(path)

    for batch in batches:
        grow(path, batch)
        follower.look()
        assert shown(follower.turns) == shown(told_anew(path, follower.start))


# A line that says nothing of an earlier one is only known for its second half where both are in a window.
POINTING = [story for story in CLAUDE if story != "a message is taken up again"]


@pytest.mark.parametrize("story", POINTING)
def test_much_between_the_two_lines_hides_neither_from_a_follower(tmp_path: Path, story: str) -> None:
    path = tmp_path / "s.jsonl"
    grow(path, [prompt("before", 0), said("all", "m0"), *BEGIN])
    follower = Follower(path, window=4096)

    for batch in CLAUDE[story]:
        grow(path, batch)
        follower.look()
        grow(path, [{"type": "progress", "uuid": "p", "sessionId": "s", "data": "x" * 3000}])
        follower.look()

    assert shown(follower.turns) == shown(told_anew(path, follower.start))


def event(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:01Z", "type": "event_msg", "payload": payload}


def item(role: str, text: str) -> dict[str, Any]:
    kind = "input_text" if role == "user" else "output_text"
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"timestamp": "2026-01-01T00:00:01Z", "type": "response_item", "payload": payload}


def test_what_codex_shows_before_it_is_an_item_is_not_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-01-01T00-00-00-c1.jsonl"
    meta = {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "c1", "cwd": "/w"}}
    grow(path, [meta, event(type="task_started"), event(type="user_message", message="hello")])
    follower = Follower(path)
    assert list(follower.texts.values()) == ["hello"]

    for batch in ([item("user", "hello")], [event(type="agent_message", message="hi")], [item("assistant", "hi")]):
        grow(path, batch)
        follower.look()
        assert shown(follower.turns) == shown(told_anew(path))

    assert list(follower.texts.values()) == ["hello", "hi"]


def test_the_summary_of_a_penguin_is_one_whenever_somebody_looks(tmp_path: Path) -> None:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-01-01T00:00:01Z", "type": kind, "payload": payload}

    path = tmp_path / "session-a_001.jsonl"
    text = {"type": "text", "role": "user", "text": "go"}
    begin = [line("session_meta", session_id="a", workspace="/w"), line("model_msg", **text)]
    grow(path, [*begin, line("event_msg", type="request_begin"), line("event_msg", type="compaction_begin")])
    follower = Follower(path, window=4096)

    for batch in (
        [line("model_msg", type="text", role="assistant", text="what was said")],
        [line("model_msg", type="text", role="user", text="x" * 6000), line("event_msg", type="compaction_end")],
        [line("model_msg", **text), line("event_msg", type="request_begin")],
    ):
        grow(path, batch)
        follower.look()
        assert shown(follower.turns) == shown(told_anew(path, follower.start))

    assert [turn.kind for turn in follower.turns.values()] == ["prompt", "compaction", "context", "prompt"]


def pieces(raw: bytes, chance: random.Random) -> list[bytes]:
    """A file in pieces of all sizes, cut anywhere."""
    found, at = [], 0
    while at < len(raw):
        size = chance.choice((chance.randint(1, 300), chance.randint(300, 5000), chance.randint(1, len(raw) // 10 + 2)))
        found.append(raw[at : at + size])
        at += size
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["claude", "codex", "gemini", "openclaw", "penguin", "pi", "sts"])
def test_a_real_trace_that_grows_in_any_pieces_is_followed_to_what_it_is(
    shared: Path, tmp_path: Path, kind: str
) -> None:
    files = [path for path in (shared / "traces" / kind).rglob("*.jsonl") if path.stat().st_size < 4_000_000]
    assert files
    for number, source in enumerate(sorted(files)):
        raw = source.read_bytes()
        head = len(b"".join(raw.splitlines(keepends=True)[:12]))
        path = tmp_path / str(number) / source.name
        path.parent.mkdir()
        path.write_bytes(raw[:head])
        try:
            follower = Follower(path, WINDOW)
        except TranscriptRefused:
            continue  # a damaged file, not to be told from others by its head
        for piece in pieces(raw[head:], random.Random(source.name)):
            with path.open("ab") as end:
                end.write(piece)
            follower.look()
        assert shown(follower.turns) == shown(told_anew(path, follower.start)), source.name


@pytest.mark.parametrize("window", [4096, 8192, 32_768, WINDOW])
@pytest.mark.parametrize("takes", ["attachment", "line"])
def test_no_page_ends_between_the_two_lines_of_a_prompt_that_waited(tmp_path: Path, window: int, takes: str) -> None:
    path = tmp_path / "s.jsonl"
    for n in range(0, 120, 2):
        grow(path, [prompt(f"go {n} " + "lorem " * 100, n), call(n), queue("enqueue", f"wait {n}"), result(n)])
        later = [taken(f"wait {n}")] if takes == "attachment" else [queue("dequeue"), prompt(f"wait {n}", n + 1)]
        grow(path, [*later, said("ok " * 200, f"x{n}")])

    whole = [turn.key for turn in read(path).turns]
    back, on = [page(path, window=window)], [page(path, where="head", window=window)]
    while (cursor := back[-1].before) is not None:
        back.append(page(path, where="before", cursor=cursor, window=window))
    while not on[-1].at_end:
        on.append(page(path, where="after", cursor=on[-1].after, window=window))

    assert [turn.key for each in reversed(back) for turn in each.turns] == whole
    assert [turn.key for each in on for turn in each.turns] == whole


def test_a_prompt_that_nobody_took_holds_no_page_together(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    grow(path, [prompt("go", 0), queue("enqueue", "never taken"), said("ok", "m0")])
    for n in range(1, 200):
        grow(path, [prompt(f"go {n} " + "x" * 500, n), said("ok " * 100, f"m{n}")])

    first = page(path, where="head", window=8192)

    assert first.end < 20_000
    assert not first.split


# As Claude Code writes them: what is taken from the queue stands behind a `dequeue`, or in an attachment.
QUEUED = st.integers(0, 2).flatmap(
    lambda n: st.sampled_from(
        [
            [queue("enqueue", f"say {n}")],
            [queue("dequeue"), prompt(f"say {n}", n)],
            [taken(f"say {n}")],
            [queue("popAll", f"say {n}")],
            [prompt("another", 9), prompt(f"say {n}", n)],
            [prompt("[Request interrupted by user]", 8)],
        ]
    )
)


@settings(max_examples=60)
@given(st.lists(QUEUED, max_size=30))
def test_each_page_shows_of_any_queue_what_the_whole_does(tmp_path: Path, batches: list[Batch]) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"")
    fill = {"type": "progress", "uuid": "p", "sessionId": "s", "data": "x" * 900}
    grow(path, [prompt("begin", 99), *(line for batch in batches for each in batch for line in (each, fill))])
    pages = [page(path, window=4096)]
    while (cursor := pages[-1].before) is not None:
        pages.append(page(path, where="before", cursor=cursor, window=4096))

    told = [(turn.key, turn.kind) for each in reversed(pages) for turn in each.turns]

    assert told == [(turn.key, turn.kind) for turn in read(path).turns]


@pytest.mark.parametrize("between", [0, 100_000, 1_000_000])
@pytest.mark.parametrize("window", [4096, WINDOW])
def test_a_message_goes_on_however_large_the_results_are_that_stand_in_between(
    tmp_path: Path, window: int, between: int
) -> None:
    path = tmp_path / "s.jsonl"
    large = {"type": "tool_result", "tool_use_id": "c1", "content": "x" * between}
    grow(path, [prompt("before", 0), said("all", "m0"), prompt("go", 1), call(1)])
    follower = Follower(path, window=window)

    for batch in ([prompt([large], 101)], [said("and on", "m1", "again")], [said("the end", "m2")]):  # type: ignore[arg-type]
        grow(path, batch)
        follower.look()
        assert shown(follower.turns) == shown(told_anew(path, follower.start))

    pages = [page(path, window=window)]
    while (cursor := pages[-1].before) is not None:
        pages.append(page(path, where="before", cursor=cursor, window=window))
    assert [turn.key for each in reversed(pages) for turn in each.turns] == [turn.key for turn in read(path).turns]
