"""Ten thousand random changes of a ledger at rest: each is reported, the rest is read, the next call works."""

import logging
import random
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutations import KINDS, sessions_of

from harness.sessions import SessionTree, verify_bytes
from harness.sessions.anchor import encode_anchor
from harness.sessions.entries import START
from harness.sessions.reading import scan
from harness.text import loads

EACH = 1000
EACH_WITH_A_CALL = 20


def test_the_ledger_is_whole_before(ledger):
    lines, anchor = ledger
    assert len(lines) > 60
    assert {loads(line)["type"] for line in lines} >= {"header", "message", "binding", "compaction", "state"}
    assert verify_bytes([b"\n".join(lines) + b"\n"], anchor) == []


@pytest.mark.slow
@pytest.mark.parametrize("mutate", KINDS, ids=lambda kind: kind.__name__)
def test_every_mutation_is_reported_and_every_line_that_is_left_is_read(ledger, mutate):
    lines, anchor = ledger
    chance = random.Random(mutate.__name__)
    whole = b"\n".join(lines) + b"\n"
    ids = {line: loads(line)["id"] for line in lines}
    done = 0
    while done < EACH:
        data = mutate(chance, lines)
        if data == whole:  # two equal lines were swapped
            continue
        done += 1
        findings = verify_bytes([data], anchor)
        # What is put in behind the end may be the beginning of a line that was never finished.
        assert any(found.error or data.startswith(whole) for found in findings), data
        read = {entry.data["id"] for entry in scan(data, START)[0]}
        assert read >= {ids[line] for line in data.split(b"\n") if line in ids}


@pytest.mark.slow
@pytest.mark.parametrize("mutate", KINDS, ids=lambda kind: kind.__name__)
async def test_after_a_mutation_the_next_call_works_and_the_damage_stays_named(
    conversation, original, ledger, tmp_path, new_process, caplog, mutate
):
    caplog.set_level(logging.CRITICAL)
    lines, _ = ledger
    chance = random.Random(f"{mutate.__name__} and a call")
    for number in range(EACH_WITH_A_CALL):
        workspace = tmp_path / str(number)
        shutil.copytree(original, workspace)
        path = sessions_of(workspace) / "s.log.jsonl"
        damaged = mutate(chance, lines)
        path.write_bytes(damaged)
        if number % 2:
            shutil.rmtree(workspace / "tenants/alice/agents/crash/context")
        new_process()
        async with conversation.build(workspace) as agent:
            before = await agent.sessions("alice").verify("s")
            assert not before.ok
            prompt = f"turn {number} state, after the damage"
            reply = await agent.call(prompt, conversation.context_of("s"))
            assert reply.text
            assert path.read_bytes().startswith(damaged)
            history = await agent.sessions("alice").history("s", 4)
            assert [history[0].text, history[-1].text] == [prompt, reply.text]
            after = await agent.sessions("alice").verify("s")
            # What lies in the middle cannot be healed; a cut at the end is noted in the ledger, for ever.
            assert {found.kind for found in after.findings}, before.findings


async def test_a_small_tree_goes_on_behind_each_of_many_mutations(ledger, tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    lines, anchor = ledger
    chance = random.Random("a tree")
    block = encode_anchor(anchor)
    for number in range(300):
        folder = tmp_path / str(number)
        folder.mkdir()
        mutate = chance.choice(KINDS)
        (folder / "s.log.jsonl").write_bytes(mutate(chance, lines))
        (folder / "s.head.json").write_bytes(block)
        tree = SessionTree(folder, "s", agent="crash", namespace=("alice",), durability="none")
        async with tree.writing():
            message = {"id": "new", "role": "user", "content": [{"type": "text", "text": "still here"}]}
            tree.add_message(message, via="user")
        cold = SessionTree(folder, "s", agent="crash", namespace=("alice",))
        assert (await cold.load()).messages[-1]["id"] == "new"
        assert {found.kind for found in cold.damage} <= {"bad", "torn", "file", "header", "parent"}, (number, mutate)
