import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from driver import harness, harness_json


def test_quickstart_tells_the_story_and_keeps_the_files(tmp_path: Path) -> None:
    done = harness("quickstart", "--dir", "here", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "You said: “My name is Alice.”" in done.stdout
    assert "FAIL" not in done.stdout
    assert (tmp_path / "here/tenants/alice/agents/notes/sessions/monday.log.jsonl").is_file()
    assert (tmp_path / "here/tenants/bob/agents/notes/sessions/monday.log.jsonl").is_file()


def test_quickstart_checks_what_it_shows(tmp_path: Path) -> None:
    story = harness_json("quickstart", "--dir", "here", cwd=tmp_path)
    assert story["ok"] is True
    assert story["checks"] == {
        "alice is remembered by a new process": True,
        "bob is remembered by a new process": True,
        "neither is told what the other said": True,
        "search finds what alice said, and only that": True,
        "the model is shown less than the ledger holds": True,
        "what was compacted is still known": True,
    }
    assert len({turn["process"] for turn in story["turns"]}) == 4
    assert len(story["context"]["shown"]) < len(story["context"]["logged"]) == 12


def test_quickstart_takes_no_folder_with_something_in_it(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = harness("quickstart", "--dir", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_quickstart_without_a_folder_uses_a_temporary_one(tmp_path: Path) -> None:
    story = harness_json("quickstart", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert Path(story["dir"]).parent == tmp_path
    assert (Path(story["dir"]) / "tenants").is_dir()
