"""Hostile sessions: twice as many lines are twice the work, whatever stands in them."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from effort import lines_run

from harness.transcripts import find, page, read
from harness.transcripts.formats import gemini
from harness.transcripts.lines import Line

Record: TypeAlias = dict[str, Any]
TS = "2026-01-01T00:00:00.000Z"


def typed(number: int, content: object) -> Record:
    return {"type": "user", "uuid": f"u{number}", "sessionId": "s", "timestamp": TS, "message": {"content": content}}


def called(number: int) -> Record:
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
    message = {"id": f"m{number}", "role": "assistant", "content": [use]}
    return {"type": "assistant", "uuid": f"a{number}", "sessionId": "s", "timestamp": TS, "message": message}


def answered(number: int) -> Record:
    return typed(number, [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "r"}])


def open_calls(count: int) -> list[Record]:
    return [typed(0, "go"), *map(called, range(count))]


def late_results(count: int) -> list[Record]:
    return [typed(0, "go"), *map(called, range(count)), *map(answered, reversed(range(count)))]


def repeated_results(count: int) -> list[Record]:
    return [typed(0, "go"), called(0), *(answered(0) for _ in range(count))]


def lost_parents(count: int) -> list[Record]:
    message = {"role": "user", "content": "x"}
    fields = [{"id": f"e{n}", "parentId": f"gone{n}"} for n in range(count)]
    return [{"type": "message", **told, "timestamp": TS, "message": message} for told in fields]


def repeated_calls_in_one_line(count: int) -> list[Record]:
    made = called(0)
    made["message"]["content"] *= count
    return [typed(0, "go"), made]


def one_name_for_all_lines(count: int) -> list[Record]:
    texts = ({"type": "text", "text": f"{n:09}"} for n in range(count))
    return [{**called(0), "message": {"id": "m", "role": "assistant", "content": [text]}} for text in texts]


def branches(count: int) -> list[Record]:
    message = {"role": "user", "content": "x"}
    fields = [{"id": f"e{n}", "parentId": f"e{n // 2}" if n else None} for n in range(count)]
    return [{"type": "message", **told, "timestamp": TS, "message": message} for told in fields]


def steps_back(count: int) -> list[Record]:
    told = {"sessionId": "s", "projectHash": "p", "startTime": TS, "lastUpdated": TS, "kind": "main"}
    said = [{"id": f"g{n}", "timestamp": TS, "type": "user", "content": "x"} for n in range(count)]
    return [told, *said, *({"$rewindTo": f"g{n}"} for n in reversed(range(1, count)))]


def events(count: int) -> list[Record]:
    told = [{"type": "agent_reasoning", "text": f"same {n % 3}"} for n in range(count)]
    searched = [{"type": "web_search_call", "action": {"query": "q"}} for _ in range(count)]
    found = [{"type": "web_search_end", "call_id": f"w{n}", "query": "q"} for n in range(count)]
    lines = [("session_meta", {"id": "s"}), *(("event_msg", one) for one in (*told, *found))]
    lines += [("response_item", one) for one in searched]
    return [{"timestamp": TS, "type": kind, "payload": payload} for kind, payload in lines]


HOSTILE = [
    *(open_calls, late_results, repeated_results, repeated_calls_in_one_line, one_name_for_all_lines),
    *(lost_parents, branches, steps_back, events),
]


def written(path: Path, records: list[Record]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def ways(path: Path) -> dict[str, Callable[[], object]]:
    key = read(path).turns[0].key
    return {
        "read": lambda: read(path),
        "head": lambda: page(path, where="head", window=4096),
        "tail": lambda: page(path, window=4096),
        "around": lambda: page(path, where="around", cursor=key, window=4096),
        "find": lambda: find(path, None, "nowhere"),
    }


@pytest.mark.parametrize("made", HOSTILE)
def test_twice_as_many_lines_are_twice_the_work(tmp_path: Path, made: Callable[[int], list[Record]]) -> None:
    small, large = (written(tmp_path / f"{n}.jsonl", made(n)) for n in (300, 600))
    few, many = ways(small), ways(large)

    effort = {way: (lines_run(few[way]), lines_run(many[way])) for way in few}

    assert {way: counts for way, counts in effort.items() if counts[1] > 3 * counts[0]} == {}


def test_a_step_back_looks_only_at_what_it_takes_back(tmp_path: Path) -> None:
    messages = gemini._Messages(tmp_path / "s.jsonl")
    messages._found = Looked({f"g{n}": {} for n in range(1000)})

    messages.apply(Line(1, 0, b"", {}), {"$rewindTo": "g997"}, {})

    assert len(messages._found) == 997
    assert messages._found.steps == 0


class Looked(dict[str, Any]):
    """Counts the keys that somebody goes through."""

    steps = 0

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.steps += 1
            yield key
