"""Redaction of an export: what goes, what stays, and what the report says of it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import answered, call, line, result, said, sample

from harness.errors import ConfigError
from harness.transcripts.export import TARGETS, Redaction, export, redact_transcript

KEY = "sk-" + "proj-" + "A1b2C3d4E5f6G7h8"
LINES = [
    said(1, f"my key is {KEY}"),
    answered(2, "m1", call("c1", command="curl", headers={"Cookie": "crumbs", "password": "hunter22"})),
    said(3, [result("c1", 'set-up done; Cookie: crumbs; ticket ABC-1234, {"cookie": "more crumbs"}')]),
    line(4, "custom-title", customTitle="About ABC-1234"),
]


def test_well_known_keys_go_without_being_named(tmp_path: Path) -> None:
    made, report = redact_transcript(sample(tmp_path, LINES), Redaction())
    assert made.turns[0].text == "my key is [redacted]"
    assert made.turns[1].blocks[0]["input"]["headers"] == {"Cookie": "crumbs", "password": "[redacted]"}
    assert report.hits == {"default": 2}


def test_a_named_key_goes_from_arguments_and_from_text(tmp_path: Path) -> None:
    made, report = redact_transcript(sample(tmp_path, LINES), Redaction(keys=("cookie",), defaults=False))
    assert made.turns[1].blocks[0]["input"]["headers"]["Cookie"] == "[redacted]"
    assert made.turns[2].blocks[0]["content"][0]["text"] == (
        'set-up done; Cookie: [redacted]; ticket ABC-1234, {"cookie": [redacted]}'
    )
    assert report.hits == {"key:cookie": 3}


def test_a_pattern_goes_wherever_there_is_text(tmp_path: Path) -> None:
    made, report = redact_transcript(sample(tmp_path, LINES), Redaction(patterns=(r"ABC-\d+",), defaults=False))
    assert made.head.title == "About [redacted]"
    assert "ticket [redacted]," in made.turns[2].blocks[0]["content"][0]["text"]
    assert report.hits == {r"pattern:ABC-\d+": 2}


def test_the_report_counts_by_rule_and_by_turn(tmp_path: Path) -> None:
    transcript = sample(tmp_path, LINES)
    _, report = redact_transcript(transcript, Redaction(keys=("cookie", "absent"), patterns=(r"ABC-\d+",)))
    assert report.to_dict() == {
        "rules": ["default", "key:cookie", "key:absent", r"pattern:ABC-\d+"],
        "hits": {"default": 2, "key:cookie": 3, r"pattern:ABC-\d+": 2},
        "turns": {transcript.turns[0].key: 1, transcript.turns[1].key: 2, transcript.turns[2].key: 3, "head": 1},
    }


def test_calls_still_find_their_results(tmp_path: Path) -> None:
    made, _ = redact_transcript(
        sample(tmp_path, LINES), Redaction(keys=("id", "type", "role", "name"), patterns=("c1",))
    )
    assert made.stats()["results_matched"] == 1
    assert made.turns[1].blocks[0]["id"] == made.turns[2].blocks[0]["id"] == "redacted-3"


def test_a_seal_over_changed_reasoning_is_not_passed_on(tmp_path: Path) -> None:
    thinking = {"type": "thinking", "thinking": "the ticket ABC-1234", "signature": "c2VhbA=="}
    transcript = sample(tmp_path, [said(1, "go"), answered(2, "m1", thinking)])
    made = export(transcript, "claude", tmp_path / "o.jsonl", redaction=Redaction(patterns=(r"ABC-\d+",)))
    assert b"c2VhbA" not in made.out.read_bytes()
    assert made.left_out == {"sealed reasoning": 1}


@pytest.mark.parametrize("name", list(TARGETS))
def test_no_target_holds_what_was_taken_out(tmp_path: Path, name: str) -> None:
    rules = Redaction(keys=("cookie",), patterns=(r"ABC-\d+",))
    made = export(sample(tmp_path, LINES), name, tmp_path / f"o{TARGETS[name].suffix}", redaction=rules)
    raw = b"".join(one.path.read_bytes() for one in made.files if one.path.name != "manifest.json")
    assert not [word for word in (KEY.encode(), b"crumbs", b"hunter22", b"ABC-1234") if word in raw]


def test_a_pattern_goes_from_names_ids_and_warnings_too(tmp_path: Path) -> None:
    lines = [
        said(1, "go"),
        answered(2, "m-ABC-1", call("c-ABC-2", **{"ABC-3": "a", "ABC-4": "b", "text": "ABC-5"})),
        said(3, [result("c-ABC-2", "done")]),
        line(4, "kind-ABC-6"),
    ]
    made, _ = redact_transcript(sample(tmp_path, lines), Redaction(patterns=(r"ABC-\d",), defaults=False))
    assert "ABC-" not in repr((made.turns, made.about, made.counts, made.warnings))
    assert made.turns[1].blocks[0]["input"] == {"[redacted]": "a", "[redacted]#2": "b", "text": "[redacted]"}
    assert made.stats()["results_matched"] == 1


def test_a_pattern_that_is_a_word_of_ours_leaves_the_form_alone(tmp_path: Path) -> None:
    made, _ = redact_transcript(sample(tmp_path, LINES), Redaction(patterns=("text|content|toolUse",), defaults=False))
    assert [block["type"] for block in made.turns[1].blocks] == ["toolUse"]
    assert "text" in made.turns[0].blocks[0]


@pytest.mark.parametrize(("pattern", "says"), [("(", "is no regular expression"), ("a*", "matches where nothing is")])
def test_a_pattern_that_cannot_work_is_refused(tmp_path: Path, pattern: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        redact_transcript(sample(tmp_path, LINES), Redaction(patterns=(pattern,)))


@pytest.mark.parametrize("name", ["claude", "html"])
def test_a_session_is_never_overwritten_by_what_is_made_of_it(tmp_path: Path, name: str) -> None:
    transcript = sample(tmp_path, LINES)
    before = transcript.source.read_bytes()
    (tmp_path / "link").symlink_to(transcript.source)
    for place in (transcript.source, transcript.source.parent / "." / transcript.source.name, tmp_path / "link"):
        with pytest.raises(ConfigError, match="name another place"):
            export(transcript, name, place, overwrite=True)
    assert transcript.source.read_bytes() == before
