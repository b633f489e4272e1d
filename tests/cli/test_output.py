import json
import subprocess
import sys

import pytest

from harness.cli.output import json_list, one_line, snake_keys
from harness.errors import FileMissing
from harness.text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"),
        ("\x9b31m red", "⟨U+009B⟩31m red"),
        ("a\rb", "a␍b"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\x7f\x00", "⟨U+007F⟩␀"),
        ("abc\u202edef\u2066", "abc⟨U+202E⟩def⟨U+2066⟩"),
        ("naïve 日本 🙂", "naïve 日本 🙂"),
    ],
)
def test_text_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_no_control_character_passes_but_tab_and_newline() -> None:
    controls = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
    assert [char for char in visible(controls) if not char.isprintable()] == ["\t", "\n"]


def test_one_line_is_one_line_and_no_longer_than_asked() -> None:
    assert one_line("first\n  second\tthird", 12) == "first secon…"


def written(capfdbinary: pytest.CaptureFixture[bytes]) -> bytes:
    return capfdbinary.readouterr().out


@pytest.mark.parametrize("sizes", [[], [1], [1, 2], [700_000] * 4, [1_200_000], [1_200_000, 1]], ids=str)
async def test_a_list_is_printed_whole_however_long_it_is(
    sizes: list[int], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    async with json_list("items", name="x", ok=True) as whole:
        for size in sizes:
            await whole.add({"text": "y" * size})
        whole.fields["ok"] = False
        assert written(capfdbinary) == b""
    document = json.loads(written(capfdbinary))
    assert [len(item["text"]) for item in document.pop("items")] == sizes
    assert document == {"name": "x", "ok": False}


async def test_a_list_that_fails_half_way_is_not_printed(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    async def fail() -> None:
        async with json_list("items") as whole:
            await whole.add({"text": "y" * 1_200_000})
            raise FileMissing("gone")

    with pytest.raises(FileMissing):
        await fail()
    assert written(capfdbinary) == b""


def test_keys_that_a_command_makes_are_snake_case_and_what_they_hold_stays() -> None:
    found = snake_keys({"bySession": {"mySession": {"cacheRead": 1}}, "id": "aB", "first_ts": 1})
    assert found == {"by_session": {"mySession": {"cacheRead": 1}}, "id": "aB", "first_ts": 1}


def test_text_the_terminal_cannot_show_is_replaced_and_json_stays_utf8() -> None:
    code = "from harness.cli.output import say, say_json; say('naïve'); say_json({'a': 'ï\\x9b'})"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert done.stdout == 'na?ve\n{"a":"ï\\u009b"}\n'.encode()
