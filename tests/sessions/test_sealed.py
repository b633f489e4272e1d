"""Blocks that are overwritten in place: what was written comes back, and nothing else does."""

import random

import pytest

from harness.sessions.lines.sealed import BLOCK_BYTES, is_sealed, seal, unseal

FIELDS = {"ledgerId": "019caa11-0000-7000-8000-000000000009", "seq": 6, "hash": "4f" * 32, "count": 2}


def test_a_block_is_512_bytes_of_json_that_end_in_a_line_feed():
    block = seal(FIELDS)
    assert (len(block), block[-2:]) == (512, b" \n")
    assert unseal(block) == FIELDS
    assert is_sealed(block)


@pytest.mark.parametrize("bit", random.Random(3).sample(range(8 * len(seal(FIELDS).rstrip())), 200))
def test_a_block_with_a_bit_that_is_not_as_it_was_is_none(bit):
    block = bytearray(seal(FIELDS))
    block[bit // 8] ^= 1 << bit % 8
    assert unseal(bytes(block)) is None


@pytest.mark.parametrize("cut", range(1, BLOCK_BYTES, 7))
def test_a_mixture_of_two_blocks_is_one_of_them_or_none(cut):
    old, new = {**FIELDS, "seq": 99}, {**FIELDS, "seq": 100, "hash": "5e" * 32}
    assert unseal(seal(new)[:cut] + seal(old)[cut:]) in (None, old, new)


def test_what_does_not_fit_is_no_block():
    assert unseal(seal({"text": "x" * BLOCK_BYTES})) is None


def test_a_plain_value_is_no_block():
    assert not is_sealed(b'{"seq":1}')
    assert not is_sealed(b'{"text":"' + b"x" * 500 + b'"}\n')
