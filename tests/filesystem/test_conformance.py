"""What every backend promises. The fixtures `place` and `fs` run each test on each of them."""

import asyncio
import json
from pathlib import Path

import pytest

from harness.errors import ConfigError, FileExists, FileMissing, FilesystemError, PathRefused
from harness.filesystem import AbstractFilesystem, EditResult, GrepMatch

HOSTILE = json.loads((Path(__file__).parent.parent / "data" / "hostile_paths.json").read_text())


async def paths(fs: AbstractFilesystem, folder: str = "") -> list[str]:
    return [item.path for item in (await fs.ls(folder)).items]


async def test_a_written_file_is_read_back(fs: AbstractFilesystem) -> None:
    made = await fs.write("notes/today.md", "one\ntwo\n")

    assert (made.path, made.is_dir, made.size) == ("notes/today.md", False, 8)
    assert (await fs.read("notes/today.md")).text == "one\ntwo\n"


async def test_write_refuses_a_name_that_is_taken(fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "first")

    with pytest.raises(FileExists):
        await fs.write("a.md", "second")
    assert (await fs.read("a.md")).text == "first"


async def test_of_two_writers_of_one_name_one_wins(fs: AbstractFilesystem) -> None:
    results = await asyncio.gather(*(fs.write("a.md", f"{n}") for n in range(6)), return_exceptions=True)

    assert [type(one).__name__ for one in results].count("FileExists") == 5


async def test_write_bytes_overwrites(fs: AbstractFilesystem) -> None:
    await fs.write_bytes("a.bin", b"\x00\xff long")
    await fs.write_bytes("a.bin", b"\xfe")

    assert await fs.read_bytes("a.bin") == b"\xfe"


async def test_an_empty_file_is_a_file(fs: AbstractFilesystem) -> None:
    await fs.write("empty", "")

    assert await fs.exists("empty")
    assert (await fs.read("empty")).text == ""


async def test_lines_are_cut_out(fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "zero\none\r\ntwo\u2028still two\nthree")
    cut = await fs.read("a.md", 1, 2)

    assert (cut.text, cut.offset, cut.lines, cut.total_lines) == ("one\r\ntwo\u2028still two\n", 1, 2, 4)
    assert (await fs.read("a.md", 3)).text == "three"


async def test_an_offset_beyond_the_end_is_an_error(fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "one\n")

    with pytest.raises(FilesystemError, match="1 lines"):
        await fs.read("a.md", 1)


@pytest.mark.parametrize("operation", ["read", "read_bytes", "ls"])
async def test_what_is_not_there_is_missing(fs: AbstractFilesystem, operation: str) -> None:
    with pytest.raises(FileMissing, match=r"nowhere/x\.md"):
        await getattr(fs, operation)("nowhere/x.md")


async def test_bytes_that_are_no_text_are_not_read_as_text(fs: AbstractFilesystem) -> None:
    await fs.write_bytes("a.bin", b"ok \xff")

    with pytest.raises(FilesystemError, match="no UTF-8"):
        await fs.read("a.bin")


async def test_a_folder_is_no_file(fs: AbstractFilesystem) -> None:
    await fs.write("d/x", "")

    for operation in (fs.read("d"), fs.write_bytes("d", b""), fs.edit("d", "a", "b")):
        with pytest.raises(FilesystemError, match="d is a folder"):
            await operation


async def test_a_file_is_no_folder(fs: AbstractFilesystem) -> None:
    await fs.write("f", "")

    with pytest.raises(FilesystemError, match="f is a file"):
        await fs.ls("f")
    with pytest.raises(FilesystemError, match="f is a file"):
        await fs.write("f/x", "")
    with pytest.raises(FileMissing):
        await fs.read("f/x")


async def test_an_untouched_place_is_empty(fs: AbstractFilesystem) -> None:
    assert await paths(fs) == []
    assert (await fs.glob("*")).items == ()
    assert (await fs.grep("x")).matches == ()
    assert not await fs.exists("a")


