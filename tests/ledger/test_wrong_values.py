"""Good JSON that says what nobody wrote: one value of another type, anywhere in a session, stops nothing and is named."""

import copy
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mutations import sessions_of

from harness.errors import SessionDamaged
from harness.messages import Msg
from harness.models.replay import for_provider
from harness.models.tokens import estimate_tokens
from harness.sessions.catalog.branching import branches_of
from harness.sessions.catalog.index import info_of_ledger
from harness.sessions.catalog.search import search_ledger
from harness.sessions.catalog.usage import report_of, requests_in
from harness.sessions.checking.findings import VerifyReport
from harness.sessions.checking.verify import verify_bytes
from harness.sessions.ledger.conversation import Conversation
from harness.sessions.ledger.reading import Loaded, active_path, scan
from harness.sessions.lines.entries import START, digest
from harness.sessions.view.cards import turn_card
from harness.sessions.view.turn_ends import newest_end
from harness.sessions.view.turns import newest_boundary

Way = tuple[str | int, ...]
OTHERS: tuple[Any, ...] = (None, 5, [], {}, True, [None])
READ = {"parentId", "requestId", "turnId"}
"""Keys of the envelope that readers rely on, beside the type and the id."""


def ways(value: Any, before: Way = ()) -> Iterator[Way]:
    """The way to each value in an object; of the items of a list the first alone."""
    named = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, part in named:
        yield (*before, key)
        yield from ways(part, (*before, key))


def retyped(entry: dict[str, Any], way: Way, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(entry)
    place: Any = changed
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    return changed


def cases(lines: list[bytes]) -> Iterator[tuple[int, Way]]:
    """Each field of each type of line, once; the header is refused by name where it is another's."""
    seen = set()
    for number, raw in enumerate(lines):
        entry = json.loads(raw)
        for way in ways(entry):
            about = (entry["type"], entry.get("via"), way)
            if number and about not in seen and way not in (("seq",), ("prevHash",)):
                seen.add(about)
                yield number, way


def linked(lines: list[bytes], number: int, entry: dict[str, Any]) -> bytes:
    """The ledger with this line in the place of another, every link right again."""
    out = lines[:number]
    for each in [entry, *map(json.loads, lines[number + 1 :])]:
        out.append(
            json.dumps({**each, "prevHash": digest(out[-1])}, separators=(",", ":"), ensure_ascii=False).encode()
        )
    return b"".join(line + b"\n" for line in out)


def read_in_every_way(raw: bytes, path: Path) -> None:
    """What list, search, usage, branches, fork and a call make of a ledger, without the files around it."""
    path.write_bytes(raw)
    entries, _, _ = scan(raw, START)
    for entry in entries:
        if isinstance(message := entry.data.get("message"), dict):
            json.dumps(message)
    info_of_ledger("s", path)
    search_ledger("s", entries, ("turn",))
    report_of(requests_in("s", (entry.data for entry in entries), lambda *_: None))
    branches_of(entries)
    whole = active_path(entries, damaged=True) or []
    newest_end(whole)
    talk = Conversation()
    talk.reset(Loaded(path=whole))
    talk.keys()
    view = talk.view()
    assert newest_boundary(whole) is None or view.messages
    for message in for_provider(view.messages, "test", "other"):
        Msg.from_dict(message)
        estimate_tokens(message)
    for turn in view.turns:
        turn_card(turn, "completed")


def test_any_value_of_any_line_may_have_any_type_and_every_reader_goes_on(ledger, tmp_path: Path) -> None:
    lines, _ = ledger
    done = 0
    for (number, way), value in itertools.product(list(cases(lines)), OTHERS):
        changed = retyped(json.loads(lines[number]), way, value)
        raw = b"\n".join([*lines[:number], json.dumps(changed).encode(), *lines[number + 1 :], b""])
        try:
            read_in_every_way(raw, tmp_path / "s.log.jsonl")
        except Exception as error:
            error.add_note(f"line {number + 1}, {changed['type']}, {way} = {value!r}")
            raise
        done += 1
    assert done > 600


def test_verify_names_every_value_that_readers_step_over_though_all_links_are_right(ledger) -> None:
    lines, _ = ledger
    stepped_over = 0
    for (number, way), value in zip(cases(lines), itertools.cycle(OTHERS), strict=False):
        part = lines[: number + 2]
        raw = linked(part, number, retyped(json.loads(lines[number]), way, value))
        if len(scan(raw, START)[0]) < len(part):
            stepped_over += 1
            assert ("edited", number + 1) in {
                (each.kind, each.line) for each in verify_bytes([raw], None) if each.error
            }
    assert stepped_over > 40


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("message", "model"), []),
        (("message", "usage"), {"output": None}),
        (("message", "content"), 5),
        (("message", "content"), True),
        (("message", "content"), [None]),
        (("message", "id"), 7),
        (("message", "stop"), {}),
        (("message", "meta"), "x"),
        (("message",), "x"),
        (("requestId",), []),
        (("parentId",), []),
        (("turnId",), {}),
        (("message", "content", 0, "text"), 5),
        (("message", "content", 0, "type"), "toolUse"),
        (("message", "name"), {"stored": {"sha256": "a" * 64, "bytes": 3}}),
    ],
    ids=str,
)
async def test_a_session_with_one_wrong_value_goes_on_and_hides_no_other(
    original: Path, conversation, new_process, tmp_path: Path, way: Way, value: Any
) -> None:
    new_process()
    shutil.copytree(original, tmp_path / "w")
    path = sessions_of(tmp_path / "w") / "s.log.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1]
    entries = [json.loads(line) for line in lines]
    number = max(i for i, entry in enumerate(entries) if entry["type"] == "message" and entry["via"] == "model")
    path.write_bytes(linked(lines, number, retyped(entries[number], way, value)))
    (path.parent / "sessions.json").unlink(missing_ok=True)
    async with conversation.build(tmp_path / "w") as agent:
        sessions = agent.sessions("alice")
        await agent.call("turn 0 plain", conversation.context_of("other"))
        assert [info.id for info in await sessions.list()] == ["other", "s"]
        assert (await sessions.usage()).billed.requests > 1
        assert {hit.session_id for hit in await sessions.search("turn")} == {"other", "s"}
        first: VerifyReport = await sessions.verify("s")
        assert not first.ok
        await sessions.repair("s")
        for _ in range(2):
            reply = await agent.call("turn 8 plain", conversation.context_of("s"))
            assert reply.text
        assert len(await sessions.history("s", 1000)) > 10


