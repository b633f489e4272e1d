"""Patterns of a model find what they say, and none of them stops the process."""

import asyncio
import fnmatch
import json
from collections.abc import Awaitable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import FilesystemError
from harness.filesystem import FileList, GrepResult, LocalFilesystem
from harness.filesystem.globs import Glob

NAMES = st.text("ab.-[]!", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.md", "a.md", True),
        ("*.md", "d/e/a.md", True),
        ("*.md", "a.md/b", False),
        ("d/*.md", "d/a.md", True),
        ("d/*.md", "x/d/a.md", True),
        ("d/*.md", "d/e/a.md", False),
        ("d/**/*.md", "d/a.md", True),
        ("d/**/*.md", "d/e/f/a.md", True),
        ("**/d/**", "x/d/y/z", True),
        ("**/d/**/e/*", "d/x/d/y/e/z", True),
        ("?.md", "ab.md", False),
        ("[ab].md", "b.md", True),
        ("[!ab].md", "b.md", False),
        ("*.{md,txt}", "a.txt", True),
        ("{a,b}/{c,d}", "b/c", True),
        ("{a,{b,c}}", "c", True),
        ("{a}", "{a}", True),
        ("/a.md", "a.md", True),
        ("./a.md", "a.md", True),
        (".*", ".hidden", True),
        ("A.md", "a.md", False),
    ],
)
def test_a_pattern_matches(pattern: str, path: str, matches: bool) -> None:
    assert Glob(pattern).matches(tuple(path.split("/"))) is matches


@given(st.text("ab*?[]!-.", min_size=1, max_size=12), NAMES)
def test_inside_one_name_it_means_what_the_standard_library_means(pattern: str, name: str) -> None:
    if pattern in ("**", "."):
        return
    if pattern.strip() == "..":
        return
    assert Glob(pattern).matches((name,)) is fnmatch.fnmatchcase(name, pattern)


@given(
    st.lists(st.sampled_from(["**", "*", "a", "b"]), min_size=1, max_size=6),
    st.lists(st.sampled_from("ab"), max_size=6),
)
def test_stars_over_folders_mean_what_trying_everything_finds(pattern: list[str], path: list[str]) -> None:
    def tried(pattern: list[str], path: list[str]) -> bool:
        if not pattern:
            return not path
        if pattern[0] == "**":
            return tried(pattern[1:], path) or (bool(path) and tried(pattern, path[1:]))
        return bool(path) and pattern[0] in ("*", path[0]) and tried(pattern[1:], path[1:])

    assert Glob("/".join(pattern)).matches(tuple(path)) is tried(["**", *pattern], path)


def pattern_error(pattern: str) -> str:
    """Nothing for a pattern that works, the word that its error must contain, or the whole of another error."""
    try:
        Glob(pattern).matches(("a", "b.md"))
    except FilesystemError as error:
        return "pattern" if "pattern" in str(error) else str(error)
    return ""


@given(st.text(min_size=1, max_size=60))
def test_any_text_is_a_pattern_or_an_ordinary_error(pattern: str) -> None:
    assert pattern_error(pattern) in ("", "pattern")


@pytest.mark.parametrize("pattern", ["", "  ", "../*", "a/../b", "x" * 513, "{a,b}" * 20])
def test_a_bad_pattern_is_an_ordinary_error(pattern: str) -> None:
    with pytest.raises(FilesystemError, match="pattern"):
        Glob(pattern)


EVIL = [
    ("*" * 60 + "z", "a" * 80),
    ("*a" * 100 + "*b", "a" * 250),
    ("**/" * 40 + "x", "/".join("a" * 60)),
    ("**/a/" * 100 + "b", "/".join("a" * 60)),
    ("[" * 400, "x"),
    ("!(*(a)b)*", "a" * 80),
]


@pytest.mark.parametrize(("pattern", "path"), EVIL)
def test_no_pattern_takes_longer_than_its_length_times_the_paths(pattern: str, path: str) -> None:
    # A matcher that tries everything would not end before the time limit of the test run.
    assert not Glob(pattern).matches(tuple(path.split("/")))


async def answer(attempt: Awaitable[FileList | GrepResult]) -> str:
    try:
        return "cut short" if (await attempt).truncated else "complete"
    except FilesystemError as error:
        return "refused" if "pattern" in str(error) else str(error)


async def ticks(stop: asyncio.Event) -> int:
    count = 0
    while not stop.is_set():
        await asyncio.sleep(0)
        count += 1
    return count


@pytest.mark.parametrize("file", ["globs.json", "regex.json"])
async def test_the_known_bad_patterns_leave_other_calls_alone(shared: Path, tmp_path: Path, file: str) -> None:
    fs, stop = LocalFilesystem(tmp_path / "w"), asyncio.Event()
    for number, case in enumerate(cases := json.loads((shared / "cases" / "B44" / file).read_bytes())):
        await fs.write_bytes(f"lines/{number}.txt", case.get("line", "").encode())
        if len(name := case.get("name", "x")) < 250:
            await fs.write_bytes(f"names/{number}/{name}", b"")
    ticking = asyncio.create_task(ticks(stop))
    for case in cases:
        for attempt in (fs.glob(case["pattern"]), fs.grep(case["pattern"])):
            assert await answer(attempt) in ("complete", "refused")
    stop.set()
    assert await ticking > len(cases)
