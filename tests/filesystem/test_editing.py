"""Line ends and bounds of text edits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import FilesystemError
from harness.filesystem.editing import cut_lines, encode, replace_text


def changed(text: str, old: str, new: str, every: bool = False) -> str:
    return replace_text("f", text, old, new, every, 10_000)[0]


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("a\nb\nc", "a\nb", "x\ny", "x\ny\nc"),
        ("a\r\nb\r\nc", "a\nb", "x\ny", "x\r\ny\r\nc"),
        ("a\r\nb\r\nc", "a\r\nb", "x\r\ny", "x\r\ny\r\nc"),
        ("a\r\nb\r\nc", "b", "x\ny", "a\r\nx\r\ny\r\nc"),
        ("a\nb\nc", "a\r\nb", "x\r\ny", "x\ny\nc"),
        ("a\r\nb\nc", "b\nc", "x\ny", "a\r\nx\ny"),
        ("a\r\nb\nc", "a\nb", "x\ny", "x\r\ny\nc"),
        ("a\rb", "a", "x", "x\rb"),
    ],
)
def test_a_file_keeps_its_line_ends(text: str, old: str, new: str, result: str) -> None:
    assert changed(text, old, new) == result


def test_a_text_that_would_grow_too_large_is_refused_before_it_is_made() -> None:
    with pytest.raises(FilesystemError, match="grow over"):
        replace_text("f", "a" * 1_000_000, "a", "b" * 1_000_000, True, 10_000_000)


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(FilesystemError, match="surrogate"):
        encode("f", "a\ud800")


@given(st.text(max_size=40), st.integers(1, 5))
def test_the_cuts_of_a_text_are_the_text(text: str, step: int) -> None:
    total = cut_lines("f", text, 0, 0).total_lines
    cuts = [cut_lines("f", text, offset, step) for offset in range(0, max(total, 1), step)]

    assert "".join(cut.text for cut in cuts) == text
    assert sum(cut.lines for cut in cuts) == total


@pytest.mark.parametrize("offset", [-1, 2, 99])
def test_an_offset_outside_is_an_error(offset: int) -> None:
    with pytest.raises(FilesystemError, match="0 to 1"):
        cut_lines("f", "a\nb", offset, 0)
