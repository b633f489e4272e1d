"""The format of a file is found wherever in it the lines stand that tell it, however large the others are."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import HarnessAgent, RuntimeContext
from harness.errors import TranscriptRefused
from harness.transcripts import candidates, read, sniff


def line(number: int, size: int) -> bytes:
    """A line of which every format could be, but for its `uuid`, which stands behind what it says."""
    told: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": "x" * size}, "sessionId": "s"}
    return json.dumps({**told, "uuid": f"u{number}"}).encode() + b"\n"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stretches that are looked at first, a hundredth of what they are."""
    for name in ("_HEAD", "_TAIL"):
        monkeypatch.setattr(sniff, name, getattr(sniff, name) // 100)


SIZES = st.lists(st.sampled_from([10, 3000, 60_000, 150_000]), min_size=1, max_size=6)


@settings(max_examples=60)
@pytest.mark.usefixtures("small")
@given(SIZES, st.booleans())
def test_a_session_is_known_whatever_the_sizes_of_its_lines(tmp_path: Path, sizes: list[int], ends: bool) -> None:
    path = tmp_path / "s.jsonl"
    raw = b"".join(line(number, size) for number, size in enumerate(sizes))
    path.write_bytes(raw if ends else raw.removesuffix(b"\n"))

    assert len(read(path).turns) == len(sizes)
    assert [one.session_id for one in candidates(tmp_path)] == ["s"]


@pytest.mark.parametrize("behind", [(), (300_000,), (10, 300_000)])
def test_a_session_that_begins_with_a_large_picture_is_known(tmp_path: Path, behind: tuple[int, ...]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(line(n, size) for n, size in enumerate([4_300_000, *behind])))

    assert len(read(path).turns) == 1 + len(behind)


def test_a_session_is_known_by_what_stands_behind_a_line_too_large_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.transcripts.lines.MAX_LINE", 6_000_000)
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(0, 6_500_000) + line(1, 10) + b'{"none": "' + b"x" * 8_500_000 + b'"}\n')

    assert [turn.text for turn in read(path).turns] == ["x" * 10]


async def test_an_exported_session_is_refused_by_naming_what_takes_it_in_and_other_archives_are_not(
    tmp_path: Path,
) -> None:
    async with HarnessAgent.builder().model("offline").workspace(tmp_path / "workspace").build() as agent:
        await agent.call("Hello", RuntimeContext(session_id="monday"))
        await agent.sessions(None).export("monday", tmp_path / "monday.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("manifest.json", "{}")
    (tmp_path / "damaged.zip").write_bytes((tmp_path / "monday.zip").read_bytes()[:200])

    with pytest.raises(TranscriptRefused, match="no transcript; `harness sessions import`"):
        read(tmp_path / "monday.zip")
    for name in ("other.zip", "damaged.zip"):
        with pytest.raises(TranscriptRefused, match="no transcript of a format"):
            read(tmp_path / name)


@pytest.mark.usefixtures("small")
def test_of_a_large_file_that_is_no_session_little_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 500_000)
    seen: list[int] = []
    judge = sniff.judge_lines

    def counted(lines: Any, path: Path) -> Any:
        kept = list(lines)
        seen.append(len(kept))
        return judge(kept, path)

    monkeypatch.setattr(sniff, "judge_lines", counted)

    with pytest.raises(TranscriptRefused, match="no transcript"):
        read(path)
    assert sum(seen) < 20_000
