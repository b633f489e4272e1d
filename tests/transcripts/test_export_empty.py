"""A session of which a form has a place for nothing is refused with the reason; no empty file is left."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TranscriptRefused
from harness.transcripts import Transcript, read
from harness.transcripts.export import export

AT = "2026-03-01T09:00:00.000Z"
HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": AT, "cwd": "/srv"}
OF_LINES = ["claude", "huggingface", "huggingface-row", "penguin", "penguin-envelopes"]


def entry(key: str, parent: str | None, **message: Any) -> dict[str, Any]:
    return {"type": "message", "id": key, "parentId": parent, "timestamp": AT, "message": message}


def session(folder: Path, *lines: dict[str, Any]) -> Transcript:
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [HEADER, *lines]))
    return read(path)


def all_left(folder: Path) -> Transcript:
    said = [entry("a", None, role="user", content="Go."), entry("b", "a", role="assistant", content="Gone.")]
    return session(folder, *said, {"type": "label", "id": "x", "parentId": None, "timestamp": AT})


@pytest.mark.parametrize("target", OF_LINES)
def test_a_session_of_which_nothing_is_left_to_write_is_refused_with_the_reason(tmp_path: Path, target: str) -> None:
    out = tmp_path / "out"

    with pytest.raises(
        TranscriptRefused, match=r"in session.jsonl: .* \(.*2 abandoned.*\); nothing was written"
    ) as told:
        export(all_left(tmp_path), target, out)

    assert told.value.code == "no_transcript"
    assert not out.exists()


@pytest.mark.parametrize("target", OF_LINES)
def test_a_session_without_a_message_is_refused_and_an_earlier_file_stays(tmp_path: Path, target: str) -> None:
    said = session(tmp_path, entry("a", None, role="user", content="Go."))
    made = export(said, target, tmp_path / "out")
    before = [one.path.read_bytes() for one in made.files]

    with pytest.raises(TranscriptRefused, match="no message in it"):
        export(session(tmp_path), target, tmp_path / "out", overwrite=True)

    assert [one.path.read_bytes() for one in made.files] == before


@pytest.mark.parametrize("target", ["html", "markdown", "bundle"])
def test_a_form_that_holds_what_was_left_writes_it(tmp_path: Path, target: str) -> None:
    made = export(all_left(tmp_path), target, tmp_path / "out")

    assert made.files[0].bytes > 0
