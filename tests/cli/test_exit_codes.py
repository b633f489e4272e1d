"""What every command does where it cannot do its work: one table of exit codes, one form of errors."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import PATIENCE, PLAIN, environment, harness, within

from harness.agent import TenantSessions
from harness.errors import PersistenceError
from harness.filesystem.locks import FileLock
from harness.messages import Msg

WHO = "--workspace ws --agent notes --user alice"
FOLDER = "ws/tenants/alice/agents/notes/sessions"
# A call, or a name that only Python has.
PYTHON = re.compile(r"\w\(|\b[a-z]+_[a-z_]+\b|\bagent\.|\bbuilder\b")
ABOUT_ONE = (
    "show S", "seen S", "verify S", "repair S", "turns S", "branches S", "branch S x", "fork S", "label S x name",
    "labels S", "rename S title", "compact S", "switch-model S offline", "handoff S", "export S", "delete S --yes",
    "usage S", "search word --session S",
)  # fmt: skip

TABLE = {
    0: [
        "sessions list", "sessions show monday", "sessions search rains", "sessions search nothing-of-it",
        "sessions seen monday", "sessions verify monday", "sessions branch monday --turn 1", "sessions repair monday", "sessions turns monday",
        "sessions branches monday", "sessions fork monday", "sessions labels monday", "sessions rename monday title",
        "sessions compact monday", "sessions switch-model monday offline", "sessions handoff monday",
        "sessions export monday --out new.zip", "sessions import monday.zip --as copy --take-over",
        "sessions import-java", "sessions delete monday --yes", "sessions usage", "chat --session monday --message hi",
        "chat --session broken --message hi",
    ],
    1: [
        "sessions verify", "sessions verify broken", "sessions repair broken", "sessions fork broken", "sessions fork monday --to monday",
        "sessions handoff monday --to monday", "sessions export monday --out text.zip", "sessions import text.zip",
        "sessions import monday.zip", "sessions import monday.zip --max-bytes 10 --as x --take-over",
        "sessions show folder", "sessions usage folder",
    ],
    2: [
        "sessions nothing", "sessions show", "sessions branch monday", "sessions branch monday --turn 9",
        "sessions fork monday --turn 0", "sessions list --namespace team", "sessions verify ''", "sessions list --jsn", "sessions search x --limit 0", "sessions search ' '", "sessions show ''",
        "sessions show monday --user ''", "chat --session '' --message Hi.", "sessions list --agent ' '", "sessions branch monday x",
        "sessions fork monday --at x", "sessions label monday x name", "sessions seen monday x",
        "sessions rename monday ' '", "sessions switch-model monday no-such-model", "sessions delete monday",
        "sessions import monday.zip --user bob", "chat --message hi --model no-such-model", "chat --context small",
    ],
    3: ["sessions import nowhere.zip", *(f"sessions {words.replace('S', 'nowhere')}" for words in ABOUT_ONE)],
}  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a session, one that is damaged, and a folder in the place of a third."""
    here = tmp_path_factory.mktemp("table")
    for session in ("monday", "broken"):
        for message in ("My name is Alice.", "It rains."):
            within(*shlex.split(f"chat --session {session} {WHO} --message"), message, cwd=here)
    ledger = here / FOLDER / "broken.log.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"user"', b'"us\xffer"', 1))
    (here / FOLDER / "folder.log.jsonl").mkdir()
    within(*shlex.split(f"sessions export monday --out monday.zip {WHO}"), cwd=here)
    (here / "text.zip").write_text("text")
    return here


@pytest.fixture
def here(kept: Path, tmp_path: Path) -> Path:
    """A copy of it to work in."""
    subprocess.run(["cp", "-R", f"{kept}/.", str(tmp_path)], check=True)
    return tmp_path


def words_of(line: str) -> list[str]:
    words = shlex.split(line)
    named = {word for word in words if word.startswith("--")}
    who = [word for pair in zip(*[iter(shlex.split(WHO))] * 2, strict=True) if pair[0] not in named for word in pair]
    return [*words, *who]


def checked(line: str, cwd: Path, code: int, **env: str) -> dict[str, Any]:
    """Run it with `--json`: one document, and for an error the same on standard error, in words of a shell."""
    done = within(*words_of(line), "--json", cwd=cwd, **env)
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    if "error" in document:
        assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr
        assert not PYTHON.search(done.stderr.replace(str(cwd), ""))
    return document


@pytest.mark.parametrize(("code", "line"), [(code, line) for code, lines in TABLE.items() for line in lines])
def test_the_table_of_exit_codes(here: Path, code: int, line: str) -> None:
    document = checked(line, here, code)
    if code in (2, 3):
        assert sorted(document)[:2] in (["error", "hints"], ["error", "type"])


@pytest.mark.parametrize("words", ["list", "search word", "usage", "import-java", *ABOUT_ONE])
def test_a_workspace_that_was_named_and_is_not_there_is_exit_3_and_is_not_made(tmp_path: Path, words: str) -> None:
    document = checked(f"sessions {words.replace('S', 'monday')} --workspace nowhere", tmp_path, 3)
    assert document["error"] == "there is no workspace nowhere; name one that is there with --workspace"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["list", "search word", "usage", "import-java"])