async def test_a_bundle_whose_lines_say_what_no_line_can_say_is_refused(
    original: Path, conversation, new_process, tmp_path: Path
) -> None:
    new_process()
    shutil.copytree(original, tmp_path / "w")
    path = sessions_of(tmp_path / "w") / "s.log.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1]
    number = next(i for i, line in enumerate(lines) if b'"via":"model"' in line)
    path.write_bytes(linked(lines, number, retyped(json.loads(lines[number]), ("message", "model"), [])))
    async with conversation.build(tmp_path / "w") as agent:
        await agent.sessions("alice").repair("s")
        await agent.sessions("alice").export("s", tmp_path / "s.zip")
    async with conversation.build(tmp_path / "elsewhere") as agent:
        with pytest.raises(SessionDamaged, match=r"edited: its message\.model"):
            await agent.sessions("alice").import_session(tmp_path / "s.zip")


async def test_a_message_of_a_snapshot_that_is_none_is_not_taken_in(
    original: Path, conversation, new_process, tmp_path: Path
) -> None:
    new_process()
    shutil.copytree(original, tmp_path / "w")
    folder = sessions_of(tmp_path / "w")
    stored = next(folder.parent.glob("context/s/memory_messages.jsonl"))
    first, *rest = stored.read_bytes().split(b"\n")
    stored.write_bytes(b"\n".join([first, b'{"id":"x","role":"user","content":5}', *rest]))
    for path in folder.glob("s.*"):
        path.unlink()
    async with conversation.build(tmp_path / "w") as agent:
        assert (await agent.call("turn 8 plain", conversation.context_of("s"))).text
        assert "x" not in [message.id for message in await agent.sessions("alice").history("s", 1000)]


@pytest.mark.parametrize("how", ["missing", "a folder", "other bytes", "no blocks"])
async def test_a_content_that_cannot_be_read_is_damage_and_the_session_goes_on(
    original: Path, conversation, new_process, tmp_path: Path, how: str
) -> None:
    new_process()
    shutil.copytree(original, tmp_path / "w")
    for path in (sessions_of(tmp_path / "w") / "files").glob("??/*"):
        path.unlink()
        if how == "a folder":
            path.mkdir()
        elif how != "missing":
            path.write_bytes(b"[5]" if how == "no blocks" else b"other")
    async with conversation.build(tmp_path / "w") as agent:
        sessions = agent.sessions("alice")
        assert not (await sessions.verify("s")).ok
        for _ in range(2):
            assert (await agent.call("turn 8 plain", conversation.context_of("s"))).text
        assert await sessions.history("s", 1000)
        assert not (await sessions.repair("s")).ok
