"""Base64 is decoded as the harnesses decode their own, whatever form of it was written."""

import base64
import binascii
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.transcripts import media, page
from harness.transcripts.decoding import decoded, decoded_size, is_base64

FORMS: dict[str, Callable[[bytes], str]] = {
    "plain": lambda data: base64.b64encode(data).decode(),
    "no padding": lambda data: base64.b64encode(data).decode().rstrip("="),
    "other alphabet": lambda data: base64.urlsafe_b64encode(data).decode(),
    "other alphabet, no padding": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    "lines": lambda data: base64.encodebytes(data).decode(),
    "lines of 64 with carriage returns": lambda data: "\r\n".join(
        re.findall(".{1,64}", base64.b64encode(data).decode())
    ),
    "blanks around": lambda data: f" \t{base64.b64encode(data).decode()}\n",
}


def expected(text: str) -> bytes | None:
    """By the standard library, of the one form that it takes."""
    told = re.sub("[ \t\r\n]", "", text).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(told + "=" * (-len(told) % 4), validate=True) if told or not text else None
    except (binascii.Error, ValueError):
        return None


@given(st.text('Ab9+/=-_ \n"\\un0041é', max_size=16))
def test_any_text_is_decoded_as_by_the_standard_library(text: str) -> None:
    assert decoded(text) == expected(text)
    assert is_base64(text) == (expected(text) is not None)


@pytest.mark.parametrize("form", FORMS)
@given(st.binary(min_size=1, max_size=400))
def test_what_was_encoded_in_any_form_comes_back_and_its_size_is_known_before(form: str, data: bytes) -> None:
    text = FORMS[form](data)
    assert (decoded(text), decoded_size(text), is_base64(text)) == (data, len(data), True)


def test_what_is_no_base64_is_none() -> None:
    for text in ("\\u0061Gk=", "a", "aGk=aGk=", "aG\u00a0k", "====", "data:image/png;base64,aGk="):
        assert (decoded(text), is_base64(text)) == (None, False), text


@pytest.mark.parametrize("form", FORMS)
def test_a_picture_in_any_form_is_given_out_under_the_reference_of_its_page(tmp_path: Path, form: str) -> None:
    data = bytes(range(256)) + b"\xff"
    source = {"type": "base64", "media_type": "image/png", "data": FORMS[form](data)}
    message = {"role": "user", "content": [{"type": "image", "source": source}]}
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"type": "user", "uuid": "u", "sessionId": "s", "message": message}) + "\n")

    shown = page(path).to_dict()["turns"][0]["content"][0]["media"]

    assert (shown["bytes"], media(path, None, shown["ref"])[0]) == (len(data), data)
