"""Our own bundle, and where exports are written."""

import csv
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import PICTURE, SESSION, lines_of, sample, write

from harness.errors import ConfigError, FileExists
from harness.sessions import SessionTree
from harness.sessions.moving.importing import read_bundle
from harness.transcripts import candidates, media, page, read
from harness.transcripts.export import TARGETS, Redaction, check_bundle, convert, export
from harness.transcripts.importing import import_transcript

NOT_OF_THE_SESSION = {"format", "bytes", "lines", "bad_lines"}


def test_a_bundle_can_be_read_and_has_the_same_turns(tmp_path: Path) -> None:
    before = sample(tmp_path)
    after = read(export(before, "bundle", tmp_path / "out").out)
    assert (after.format, after.session_id, after.head.title) == ("bundle", SESSION, "Look at the shop.")
    assert [(t.kind, t.at, t.aside, t.final) for t in after.turns] == [
        (t.kind, t.at, t.aside, t.final) for t in before.turns
    ]
    assert after.turns[2].message == before.turns[2].message


def test_a_bundle_keeps_media_beside_it(tmp_path: Path) -> None:
    out = export(sample(tmp_path), "bundle", tmp_path / "out").out
    [block] = [b for turn in page(out).turns for b in turn.blocks if b["type"] == "image"]
    ref = next(t.key for t in page(out).turns if block in t.blocks) + ".1"
    assert media(out, None, ref) == (PICTURE, "image/png")


def test_every_real_session_has_its_census_in_its_bundle(shared: Path, tmp_path: Path) -> None:
    with open(shared / "traces" / "MANIFEST.tsv", encoding="utf-8", newline="") as file:
        names = [row["file"] for row in csv.DictReader(file, delimiter="\t")]
    differences = []
    for number, name in enumerate(names):
        path, _, session = name.partition("#")
        before = read(shared / "traces" / path, session or None)
        out = export(before, "bundle", tmp_path / str(number)).out
        after = read(out)
        found = {column for column, value in before.stats().items() if after.stats()[column] != value}
        differences += [f"{name}: {column}" for column in sorted(found - NOT_OF_THE_SESSION)]
        differences += [f"{name}: {finding}" for finding in check_bundle(out)]
    assert differences == []


def test_the_manifest_names_the_source_and_every_file_with_its_digest(tmp_path: Path) -> None:
    made = export(sample(tmp_path), "bundle", tmp_path / "out")
    manifest = json.loads((made.out / "manifest.json").read_bytes())
    assert (manifest["schema"], manifest["session"]["id"]) == ("harness-transcript/1", SESSION)
    assert (manifest["source"]["name"], manifest["source"]["bytes"]) == (f"{SESSION}.jsonl", 4363)
    written = {str(one.path.relative_to(made.out)): {"bytes": one.bytes, "sha256": one.sha256} for one in made.files}
    del written["manifest.json"]
    assert manifest["files"] == written


def test_a_changed_a_missing_and_an_added_file_are_found(tmp_path: Path) -> None:
    out = export(sample(tmp_path), "bundle", tmp_path / "out").out
    with open(out / "transcript.jsonl", "ab") as file:
        file.write(b"{}\n")
    [picture] = (out / "files").glob("*/*")
    picture.rename(picture.with_name("ab" * 32))
    assert check_bundle(out) == [
        f"files/96/{picture.name} is missing",
        f"files/96/{'ab' * 32} is not in the manifest",
        "transcript.jsonl is not what was written: its bytes have changed",
    ]


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no manifest of a bundle"):
        check_bundle(tmp_path)


def test_a_bundle_is_one_candidate_of_its_folder(tmp_path: Path) -> None:
    out = export(sample(tmp_path), "bundle", tmp_path / "out").out
    assert [(one.format, one.session_id) for one in candidates(out)] == [("bundle", SESSION)]


async def test_a_session_of_this_library_goes_as_its_ledger(tmp_path: Path) -> None:
    tree = SessionTree(tmp_path / "sessions", "monday", agent="notes", namespace=("alice",))
    await import_transcript(sample(tmp_path), tree)
    made = convert(tree.files.ledger, "bundle", tmp_path / "monday.zip")
    bundle = read_bundle(made.out)
    assert (bundle.session_id, bundle.owner.namespace, bundle.ledger_id) == ("monday", ("alice",), tree.ledger_id)
    ledger = next(member for member in bundle.members if member.path == "session.log.jsonl")
    assert ledger.bytes == tree.files.ledger.stat().st_size


async def test_a_redacted_session_of_this_library_goes_in_the_normal_form(tmp_path: Path) -> None:
    tree = SessionTree(tmp_path / "sessions", "monday", agent="notes", namespace=())
    await import_transcript(sample(tmp_path), tree)
    made = convert(tree.files.ledger, "bundle", tmp_path / "out", redaction=Redaction(patterns=("shop",)))
    assert check_bundle(made.out) == []
    assert b"shop" not in (made.out / "transcript.jsonl").read_bytes()


@pytest.mark.parametrize("name", list(TARGETS))
def test_nothing_that_is_there_is_overwritten_unasked(tmp_path: Path, name: str) -> None:
    out = tmp_path / f"out{TARGETS[name].suffix}"
    first = export(sample(tmp_path), name, out)
    with pytest.raises(FileExists, match="is there already"):
        export(sample(tmp_path), name, out)
    assert export(sample(tmp_path), name, out, overwrite=True).files == first.files


def test_a_file_in_the_place_of_a_folder_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(FileExists, match="is in the way: a folder is to be written there"):
        export(sample(tmp_path), "bundle", tmp_path / "out", overwrite=True)
    assert (tmp_path / "out").read_bytes() == b"mine"


def test_an_unknown_target_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'pdf' is nothing a session can be written as; choose one of html, markdown"):
        convert(tmp_path / "nowhere.jsonl", "pdf", tmp_path / "out")


def test_without_a_place_the_file_is_named_for_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert export(sample(tmp_path), "markdown").out == Path(f"{SESSION}.md")


def test_the_name_made_from_a_strange_id_stays_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"type": "session", "harness": "x", "id": "../../out/evil"},
        {"type": "message", "message": {"role": "user", "content": "hi"}},
    ]
    source = write(tmp_path, lines, "strange.jsonl")
    monkeypatch.chdir(tmp_path)
    assert export(read(source), "markdown").out == Path("%2e%2e%2f%2e%2e%2fout%2fevil.md")
    assert [line["type"] for line in lines_of(source)] == ["session", "message"]
