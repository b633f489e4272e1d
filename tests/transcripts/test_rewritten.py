"""A file that is written anew while somebody follows it: what they have is not so any more, and they are told."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.transcripts import Page, join, page, read


def session(name: str, count: int) -> bytes:
    lines = []
    for n in range(count):
        told = {"sessionId": "s1", "timestamp": "2026-01-01T00:00:00.000Z"}
        said = {"type": "user", "uuid": f"u{name}{n}", "message": {"role": "user", "content": f"{name} {n}"}, **told}
        content = [{"type": "text", "text": f"{name} answer {n}"}]
        message = {"id": f"m{name}{n}", "role": "assistant", "model": "claude-x", "content": content}
        lines += [said, {"type": "assistant", "uuid": f"a{name}{n}", "message": message, **told}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def in_place(path: Path) -> None:
    path.write_bytes(session("NEW", 12))


def same_size(path: Path) -> None:
    path.write_bytes(session("NEW", 10))
    os.utime(path, (1_700_000_000, 1_700_000_000))


def another_file(path: Path) -> None:
    (path.parent / "t").write_bytes(session("OLD", 12))
    os.replace(path.parent / "t", path)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("change", [in_place, same_size, another_file, cut])
def test_who_follows_a_file_that_was_written_anew_begins_anew(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session("OLD", 10))
    known = page(path)

    change(path)
    found = page(path, where="after", cursor=known.after)

    assert found.gap
    assert [turn.text for turn in found.turns] == [turn.text for turn in page(path).turns]


def test_who_follows_a_file_that_grew_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session("OLD", 10))
    known = page(path)

    with path.open("ab") as file:
        file.write(session("MORE", 1))
    found = page(path, where="after", cursor=known.after)

    assert not found.gap
    assert [turn.text for turn in found.turns][found.resent :] == ["MORE 0", "MORE answer 0"]


def rollout(kind: str, minute: int, **payload: object) -> bytes:
    at = f"2026-08-03T10:{minute:02}:00.000Z"
    return json.dumps({"timestamp": at, "type": kind, "payload": payload}).encode() + b"\n"


def windows(path: Path) -> list[Page]:
    found = [page(path, where="head", window=4096)]
    while not found[-1].at_end:
        found.append(page(path, where="after", cursor=found[-1].after, window=4096))
    return found


def test_a_rollout_that_is_resumed_as_a_fork_reads_alike_in_windows_and_whole(tmp_path: Path) -> None:
    lines = [rollout("session_meta", 0, id="one")]
    for n in range(1, 40):
        asked = [{"type": "input_text", "text": f"prompt {n} " + "x" * 400}]
        lines.append(rollout("response_item", n, type="message", role="user", content=asked))
        answered = [{"type": "output_text", "text": f"answer {n}"}]
        lines.append(rollout("response_item", n, type="message", role="assistant", content=answered))
        spent = {"input_tokens": 10 * n, "output_tokens": n}
        info = {"total_token_usage": spent, "last_token_usage": {"input_tokens": 10, "output_tokens": 1}}
        lines.append(rollout("event_msg", n, type="token_count", info=info))
        if n in (15, 30):
            lines.append(rollout("session_meta", n, id="two", forked_from_id="one"))
    path = tmp_path / "rollout-a.jsonl"
    path.write_bytes(b"".join(lines))

    found = windows(path)

    assert len(found) > 2
    assert join(found) == read(path, cap=20_000).turns
    assert all("usage" in turn.message for turn in join(found) if turn.kind == "answer")