def test_the_usual_workspace_is_empty_until_something_is_in_it(tmp_path: Path, words: str) -> None:
    done = within("sessions", *words.split(), "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "env", "words"),
    [
        ("sessions verify monday", {"HARNESS_ANCHOR_KEY": "short"}, "HARNESS_ANCHOR_KEY has 5 characters"),
        ("transcripts list ws", {"HARNESS_ZONE": "Mars"}, "time zone 'Mars' is not known"),
    ],
)
def test_a_setting_that_cannot_work_is_named_as_it_was_set(
    here: Path, line: str, env: dict[str, str], words: str
) -> None:
    done = harness(*shlex.split(line), *(WHO.split() if "sessions" in line else ()), cwd=here, **env)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (0, "transcripts list ws"),
        (1, "transcripts convert ws --session monday --to html --out text.zip"),
        (2, "transcripts show ws"),
        (2, "transcripts show text.zip"),
        (2, "transcripts list ws --format nothing"),
        (2, "transcripts convert ws --session monday --to nothing"),
        (3, "transcripts show nowhere"),
        (3, "view nowhere"),
        (2, "quickstart --dir ws"),
    ],
)
def test_the_commands_about_files_have_the_same_exit_codes(here: Path, code: int, line: str) -> None:
    (here / FOLDER / "folder.log.jsonl").rmdir()
    done = harness(*shlex.split(line), "--json", cwd=here)
    assert (done.returncode, "error" in json.loads(done.stdout)) == (code, code > 0)


def test_a_reader_that_goes_away_is_141_and_no_complaint(here: Path) -> None:
    said = "\n".join(f"Number {number}: {'x' * 9_000}" for number in range(30))
    harness("chat", "--session", "long", *WHO.split(), cwd=here, stdin=said)
    with subprocess.Popen(
        [*PLAIN, "sessions", "show", "long", *WHO.split()],
        cwd=here,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(2) == b"20"
        process.stdout.close()
        assert (process.stderr.read(), process.wait(PATIENCE)) == (b"", 141)


@pytest.mark.parametrize(("closed", "code"), [("2>&-", 0), ("<&-", 0), (">&- 2>&- <&-", 1)])
def test_a_command_runs_with_a_stream_closed(here: Path, closed: str, code: int) -> None:
    line = f"{shlex.join(PLAIN)} sessions list {WHO} {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=here, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "transcripts list .",
        "transcripts list . --json",
        "transcripts show x --json",
        "sessions nothing --json",
    ],
)
@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_nobody_is_told_that_all_went_well_where_nothing_could_be_printed(
    tmp_path: Path, words: str, where: str
) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("there is no device here that is always full")
    line = f"{shlex.join(PLAIN)} {words} {where}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, check=False)
    said = done.stderr.decode()
    assert done.returncode in (1, 2, 3)
    assert "cannot write to standard output: " in said
    assert "Traceback" not in said


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no device here that is always full")
def test_output_that_cannot_be_written_is_an_error(here: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PLAIN, "sessions", "list", *WHO.split()],
            cwd=here,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write to standard output: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("--help",), ("sessions", "verify", "--help")], ids=" ".join)
def test_a_reader_of_the_help_that_goes_away_is_141_too(tmp_path: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PLAIN, *words], cwd=tmp_path, env=environment(), stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_key_that_is_not_set_is_something_missing_and_not_wrong_usage(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai", reason="needs the extra `openai`")
    pytest.importorskip("pydantic_ai", reason="needs the extra `openai`")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    document = checked("chat --session monday --message hi --model openai:gpt-5-mini", here, 3)
    assert document["type"] == "MissingSetting"
    assert document["error"].endswith("set the environment variable OPENAI_API_KEY")


def test_what_fails_in_the_middle_is_one_document_all_the_same(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> AsyncIterator[Msg]:
        yield Msg.user("It rains.")
        raise PersistenceError("the disk is gone; look for it")

    monkeypatch.setattr(TenantSessions, "read", broken)
    assert checked("sessions show monday", here, 1) == {
        "error": "the disk is gone; look for it",
        "type": "PersistenceError",
    }


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background of a shell


def test_a_command_says_which_lock_it_waits_for_and_ctrl_c_ends_it_with_130(here: Path) -> None:
    lock = FileLock(path := here / FOLDER / "monday.lock")
    assert lock.take()
    with (
        ExitStack() as stack,
        subprocess.Popen(
            [*PLAIN, "sessions", "rename", "monday", "title", *WHO.split()],
            cwd=here,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_interruptible,  # noqa: PLW1509 - the child of a test starts no threads before
        ) as process,
    ):
        stack.callback(lock.release)
        assert process.stderr is not None
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    assert line == f"INFO: waiting up to 30 s for the lock {path}, which another process or call holds\n"


def test_a_fault_of_ours_is_an_error_as_any_other_and_shows_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(TenantSessions, "list", broken)
    within("chat", *WHO.split(), "--session", "monday", "--message", "hi", cwd=tmp_path)
    done = within("sessions", "list", *WHO.split(), "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"].startswith("ZeroDivisionError: oh; harness has a fault: report it")
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ZeroDivisionError: oh; ")
