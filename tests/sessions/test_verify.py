"""A changed, missing, doubled or moved line is named; a crash is told from tampering (case B55)."""

import asyncio
import hashlib
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sessions import SessionTree, verify_bytes, verify_chain
from harness.sessions.lines.anchor import read_anchor


def _lines(count=10, name="e"):
    """A ledger of lines linked by hand, as the format says."""
    lines: list[bytes] = []
    for number in range(1, count + 1):
        entry = {"type": "custom", "id": f"{name}{number}", "seq": number}
        if lines:
            entry["prevHash"] = hashlib.sha256(lines[-1]).hexdigest()
        lines.append(json.dumps(entry, separators=(",", ":")).encode())
    return lines


def _found(lines, end=b"\n"):
    return [(found.kind, found.line, found.error) for found in verify_chain(b"\n".join(lines) + end)]


def test_an_untouched_ledger_has_no_findings():
    assert _found(_lines()) == []


def test_an_edited_line_is_named_and_no_other():
    lines = _lines()
    lines[4] = lines[4].replace(b"custom", b"forged")
    assert _found(lines) == [("edited", 5, True)]


def test_every_one_of_three_edited_lines_is_named():
    lines = _lines()
    for line in (1, 4, 7):
        lines[line] = lines[line].replace(b"custom", b"forged")
    assert _found(lines) == [("edited", 2, True), ("edited", 5, True), ("edited", 8, True)]


def test_a_changed_number_is_an_edit_of_that_line():
    lines = _lines()
    lines[4] = lines[4].replace(b'"seq":5', b'"seq":7')
    assert ("edited", 5, True) in _found(lines)
    assert {line for _, line, _ in _found(lines)} == {5}


def test_a_changed_link_is_an_edit_of_that_line():
    lines = _lines()
    lines[4] = lines[4].replace(b'"prevHash":"', b'"prevHash":"0')
    assert ("edited", 5, True) in _found(lines)


def test_a_missing_line_is_a_gap_and_comparing_goes_on_behind_it():
    lines = _lines()
    lines[7] = lines[7].replace(b"custom", b"forged")
    del lines[4]
    assert _found(lines) == [("gap", 5, True), ("edited", 7, True)]


def test_the_first_lines_missing_is_a_gap_at_the_beginning():
    assert _found(_lines()[3:]) == [("gap", 1, True)]


def test_a_gap_says_which_lines_are_missing():
    lines = _lines()
    del lines[4:7]
    (found,) = verify_chain(b"\n".join(lines) + b"\n")
    assert found.text.startswith("lines 5 to 7 are missing before it")


def test_a_gap_of_one_line_says_so():
    lines = _lines()
    del lines[4]
    (found,) = verify_chain(b"\n".join(lines) + b"\n")
    assert found.text.startswith("line 5 is missing before it")


def test_swapped_lines_are_reordered():
    lines = _lines()
    lines[4], lines[5] = lines[5], lines[4]
    assert _found(lines) == [("reordered", 5, True)]


def test_a_line_moved_to_the_front_or_to_the_back_is_reordered():
    lines = _lines()
    lines.insert(2, lines.pop(7))
    assert [kind for kind, _, _ in _found(lines)] == ["reordered"]
    lines = _lines()
    lines.insert(7, lines.pop(2))
    assert [kind for kind, _, _ in _found(lines)] == ["reordered"]


@pytest.mark.parametrize("place", [5, 8])
def test_a_doubled_line_is_doubled(place):
    lines = _lines()
    lines.insert(place, lines[4])
    assert _found(lines) == [("doubled", place + 1, True)]


def test_a_line_of_another_ledger_is_foreign():
    lines = _lines()
    lines.insert(5, _lines(name="x")[7])
    assert _found(lines) == [("foreign", 6, True)]


def test_the_header_of_another_ledger_in_the_middle_is_foreign():
    lines = _lines()
    lines.insert(5, b'{"type":"header","id":"h","seq":1}')
    assert _found(lines) == [("foreign", 6, True)]


def test_two_continuations_of_one_line_are_noticed():
    lines = _lines()
    entry = {"type": "custom", "id": "other", "seq": 6, "prevHash": hashlib.sha256(lines[4]).hexdigest()}
    lines.insert(5, json.dumps(entry).encode())
    assert ("foreign", 7, True) in _found(lines)


def test_an_unfinished_last_line_is_an_incomplete_tail_and_no_error():
    (found,) = verify_chain(b"\n".join(_lines())[:-9])
    assert (found.kind, found.line, found.severity) == ("torn", 10, "note")
    assert found.text.startswith("an incomplete tail")


def test_a_fragment_in_the_middle_is_an_error():
    lines = _lines()
    lines[4] = lines[4][:-9]
    assert _found(lines) == [("edited", 5, True)]