async def test_ls_shows_one_level_by_name(fs: AbstractFilesystem) -> None:
    for path in ("b.md", "a.md", "sub/deep/c.md", "sub.md"):
        await fs.write(path, "x")

    assert [(i.path, i.is_dir) for i in (await fs.ls()).items] == [
        ("a.md", False),
        ("b.md", False),
        ("sub", True),
        ("sub.md", False),
    ]
    assert await paths(fs, "sub/") == ["sub/deep"]
    assert await paths(fs, ".") == await paths(fs, "/") == await paths(fs, "")


async def test_every_listed_path_can_be_given_back(fs: AbstractFilesystem) -> None:
    names = ["plain.md", "with blank.md", "[ab]*?.md", "naïve-用户.md", "a%20b", "a+b@c#d", "-rf", "d/{x}", "!x"]
    for name in names:
        await fs.write(name, name)

    found = [item.path for item in (await fs.glob("**")).items]
    assert sorted(found) == sorted(names)
    assert [(await fs.read(path)).text for path in found] == found


async def test_a_star_in_a_name_touches_no_other_file(fs: AbstractFilesystem) -> None:
    for name in ("*.md", "a.md", "b.md"):
        await fs.write(name, name)

    await fs.move("*.md", "d/[ab].md")
    assert await fs.delete("d/[ab].md")
    assert await paths(fs) in (["a.md", "b.md"], ["a.md", "b.md", "d"])


async def test_edit_replaces_the_one_place(fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "one two three")

    assert await fs.edit("a.md", "two", "2") == EditResult("a.md", 1)
    assert (await fs.read("a.md")).text == "one 2 three"


async def test_edit_of_several_places_must_be_asked_for(fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "x x x")

    with pytest.raises(FilesystemError, match="3 times"):
        await fs.edit("a.md", "x", "y")
    assert await fs.edit("a.md", "x", "y", replace_all=True) == EditResult("a.md", 3)
    assert (await fs.read("a.md")).text == "y y y"


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("same", "same"), ("absent", "x")])
async def test_an_edit_that_cannot_work_changes_nothing(fs: AbstractFilesystem, old: str, new: str) -> None:
    await fs.write("a.md", "same")

    with pytest.raises(FilesystemError):
        await fs.edit("a.md", old, new)
    assert (await fs.read("a.md")).text == "same"


async def test_parallel_edits_all_arrive(fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "".join(f"<{n}>" for n in range(12)))
    await asyncio.gather(*(fs.edit("a.md", f"<{n}>", f"({n})") for n in range(12)))

    assert (await fs.read("a.md")).text == "".join(f"({n})" for n in range(12))


async def test_grep_takes_its_text_literally(fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "alpha\n(a+)+$ here\n")
    await fs.write("d/b.py", "x = '(a+)+$'\r\n")

    assert (await fs.grep("(a+)+$")).matches == (
        GrepMatch("a.md", 2, "(a+)+$ here"),
        GrepMatch("d/b.py", 1, "x = '(a+)+$'"),
    )
    assert [m.path for m in (await fs.grep("(a+)+$", glob="*.py")).matches] == ["d/b.py"]
    assert [m.path for m in (await fs.grep("(a+)+$", "d")).matches] == ["d/b.py"]
    assert [m.path for m in (await fs.grep("alpha", "a.md")).matches] == ["a.md"]


async def test_grep_passes_over_binary_files(fs: AbstractFilesystem) -> None:
    await fs.write_bytes("a.bin", b"word\x00")

    assert (await fs.grep("word")).matches == ()


async def test_grep_says_when_there_is_more(fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "x\n" * 1001)
    found = await fs.grep("x")

    assert (len(found.matches), found.truncated) == (1000, True)


async def test_glob_is_relative_to_its_base(fs: AbstractFilesystem) -> None:
    for path in ("a.md", "d/b.md", "d/e/c.md", "d/e/c.txt"):
        await fs.write(path, "x")

    async def found(pattern: str, base: str = "") -> list[str]:
        return [item.path for item in (await fs.glob(pattern, base)).items]

    assert await found("*.md") == ["a.md", "d/b.md", "d/e/c.md"]
    assert await found("d/*.md") == ["d/b.md"]
    assert await found("e/*", "d") == ["d/e/c.md", "d/e/c.txt"]
    assert await found("**/c.{md,txt}") == ["d/e/c.md", "d/e/c.txt"]


