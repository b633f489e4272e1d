"""What an export says of the findings, as a person reads it."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness.transcripts import read
from harness.transcripts.export import Redaction, export

HEAD = {"type": "transcript", "version": 1, "format": "other", "harness": "Other", "sessionId": "s1"}
SAID = {"id": "b1", "role": "user", "content": [{"type": "text", "text": "the word is hunter22"}]}


def page(folder: Path, target: str, damage: str) -> str:
    path = folder / "transcript.jsonl"
    path.write_text(f"{json.dumps(HEAD)}\n{json.dumps({'type': 'turn', 'kind': 'prompt', 'message': SAID})}\n{damage}")
    out = folder / "out"
    return export(read(path), target, out, redaction=Redaction(patterns=("hunter22",))).out.read_text()


@pytest.mark.parametrize("target", ["html", "markdown"])
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("{torn\n", "1 finding while the file was read, the first in line 3."),
        ("{torn\n{torn\n", "2 findings while the file was read, the first in lines 3, 4."),
        ("{torn\n" * 9, "9 findings while the file was read, the first in lines 3, 4, 5, 6, 7."),
    ],
)
def test_findings_are_counted_in_words_and_each_line_is_named_once(
    tmp_path: Path, target: str, damage: str, told: str
) -> None:
    found = page(tmp_path, target, damage)
    assert told in found
    assert "Redacted before it was written: 1 place." in found


def test_a_line_with_several_findings_is_named_once() -> None:
    from harness.transcripts.export.base import findings_told
    from harness.transcripts.lines import TranscriptWarning

    told = findings_told([TranscriptWarning("damaged", 1, "a"), TranscriptWarning("damaged", 1, "b")])
    assert told == "2 findings while the file was read, the first in line 1."
