"""What docs/file-formats.md says of a transcript bundle is what a bundle has."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import lines_of, write

from harness.transcripts.export import convert
from harness.transcripts.turns import Aside, Kind


def section(root: Path) -> str:
    page = (root / "docs/file-formats.md").read_text()
    return page.partition("## Transcript bundles")[2].partition("\n## ")[0]


def test_the_page_names_every_member_and_key_of_a_bundle(root: Path, tmp_path: Path) -> None:
    told = section(root)
    convert(write(tmp_path), "bundle", tmp_path / "out")
    manifest = json.loads((tmp_path / "out/manifest.json").read_bytes())
    header, *turns = lines_of(tmp_path / "out/transcript.jsonl")
    named = set(re.findall(r"\w+", told))
    keys = {*manifest, *manifest["source"], *header, *header["tokens"], *(key for turn in turns for key in turn)}
    assert keys - named == set()
    assert f'"{manifest["schema"]}"' in told
    assert {name.split("/")[0] for name in manifest["files"]} == {"transcript.jsonl", "files"}


def test_the_page_names_every_kind_of_turn(root: Path) -> None:
    told = set(re.findall(r"`(\w+)`", section(root)))
    assert set(Kind.__args__) - told == set()  # type: ignore[attr-defined]
    assert set(Aside.__args__) - told == set()  # type: ignore[attr-defined]