async def test_delete_takes_a_folder_with_all_in_it(fs: AbstractFilesystem) -> None:
    for path in ("d/a", "d/e/b", "dd"):
        await fs.write(path, "x")

    assert await fs.delete("d")
    assert not await fs.delete("d")
    assert await paths(fs) == ["dd"]


async def test_move_replaces_a_file(fs: AbstractFilesystem) -> None:
    await fs.write("a", "new")
    await fs.write("b/c", "old")
    await fs.move("a", "b/c")

    assert (await fs.read("b/c")).text == "new"
    assert not await fs.exists("a")


async def test_move_takes_a_folder_along(fs: AbstractFilesystem) -> None:
    await fs.write("d/e/x", "1")
    await fs.write("d/y", "2")
    await fs.move("d", "moved/here")

    assert [(await fs.read(p)).text for p in ("moved/here/e/x", "moved/here/y")] == ["1", "2"]
    assert not await fs.exists("d")


async def test_a_move_that_cannot_work_changes_nothing(fs: AbstractFilesystem) -> None:
    await fs.write("d/x", "1")
    await fs.write("f", "2")

    for source, target in (("d", "d/e"), ("f", "d"), ("absent", "g"), ("absent", "absent")):
        with pytest.raises(FilesystemError):
            await fs.move(source, target)
    await fs.move("f", "f")
    assert sorted(item.path for item in (await fs.glob("**")).items) == ["d/x", "f"]


@pytest.mark.parametrize("path", HOSTILE)
async def test_a_hostile_path_is_refused_by_every_method(fs: AbstractFilesystem, path: str) -> None:
    await fs.write("ok", "x")
    attempts = (
        fs.ls(path), fs.read(path), fs.write(path, "x"), fs.edit(path, "x", "y"), fs.grep("x", path), fs.glob("*", path),
        fs.read_bytes(path), fs.write_bytes(path, b"x"), fs.delete(path), fs.move(path, "new"), fs.move("ok", path),
        fs.exists(path),
    )  # fmt: skip
    for attempt in attempts:
        with pytest.raises(PathRefused):
            await attempt
    assert await paths(fs) == ["ok"]


@pytest.mark.parametrize("path", ["", " ", ".", "/", "./"])
async def test_the_root_itself_is_no_file(fs: AbstractFilesystem, path: str) -> None:
    for attempt in (fs.read(path), fs.write_bytes(path, b""), fs.delete(path), fs.move(path, "x")):
        with pytest.raises(PathRefused):
            await attempt


async def test_tenants_do_not_meet(place: AbstractFilesystem) -> None:
    user1, user10 = place.for_namespace(("user1",)), place.for_namespace(("user10",))
    await user1.write("a.md", "secret of user1")
    await user10.write("a.md", "secret of user10")

    assert [(m.path, m.text) for m in (await user1.grep("secret")).matches] == [("a.md", "secret of user1")]
    assert (await user10.read("a.md")).text == "secret of user10"
    assert not await place.for_namespace(()).exists("a.md")


async def test_a_tenants_part_cannot_be_divided(fs: AbstractFilesystem) -> None:
    with pytest.raises(ConfigError):
        fs.for_namespace(("bob",))


async def test_the_workspace_itself_does_not_reach_tenants(place: AbstractFilesystem, fs: AbstractFilesystem) -> None:
    await fs.write("a.md", "x")

    with pytest.raises(PathRefused):
        await place.ls("tenants")
    assert await paths(place) == []


async def test_a_tenant_sees_the_shared_definitions_and_nothing_else(
    place: AbstractFilesystem, fs: AbstractFilesystem
) -> None:
    for path in ("AGENTS.md", "knowledge/a.md", "knowledge/deep/b.md", "private.md"):
        await place.write(path, "shared")
    await fs.write("own.md", "x")

    assert await paths(fs) == ["AGENTS.md", "knowledge", "own.md"]
    assert await paths(fs, "knowledge") == ["knowledge/a.md", "knowledge/deep"]
    assert (await fs.read("knowledge/deep/b.md")).text == "shared"
    assert [m.path for m in (await fs.grep("shared")).matches] == ["AGENTS.md", "knowledge/a.md", "knowledge/deep/b.md"]
    assert not await fs.exists("private.md")


