"""Ten thousand random changes of a ledger at rest: each is reported, the rest is read, the next call works."""

import logging
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutations import KINDS, Mutate, sessions_of

from harness.errors import NewerFormat
from harness.sessions import SessionTree, verify_bytes
from harness.sessions.checking.findings import Finding
from harness.sessions.ledger.reading import scan
from harness.sessions.lines.anchor import Anchor, encode_anchor, parse_anchor
from harness.sessions.lines.entries import START, parse_line
from harness.text import loads

EACH = int(os.environ.get("HARNESS_MUTATIONS", "1000"))
EACH_WITH_A_CALL = int(os.environ.get("HARNESS_MUTATION_CALLS", "20"))
"""Mutations of each of the ten kinds; set HARNESS_MUTATION_CALLS=1000 for an agent's call on ten thousand."""


def mutated(mutate: Mutate, lines: list[bytes], count: int) -> Iterator[bytes]:
    """The first mutations of a kind. Not those that changed nothing, or made the ledger one of a newer version."""
    chance = random.Random(mutate.__name__)
    whole = b"\n".join(lines) + b"\n"
    while count:
        data = mutate(chance, lines)
        if data == whole or says_newer(data):
            continue
        count -= 1
        yield data


def says_newer(data: bytes) -> bool:
    """Whether the first line is a header with a higher format; such a ledger is left alone, whoever changed it (B54)."""
    header = parse_line(data.partition(b"\n")[0])
    return bool(header and header["type"] == "header" and header.get("format", 1) > 1)


def test_the_ledger_is_whole_before(ledger):
    lines, anchor = ledger
    assert len(lines) > 60
    assert {loads(line)["type"] for line in lines} >= {"header", "message", "binding", "compaction", "state"}
    assert verify_bytes([b"\n".join(lines) + b"\n"], anchor) == []


@pytest.mark.slow
@pytest.mark.parametrize("mutate", KINDS, ids=lambda kind: kind.__name__)
async def test_every_mutation_is_reported_every_line_that_is_left_is_read_and_the_next_turn_is_kept(
    ledger, tmp_path, caplog, mutate
):
    caplog.set_level(logging.CRITICAL)
    lines, anchor = ledger
    whole = b"\n".join(lines) + b"\n"
    ids = {line: loads(line)["id"] for line in lines}
    for data in mutated(mutate, lines, EACH):
        before = verify_bytes([data], anchor)
        # What is put in behind the end may be the beginning of a line that was never finished.
        assert errors_of(before) or data.startswith(whole), data
        read = {entry.data["id"] for entry in scan(data, START)[0]}
        assert read >= {ids[line] for line in data.split(b"\n") if line in ids}
        after = await with_one_more_turn(tmp_path, data, anchor)
        assert errors_of(after) <= errors_of(before), data
        assert after or data == whole + b"\n", data


def errors_of(findings: list[Finding]) -> set[tuple[str, int]]:
    return {(found.kind, found.line) for found in findings if found.error}


async def with_one_more_turn(folder: Path, data: bytes, anchor: Anchor) -> list[Finding]:
    """What is found once the session has gone on, and was opened anew."""
    path, head = folder / "s.log.jsonl", folder / "s.head.json"
    path.write_bytes(data)
    head.write_bytes(encode_anchor(anchor))
    (folder / "s.jsonl").unlink(missing_ok=True)
    tree = SessionTree(folder, "s", agent="crash", namespace=("alice",), durability="none")
    async with tree.writing():
        message = {"id": "new", "role": "user", "content": [{"type": "text", "text": "still here"}]}
        tree.add_message(message, via="user")
    cold = SessionTree(folder, "s", agent="crash", namespace=("alice",))
    assert (await cold.load()).messages[-1]["id"] == "new"
    assert {found.kind for found in cold.damage} <= {"bad", "torn", "file", "header", "foreign", "parent"}, data
    written = path.read_bytes()
    assert written.startswith(data)
    return verify_bytes([written], parse_anchor(head.read_bytes()))


def bits_of_header(line: bytes) -> list[int]:
    """Every bit of what a reader checks, and every seventh of the rest."""
    checked = [*range(line.index(b'"format"'), line.index(b',"library"'))]
    checked += range(line.index(b'"session"'), line.index(b',"created"'))
    return sorted({bit for byte in checked for bit in range(byte * 8, byte * 8 + 8)} | {*range(0, len(line) * 8, 7)})


async def test_a_bit_flipped_in_the_header_stops_nobody(ledger, tmp_path, caplog):
    """It says whose the ledger is, so a damaged one looks like another's."""
    caplog.set_level(logging.CRITICAL)
    lines, anchor = ledger
    refused = 0
    for bit in bits_of_header(lines[0]):
        data = bytearray(b"\n".join(lines) + b"\n")
        data[bit // 8] ^= 1 << bit % 8
        if says_newer(bytes(data)):
            with pytest.raises(NewerFormat):
                await with_one_more_turn(tmp_path, bytes(data), anchor)
            refused += 1
        else:
            after = await with_one_more_turn(tmp_path, bytes(data), anchor)
            assert errors_of(after) & {("edited", 1), ("torn", 1), ("foreign", 1), ("foreign", 2)}, bytes(data)
    assert refused == 3  # format 3, 5 and 9


@pytest.mark.slow
@pytest.mark.parametrize("mutate", KINDS, ids=lambda kind: kind.__name__)
async def test_after_a_mutation_the_next_call_works_and_the_damage_stays_named(
    conversation, original, ledger, tmp_path, new_process, caplog, mutate
):
    caplog.set_level(logging.CRITICAL)
    lines, _ = ledger
    whole = b"\n".join(lines) + b"\n"
    for number, damaged in enumerate(mutated(mutate, lines, EACH_WITH_A_CALL)):
        workspace = tmp_path / str(number)
        shutil.copytree(original, workspace)
        path = sessions_of(workspace) / "s.log.jsonl"
        path.write_bytes(damaged)
        if number % 2:
            shutil.rmtree(workspace / "tenants/alice/agents/crash/context")
        new_process()
        async with conversation.build(workspace) as agent:
            before = await agent.sessions("alice").verify("s")
            assert not before.ok or damaged.startswith(whole)
            prompt = f"turn {number} state, after the damage"
            reply = await agent.call(prompt, conversation.context_of("s"))
            assert reply.text
            assert path.read_bytes().startswith(damaged)
            history = await agent.sessions("alice").history("s", 4)
            assert [history[0].text, history[-1].text] == [prompt, reply.text]
            after = await agent.sessions("alice").verify("s")
            # What lies in the middle cannot be healed; a cut at the end is noted in the ledger, for ever.
            assert after.findings or damaged == whole + b"\n", before.findings
