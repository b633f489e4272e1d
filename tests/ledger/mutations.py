"""Ten kinds of damage to a ledger at rest, each at a random place."""

import random
from collections.abc import Callable
from pathlib import Path

Mutate = Callable[[random.Random, list[bytes]], bytes]


def sessions_of(workspace: Path) -> Path:
    return workspace / "tenants/alice/agents/crash/sessions"


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def flip_a_bit(chance: random.Random, lines: list[bytes]) -> bytes:
    data = bytearray(_joined(lines))
    bit = chance.randrange(len(data) * 8)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def flip_bits_in_two_lines(chance: random.Random, lines: list[bytes]) -> bytes:
    data = flip_a_bit(chance, lines)
    changed = bytearray(data)
    changed[chance.randrange(len(changed))] ^= 1
    return bytes(changed) if changed != _joined(lines) else data


def delete_lines(chance: random.Random, lines: list[bytes]) -> bytes:
    first, count = chance.randrange(len(lines)), chance.choice((1, 1, 1, 2, 5))
    return _joined(lines[:first] + lines[first + count :])


def double_a_line(chance: random.Random, lines: list[bytes]) -> bytes:
    line, place = chance.randrange(len(lines)), chance.randrange(len(lines) + 1)
    return _joined([*lines[:place], lines[line], *lines[place:]])


def swap_two_lines(chance: random.Random, lines: list[bytes]) -> bytes:
    one, other = chance.sample(range(len(lines)), 2)
    swapped = [*lines]
    swapped[one], swapped[other] = lines[other], lines[one]
    return _joined(swapped)


def truncate_a_line(chance: random.Random, lines: list[bytes]) -> bytes:
    line = chance.randrange(len(lines))
    return _joined([*lines[:line], lines[line][: chance.randrange(len(lines[line]))], *lines[line + 1 :]])


def cut_inside_a_character(chance: random.Random, lines: list[bytes]) -> bytes:
    """In the middle of the file or at its end."""
    wide = [(line, at) for line, raw in enumerate(lines) for at, byte in enumerate(raw) if byte & 0xC0 == 0x80]
    line, at = chance.choice(wide)
    head = [*lines[:line], lines[line][:at]]
    return _joined([*head, *lines[line + 1 :]]) if chance.random() < 0.5 else _joined(head)[:-1]


def cut_the_end(chance: random.Random, lines: list[bytes]) -> bytes:
    return _joined(lines)[: -chance.randint(1, 3000)]


def insert_garbage(chance: random.Random, lines: list[bytes]) -> bytes:
    place = chance.randrange(len(lines) + 1)
    garbage = chance.choice((b"", b"garbage", b"\0" * 100, b'{"type":"event","id":"x"}', chance.randbytes(50)))
    return _joined([*lines[:place], garbage, *lines[place:]])


def change_a_word(chance: random.Random, lines: list[bytes]) -> bytes:
    """The line stays good JSON of the same length."""
    line = chance.randrange(len(lines))
    letters = [at for at, byte in enumerate(lines[line]) if chr(byte) in "aeiou0123456789"]
    at = chance.choice(letters)
    new = b"7" if lines[line][at : at + 1] != b"7" else b"8"
    return _joined([*lines[:line], lines[line][:at] + new + lines[line][at + 1 :], *lines[line + 1 :]])


KINDS: tuple[Mutate, ...] = (
    flip_a_bit,
    flip_bits_in_two_lines,
    delete_lines,
    double_a_line,
    swap_two_lines,
    truncate_a_line,
    cut_inside_a_character,
    cut_the_end,
    insert_garbage,
    change_a_word,
)