@pytest.mark.parametrize("garbage", [b"garbage", b"", b"\x00" * 40, b"[1]", b'{"type":"custom"}'])
def test_a_line_overwritten_with_garbage_is_an_error(garbage):
    lines = _lines()
    lines[4] = garbage
    assert _found(lines) == [("edited", 5, True)]


@pytest.mark.parametrize("garbage", [b"garbage", b"", b"\x00" * 40])
def test_an_inserted_line_of_garbage_is_foreign(garbage):
    lines = _lines()
    lines.insert(4, garbage)
    assert _found(lines) == [("foreign", 5, True)]


def test_a_cut_inside_of_a_character_is_an_incomplete_tail():
    assert _found([*_lines(3), '{"type":"custom","id":"é'.encode()[:-1]], end=b"") == [("torn", 4, False)]


def test_lines_longer_than_memory_should_hold_are_hashed_as_they_come(monkeypatch):
    monkeypatch.setattr("harness.sessions.checking.line_table._LONGEST", 300)
    lines = _lines(4)
    lines.append(b"x" * 5000)
    lines += [b'{"type":"custom","id":"e","seq":6,"prevHash":"%s"}' % hashlib.sha256(lines[-1]).hexdigest().encode()]
    data = b"\n".join(lines) + b"\n"
    found = verify_bytes([data[at : at + 7] for at in range(0, len(data), 7)], None)
    assert [(each.kind, each.line) for each in found] == [("torn", 5), ("unanchored", 7)]


async def test_a_fragment_that_the_next_writer_healed_is_no_error(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
    path = folder / "s-1.log.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    async with make_tree().writing() as tree:
        await talk.turn(tree, 2)
    assert [(found.kind, found.error) for found in verify_chain(path.read_bytes())] == [("torn", False)]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    async def make():
        folder = tmp_path_factory.mktemp("ledger")
        tree = SessionTree(folder, "s", agent="a", namespace=())
        async with tree.writing():
            for number in range(8):
                message = {
                    "id": f"m{number}",
                    "role": "user",
                    "content": [{"type": "text", "text": f"said {number} é"}],
                }
                tree.add_message(message, via="user")
        return (folder / "s.log.jsonl").read_bytes(), read_anchor(folder / "s.head.json")

    return asyncio.run(make())


def test_a_ledger_with_its_anchor_has_no_findings_however_it_is_cut_into_blocks(ledger):
    data, anchor = ledger
    for size in (1, 7, 100, len(data)):
        assert verify_bytes([data[at : at + size] for at in range(0, len(data), size)], anchor) == []


@given(data=st.data())
def test_any_flipped_bit_is_an_error(ledger, data):
    raw, anchor = ledger
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    changed = bytearray(raw)
    changed[bit // 8] ^= 1 << bit % 8
    assert any(found.error for found in verify_bytes([bytes(changed)], anchor))


@given(data=st.data())
def test_any_line_taken_out_before_the_last_is_an_error_without_an_anchor(ledger, data):
    lines = ledger[0].split(b"\n")
    del lines[data.draw(st.integers(0, len(lines) - 3))]
    assert any(found.error for found in verify_chain(b"\n".join(lines)))


@given(cut=st.integers(1, 500))
def test_any_cut_at_the_end_is_an_error_against_the_anchor(ledger, cut):
    data, anchor = ledger
    found = verify_bytes([data[:-cut]], anchor)
    assert [each.kind for each in found if each.error] == ["truncated"]


def test_lines_beyond_the_anchor_are_a_note(ledger):
    data, anchor = ledger
    more = {"type": "custom", "id": "x", "seq": 10, "prevHash": anchor.hash}
    (found,) = verify_bytes([data + json.dumps(more).encode() + b"\n"], anchor)
    assert (found.kind, found.line, found.byte, found.error) == ("unanchored", 10, len(data), False)


def test_an_edited_last_line_is_named(ledger):
    data, anchor = ledger
    at = data.rindex(b"said 7")
    (found,) = verify_bytes([data[:at] + b"SAID" + data[at + 4 :]], anchor)
    assert (found.kind, found.line, found.error) == ("edited", 9, True)


def test_a_ledger_written_anew_with_right_links_is_noticed_by_the_anchor(ledger):
    _, anchor = ledger
    assert [found.kind for found in verify_bytes([b"\n".join(_lines(9)) + b"\n"], anchor)] == ["edited"]


def test_what_is_reported_does_not_depend_on_other_damage(ledger):
    """Damage never hides: of two random edits of different lines both are named."""
    raw, anchor = ledger
    chance = random.Random(7)
    for _ in range(200):
        lines = raw.split(b"\n")
        edited = sorted(chance.sample(range(9), 2))
        for line in edited:
            at = lines[line].index(b'"timestamp":"20') + 15
            lines[line] = lines[line][:at] + b"9" + lines[line][at + 1 :]
        named = {found.line - 1 for found in verify_bytes([b"\n".join(lines)], anchor) if found.kind == "edited"}
        assert named == set(edited)
