"""An export over another: refused unasked, and by force exactly what it would be in an empty place, or what was there."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from growing import KINDS, SESSION, Own, Penguin
from sample_session import image, said, sample

from harness.errors import ConfigError, FileExists
from harness.testing import CrashKit, Kill, Progress
from harness.transcripts import read
from harness.transcripts.export import TARGETS, check_bundle, convert, export


def files_in(place: Path) -> dict[str, bytes]:
    """What is there, by relative name; one file has an empty one."""
    if place.is_file():
        return {"": place.read_bytes()}
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_target_is_written_over_unasked_and_every_one_wholly_by_force(tmp_path: Path, kind: str) -> None:
    (tmp_path / "source").mkdir()
    session = KINDS[kind](tmp_path / "source")
    session.say(7)
    for target in TARGETS:
        convert(session.path, target, tmp_path / "over" / target)
    before = files_in(tmp_path / "over")
    session.say(1)
    for target in TARGETS:
        with pytest.raises(FileExists, match="is there already"):
            convert(session.path, target, tmp_path / "over" / target)
    assert files_in(tmp_path / "over") == before
    for target in TARGETS:
        convert(session.path, target, tmp_path / "over" / target, overwrite=True)
        convert(session.path, target, tmp_path / "fresh" / target)
    session.close()
    assert files_in(tmp_path / "over") == files_in(tmp_path / "fresh")


def test_media_of_the_bundle_that_was_there_do_not_stay_in_it(tmp_path: Path) -> None:
    export(sample(tmp_path, [said(1, [image()])]), "bundle", tmp_path / "out")
    (tmp_path / "out" / "mine.txt").write_text("mine")
    export(sample(tmp_path, [said(1, "go")]), "bundle", tmp_path / "out", overwrite=True)
    assert check_bundle(tmp_path / "out") == []
    assert set(files_in(tmp_path / "out")) == {"manifest.json", "transcript.jsonl", "mine.txt"}


def test_a_manifest_of_strangers_takes_nothing_away_beside_the_bundle(tmp_path: Path) -> None:
    names: dict[str, Any] = {"../mine.txt": {}, "files/../../mine.txt": {}, "notes.txt": {}}
    for name in ("mine.txt", "out/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    forged = {"schema": "harness-transcript/1", "files": names}
    (tmp_path / "out" / "manifest.json").write_text(str(forged).replace("'", '"'))
    export(sample(tmp_path), "bundle", tmp_path / "out", overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_shards_of_a_longer_export_are_not_read_as_the_end_of_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for day, name in (("2026-02-28", f"{SESSION}_001"), ("2026-03-01", f"{SESSION}_007"), ("2026-03-01", "other_001")):
        (out / day).mkdir(parents=True, exist_ok=True)
        (out / day / f"{name}.jsonl").write_text("{}\n")
    (tmp_path / "source").mkdir()
    session = Penguin(tmp_path / "source")
    session.say(1)
    made = convert(session.path, "penguin", out, overwrite=True)
    assert [turn.text for turn in read(made.files[0].path).turns] == ["prompt 0.", "", "", "answer 0."]
    assert sorted(files_in(out)) == ["2026-03-01/other_001.jsonl", f"2026-03-01/{SESSION}_001.jsonl"]


def test_no_shard_of_the_session_that_is_read_is_written_over(tmp_path: Path) -> None:
    session = Penguin(tmp_path)
    session.say(12)
    before = files_in(tmp_path)
    for named in range(1, 4):
        source = tmp_path / f"{SESSION}_{named:03}.jsonl"
        with pytest.raises(ConfigError, match="is of the session that is read"):
            convert(source, "penguin-envelopes", tmp_path / f"{SESSION}_002.jsonl", overwrite=True)
    assert files_in(tmp_path) == before


def test_what_cannot_give_way_to_the_file_of_an_own_session_stays(tmp_path: Path) -> None:
    session = Own(tmp_path)
    session.say(1)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.zip").symlink_to(tmp_path / "elsewhere")
    for place, says in (("folder", "is in the way"), ("link.zip", "no plain file and stays as it is")):
        with pytest.raises(FileExists, match=says):
            convert(session.path, "bundle", tmp_path / place, overwrite=True)
    with pytest.raises(ConfigError, match="is of the session that is read"):
        convert(session.path, "bundle", session.path, overwrite=True)
    assert not (tmp_path / "elsewhere").exists()


async def over(_progress: Progress, arguments: Mapping[str, Any]) -> None:
    """Runs in a process of its own, which is killed."""
    convert(arguments["source"], arguments["target"], arguments["out"], overwrite=True)


def test_a_kill_in_the_middle_leaves_the_file_that_was_there_or_the_new_one(tmp_path: Path) -> None:
    session, out, target = Own(tmp_path), tmp_path / "old.zip", "bundle"
    session.say(1)
    convert(session.path, target, out)
    old = out.read_bytes()
    session.say(1)
    new = export(read(session.path), target, tmp_path / "new.zip").out.read_bytes()
    arguments = {"source": str(session.path), "target": target, "out": str(out)}
    left = set()
    with CrashKit(f"{__file__}:over") as kit:
        steps, killed = 0, True
        while killed:
            steps += 1
            killed = kit.run(arguments, Kill.at_step(steps, portion=0.5)).killed
            assert out.read_bytes() in (old, new)
            left.add(out.read_bytes())
    assert (left, steps > 2) == ({old, new}, True)


def test_a_kill_while_a_bundle_is_written_over_another_leaves_that_one_or_is_told(tmp_path: Path) -> None:
    out = export(sample(tmp_path, [said(1, "old words")]), "bundle", tmp_path / "out").out
    before, told = files_in(out), []
    source = sample(tmp_path, [said(1, [image()]), said(2, "new words")]).source
    arguments = {"source": str(source), "target": "bundle", "out": str(out)}
    with CrashKit(f"{__file__}:over") as kit:
        steps, killed = 0, True
        while killed:
            steps += 1
            killed = kit.run(arguments, Kill.at_step(steps, portion=0.5)).killed
            there = {name: data for name, data in files_in(out).items() if not name.startswith(".tmp-")}
            told.append("old" if there == before else "damaged" if check_bundle(out) else "new")
    assert sorted(set(told), key=told.index) == ["old", "damaged", "new"]
    assert told.count("old") > told.count("damaged")
