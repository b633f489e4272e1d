"""Base64 is decoded as the standard library decodes it, whatever the text."""

import base64
import binascii

from hypothesis import given
from hypothesis import strategies as st

from harness.transcripts.decoding import decoded, decoded_size, is_base64


def expected(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


@given(st.text('Ab9+/=-_ "\\un0041é', max_size=16))
def test_any_text_is_decoded_as_by_the_standard_library(text: str) -> None:
    assert decoded(text) == expected(text)


@given(st.binary(max_size=200))
def test_what_was_encoded_comes_back_and_its_size_is_known_before(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert (decoded(text), decoded_size(text), is_base64(text)) == (data, len(data), True)


def test_what_another_reader_would_take_is_none() -> None:
    assert [decoded(text) for text in ("aG-_", "aGk", "\\u0061Gk=", "a b=")] == [None, None, None, None]