async def test_what_a_tenant_writes_hides_the_shared_file_for_it_alone(
    place: AbstractFilesystem, fs: AbstractFilesystem
) -> None:
    await place.write("knowledge/a.md", "shared")
    with pytest.raises(FileExists):
        await fs.write("knowledge/a.md", "mine")
    await fs.edit("knowledge/a.md", "shared", "mine")

    assert (await fs.read("knowledge/a.md")).text == "mine"
    assert (await place.for_namespace(("bob",)).read("knowledge/a.md")).text == "shared"
    assert await fs.delete("knowledge/a.md")
    assert (await fs.read("knowledge/a.md")).text == "shared"


async def test_nobody_removes_a_shared_file(place: AbstractFilesystem, fs: AbstractFilesystem) -> None:
    await place.write("skills/x/SKILL.md", "shared")

    for attempt in (fs.delete("skills"), fs.delete("skills/x/SKILL.md"), fs.move("skills/x/SKILL.md", "mine.md")):
        with pytest.raises(PathRefused, match="share"):
            await attempt
    assert (await place.read("skills/x/SKILL.md")).text == "shared"


async def test_no_error_names_the_place_on_the_host(fs: AbstractFilesystem, tmp_path: Path) -> None:
    await fs.write("d/x", "x")

    for attempt in (fs.read("d"), fs.read("absent"), fs.write("d/x", ""), fs.write("d/x/y", ""), fs.read("../up")):
        with pytest.raises(FilesystemError) as caught:
            await attempt
        assert str(tmp_path) not in str(caught.value)
        assert "tenants" not in str(caught.value)


async def test_append_makes_a_file_and_adds_to_its_end(fs: AbstractFilesystem) -> None:
    made = await fs.append("notes/today.md", "one\n")
    added = await fs.append("notes/today.md", "zwei é\n")

    assert ([made.path, made.size], added.size) == (["notes/today.md", 4], 12)
    assert await fs.read_bytes("notes/today.md") == "one\nzwei é\n".encode()


async def test_what_is_added_at_once_is_all_there_and_in_one_piece(fs: AbstractFilesystem) -> None:
    entries = [f"{n}: {'x' * 3000}\n" for n in range(12)]
    await asyncio.gather(*(fs.append("log.md", entry) for entry in entries))

    assert sorted((await fs.read("log.md")).text.splitlines(keepends=True)) == sorted(entries)


async def test_one_writer_s_texts_stay_in_order(fs: AbstractFilesystem) -> None:
    for n in range(20):
        await fs.append("log.md", f"{n}\n")

    assert (await fs.read("log.md")).text == "".join(f"{n}\n" for n in range(20))


async def test_adding_and_editing_at_once_lose_nothing(fs: AbstractFilesystem) -> None:
    await fs.write("log.md", "old\n")
    await asyncio.gather(fs.append("log.md", "a\n"), fs.edit("log.md", "old", "new"), fs.append("log.md", "b\n"))

    assert sorted((await fs.read("log.md")).text.split()) == ["a", "b", "new"]


async def test_append_refuses_a_folder_and_what_is_off_limits(fs: AbstractFilesystem) -> None:
    await fs.write("folder/a.md", "x")

    with pytest.raises(FilesystemError, match="folder"):
        await fs.append("folder", "x")
    for path in ("agents/x", "../x", "/x", "tenant.json"):
        with pytest.raises(PathRefused):
            await fs.append(path, "x")


async def test_adding_to_a_shared_definition_makes_a_copy_of_the_tenant_s_own(place: AbstractFilesystem) -> None:
    await place.write("AGENTS.md", "shared\n")
    await place.for_namespace(("alice",)).append("AGENTS.md", "alice's\n")

    assert (await place.for_namespace(("alice",)).read("AGENTS.md")).text == "shared\nalice's\n"
    assert (await place.for_namespace(("bob",)).read("AGENTS.md")).text == "shared\n"
