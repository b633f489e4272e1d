from __future__ import annotations

import pytest

from harness.tools import FILE_TOOLS, ToolCall, Toolkit

TOOLS = Toolkit(*FILE_TOOLS)


@pytest.fixture
def use(scope):
    """Calls a file tool as alice's model would; gives its text."""

    async def call(name: str, **given: object) -> str:
        return (await TOOLS.run(ToolCall("c", name, given), scope)).text

    return call


def test_the_model_sees_only_its_own_parameters():
    shown = {
        spec.name: (list(spec.parameters["properties"]), spec.parameters.get("required")) for spec in TOOLS.specs()
    }

    assert shown == {
        "read_file": (["path", "offset", "limit", "column", "width"], ["path"]),
        "write_file": (["path", "content"], ["path", "content"]),
        "edit_file": (["path", "old_string", "new_string", "replace_all"], ["path", "old_string", "new_string"]),
        "grep_files": (["pattern", "path", "glob"], ["pattern"]),
        "glob_files": (["pattern", "path"], ["pattern"]),
        "list_files": (["path"], None),
    }
    assert all(part.get("description") for spec in TOOLS.specs() for part in spec.parameters["properties"].values())


async def test_what_is_written_is_read_back_as_it_is(use):
    assert await use("write_file", path="notes/a.md", content="one\ntwo\r\n") == "Written to notes/a.md"
    assert await use("read_file", path="notes/a.md") == "one\ntwo\r\n"


async def test_a_file_is_not_overwritten(use):
    await use("write_file", path="a.md", content="one")

    assert (await use("write_file", path="a.md", content="two")).startswith("Error: a.md exists already")
    assert await use("read_file", path="a.md") == "one"


async def test_lines_can_be_read_in_parts_that_say_how_to_go_on(use):
    await use("write_file", path="a.md", content="0\n1\n2\n3\n")

    assert await use("read_file", path="a.md", limit=2) == "0\n1\n\n[lines 1 to 2 of 4; go on with offset=2]"
    assert await use("read_file", path="a.md", offset=2, limit=5) == "2\n3\n"
    assert (await use("read_file", path="a.md", offset=9)).startswith("Error: a.md has 4 lines")


async def test_a_long_file_is_read_in_pages_without_gap(use):
    lines = [f"line {n} {'x' * 90}\n" for n in range(1500)]
    await use("write_file", path="long.md", content="".join(lines))

    read, offset = "", 0
    for _ in range(10):
        page = await use("read_file", path="long.md", offset=offset)
        assert len(page) <= 40_100
        text, note, rest = page.partition("\n[lines ")
        read += text
        if not note:
            break
        offset = int(rest.rsplit("=", 1)[1].rstrip("]"))

    assert read == "".join(lines)


async def test_a_very_long_line_is_read_in_parts_without_gap(use):
    line = "".join(f"{n:05}" for n in range(9_000))
    await use("write_file", path="wide.md", content=f"{line}\nend\n")

    first = await use("read_file", path="wide.md")
    assert first == (
        f"{line[:20_000]}\n\n[characters 1 to 20000 of 45000 in line 1 of 2; go on with offset=0, column=20000]"
    )
    last = await use("read_file", path="wide.md", offset=0, column=40_000)
    assert last == f"{line[40_000:]}\n\n[characters 40001 to 45000 of 45000 in line 1 of 2; go on with offset=1]"
    assert await use("read_file", path="wide.md", offset=1) == "end\n"


async def test_a_part_of_a_line_is_as_wide_as_asked_for(use):
    await use("write_file", path="a.md", content="0123456789\n")

    part = await use("read_file", path="a.md", column=2, width=3)
    assert part == "234\n\n[characters 3 to 5 of 10 in line 1 of 1; go on with offset=0, column=5]"
    assert (await use("read_file", path="a.md", column=11)).startswith("Error: line 1 of a.md has 10 characters")


async def test_a_long_line_behind_short_ones_is_met_at_its_own_offset(use):
    await use("write_file", path="a.md", content=f"short\n{'y' * 50_000}\n")

    assert await use("read_file", path="a.md") == "short\n\n[lines 1 to 1 of 2; go on with offset=1]"
    assert (await use("read_file", path="a.md", offset=1)).endswith("go on with offset=1, column=20000]")


async def test_an_empty_file_is_said_to_be_empty(use):
    await use("write_file", path="empty.md", content="")

    assert await use("read_file", path="empty.md") == "[empty.md is empty]"


async def test_edits_are_counted(use):
    await use("write_file", path="a.md", content="red red blue")

    assert (
        await use("edit_file", path="a.md", old_string="blue", new_string="green") == "Edited a.md (1 replacement(s))"
    )
    assert (await use("edit_file", path="a.md", old_string="red", new_string="x")).startswith("Error: ")
    edited = await use("edit_file", path="a.md", old_string="red", new_string="x", replace_all=True)
    assert edited == "Edited a.md (2 replacement(s))"
    assert await use("read_file", path="a.md") == "x x green"


@pytest.mark.parametrize("old", ["", "absent"])
async def test_an_edit_that_cannot_be_made_is_an_error(use, old):
    await use("write_file", path="a.md", content="text")

    assert (await use("edit_file", path="a.md", old_string=old, new_string="x")).startswith("Error: ")
    assert await use("read_file", path="a.md") == "text"


async def test_grep_shows_path_line_and_text(use):
    await use("write_file", path="docs/a.md", content="no\nthe (key) is\n")
    await use("write_file", path="docs/b.txt", content="(key)\n")

    assert await use("grep_files", pattern="(key)") == "docs/a.md:2:the (key) is\ndocs/b.txt:1:(key)"
    assert await use("grep_files", pattern="(key)", glob="*.txt") == "docs/b.txt:1:(key)"
    assert await use("grep_files", pattern="(key)", path="docs/a.md") == "docs/a.md:2:the (key) is"
    assert await use("grep_files", pattern="nowhere") == "No matches found"


async def test_grep_that_finds_too_much_says_so(use):
    await use("write_file", path="a.md", content="hit\n" * 5000)

    found = await use("grep_files", pattern="hit")

    assert found.count("\n") < 1100
    assert found.endswith("[there may be more; name a path or a glob, or a longer text]")


async def test_glob_shows_sizes(use):
    await use("write_file", path="docs/a.md", content="12345")

    assert await use("glob_files", pattern="*.md") == "docs/a.md (5 bytes)"
    assert await use("glob_files", pattern="*.py") == "No matching files found"


async def test_lists_tell_folders_from_files(use):
    await use("write_file", path="docs/a.md", content="1")
    await use("write_file", path="b.md", content="12")

    assert await use("list_files") == "[FILE] b.md (2 bytes)\n[DIR]  docs"
    assert await use("list_files", path="docs") == "[FILE] docs/a.md (1 bytes)"
    assert (await use("list_files", path="nowhere")).startswith("Error: nowhere does not exist")


async def test_a_new_tenant_has_an_empty_folder(use):
    assert await use("list_files") == "Empty or not a directory: ."
    assert await use("glob_files", pattern="*") == "No matching files found"


@pytest.mark.parametrize("name", ["read_file", "list_files", "grep_files", "glob_files"])
async def test_patterns_and_paths_of_models_never_raise(use, name):
    for text in ("*" * 400, "[" * 100, "{a,b}" * 40, "**/" * 100, "\0", "(a+)+$", "x" * 5000, "", "😀", "%00"):
        given = {"pattern": text} if name == "glob_files" else {"path": text}
        answer = await use(name, **({"pattern": "x", **given} if name == "grep_files" else given))
        assert answer != ""
