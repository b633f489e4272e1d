"""Files in every state: what is refused, what is skipped, what is said about it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigError, FileMissing, TranscriptRefused
from harness.transcripts import read

HELLO = {"type": "user", "uuid": "u1", "sessionId": "s", "message": {"role": "user", "content": "Hello"}}
CLAUDE = [
    HELLO,
    {
        "type": "assistant",
        "uuid": "u2",
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {
            "id": "m1",
            "model": "claude-x",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}},
            ],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
    },
    {
        "type": "user",
        "uuid": "u3",
        "sessionId": "s",
        "message": {
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "ok"}]}]
        },
    },
]
CODEX = [
    {"type": "session_meta", "payload": {"id": "s", "source": {"subagent": {}}}},
    {"type": "turn_context", "payload": {"model": "gpt-x"}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"text": "Hello"}]}},
    {"type": "response_item", "payload": {"type": "reasoning", "summary": [{"text": "t"}], "encrypted_content": "e"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "ok"}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": {"output_tokens": 1}}}},
]
ODD: list[Any] = [None, 7, -1.5, True, "text", [], [1], {}, {"type": []}, [[]], {"type": "text"}]


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value but its top."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, member in members for place in ((*here, key), *paths(member, (*here, key)))]


def changed(lines: list[Any], place: tuple[Any, ...], value: Any) -> list[Any]:
    copy = json.loads(json.dumps(lines))
    holder = copy
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return list(copy)


def write(path: Path, *lines: Any) -> Path:
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(raw))
    return path


@pytest.mark.parametrize("lines", [CLAUDE, CODEX], ids=["claude", "codex"])
def test_any_field_may_be_of_any_type(tmp_path: Path, lines: list[Any]) -> None:
    path = tmp_path / "odd.jsonl"

    for place in paths(lines):
        for odd in ODD:
            # The good lines in front tell the format, so that the odd one is read and not refused.
            write(path, *lines[:3], *changed(lines, place, odd))
            transcript = read(path)
            assert transcript.stats()["lines"] == 3 + len(lines)
            json.dumps([turn.message for turn in transcript.turns])


@given(st.binary(max_size=200))
def test_any_bytes_between_two_good_lines_cost_neither(tmp_path: Path, noise: bytes) -> None:
    second = {**HELLO, "uuid": "u2", "message": {"role": "user", "content": "Bye"}}

    transcript = read(write(tmp_path / "noise.jsonl", HELLO, noise, second))

    texts = [turn.text for turn in transcript.turns if turn.kind == "prompt"]
    assert (texts[0], texts[-1]) == ("Hello", "Bye")


def test_damage_is_counted_and_located(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", HELLO, b'{"type":"us', b"", b"\0\0\0", b"42", b"\xff\xfe\xfd", HELLO)

    transcript = read(path)

    assert transcript.stats()["bad_lines"] == 4
    assert [(warning.kind, warning.line) for warning in transcript.warnings] == [
        *(("bad_line", 2), ("bad_line", 4), ("not_a_record", 5), ("bad_line", 6))
    ]


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\u0085", "\r", "\x0b"])
def test_lines_end_at_the_newline_byte_only(tmp_path: Path, end: str) -> None:
    line = {**HELLO, "message": {"role": "user", "content": f"one{end}two"}}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8", newline="")

    transcript = read(path)

    assert transcript.turns[0].text == f"one{end}two"


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"SQLite format 3\0", b'{"type":"session","version":3}', b'{"type":"user"}', b"[]", b'{"a":1}'],
)
def test_other_formats_are_refused_by_a_sentence_that_names_the_known_ones(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)

    with pytest.raises(
        TranscriptRefused, match=r"other\.jsonl is no transcript .*: .*claude, codex, gemini"
    ) as refused:
        read(path)
    assert refused.value.code == "unknown_format"


def test_a_file_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        read(tmp_path / "none.jsonl")


def test_a_session_that_is_not_in_the_file_is_refused_and_the_one_that_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "abc.jsonl", HELLO)

    assert read(path, "abc").session_id == "abc"
    with pytest.raises(ConfigError, match="holds no session 'xyz'; name one of those it holds:\n  abc "):
        read(path, "xyz")


def test_a_file_without_a_message_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"type": "summary", "summary": "x", "leafUuid": "y", "sessionId": "s"})

    assert [(warning.kind, warning.line) for warning in read(path).warnings] == [("no_messages", 0)]


def test_an_integer_that_a_float_would_round_keeps_its_digits(tmp_path: Path) -> None:
    raw = b'{"type":"assistant","uuid":"u","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"f",'
    raw += b'"input":{"small":18446744073709551615,"big":18446744073709551616}}]}}'

    transcript = read(write(tmp_path / "a.jsonl", raw))

    assert transcript.turns[0].blocks[0]["input"] == {"small": 18446744073709551615, "big": "18446744073709551616"}
    assert [warning.kind for warning in transcript.warnings] == ["altered"]
