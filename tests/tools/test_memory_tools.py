from __future__ import annotations

import pytest

from harness.filesystem.base import AbstractFilesystem
from harness.tools import MEMORY_TOOLS, ToolCall, Toolkit

TOOLS = Toolkit(*MEMORY_TOOLS)


@pytest.fixture
async def use(scope):
    """Calls a memory tool of a user who has a little memory."""
    files = scope.get(AbstractFilesystem)
    await files.write("MEMORY.md", "# Facts\n- drinks green tea\n- 喜欢喝茶和咖啡\n- lives in Straße 7\n")
    await files.write("memory/2026-01-01.md", "tea before alpha\nalpha only\n")
    await files.write("memory/2026-01-02.md", "alpha tea, alpha tea\nTEA ALPHA in capitals\n")
    await files.write("memory/archive/old.md", "archived tea\n")
    await files.write("notes/tea.md", "tea elsewhere\n")

    async def call(name: str, **given: object) -> str:
        return (await TOOLS.run(ToolCall("c", name, given), scope)).text

    return call


async def test_all_words_count_in_any_order_and_case_and_as_asked_is_best(use):
    assert await use("memory_search", query="tea alpha") == (
        "Found 3 matches:\n"
        "\n"
        "memory/2026-01-02.md#2: TEA ALPHA in capitals\n"
        "memory/2026-01-02.md#1: alpha tea, alpha tea\n"
        "memory/2026-01-01.md#1: tea before alpha"
    )


async def test_scripts_without_spaces_are_searched_by_substring(use):
    assert await use("memory_search", query="喝茶") == "Found 1 matches:\n\nMEMORY.md#3: - 喜欢喝茶和咖啡"


async def test_letters_that_fold_are_found(use):
    assert "MEMORY.md#4: - lives in Straße 7" in await use("memory_search", query="STRASSE")


async def test_lines_with_some_of_the_words_are_offered_where_none_has_all(use):
    assert await use("memory_search", query="green alpha zebra", max_results=1) == (
        "No line holds all of: green alpha zebra\n"
        "Closest lines:\n"
        "\n"
        "memory/2026-01-02.md#1: alpha tea, alpha tea\n"
        "\n"
        "[there are more; add a word to the query]"
    )


async def test_nothing_found_and_nothing_asked_are_said(use):
    assert await use("memory_search", query="zebra") == "No matching memories found for: zebra"
    assert (await use("memory_search", query="  ")).startswith("Error: the query is empty")


async def test_the_number_of_results_is_bounded(use):
    found = await use("memory_search", query="alpha", max_results=2)

    assert found.startswith("Found 4 matches:\n\n")
    assert found.count("memory/") == 2


async def test_a_tenant_without_memory_finds_nothing(make_scope, tenants):
    scope = make_scope("bob", tenants.for_namespace(("bob",)))

    result = await TOOLS.run(ToolCall("c", "memory_search", {"query": "tea"}), scope)

    assert (result.text, result.is_error) == ("No matching memories found for: tea", False)


async def test_a_file_that_cannot_be_read_as_text_does_not_stop_a_search(use, scope):
    await scope.get(AbstractFilesystem).write_bytes("memory/2026-01-03.md", b"\xff\xfe tea zulu\n")

    assert await use("memory_search", query="zulu") == "Found 1 matches:\n\nmemory/2026-01-03.md#1: �� tea zulu"


async def test_lines_are_read_with_their_numbers(use):
    assert await use("memory_get", path="MEMORY.md", start_line=2, end_line=3) == (
        "2|- drinks green tea\n3|- 喜欢喝茶和咖啡"
    )
    assert await use("memory_get", path="memory/2026-01-01.md") == "1|tea before alpha\n2|alpha only"


@pytest.mark.parametrize("path", ["notes/tea.md", "memory/../notes/tea.md", "agents/x", "memoryx/a.md", "/etc/passwd"])
async def test_only_memory_is_read(use, path):
    assert (await use("memory_get", path=path)).startswith("Error: ")


async def test_a_range_that_is_none_is_an_error(use):
    assert (await use("memory_get", path="MEMORY.md", start_line=3, end_line=2)).startswith("Error: end_line 2")
    assert (await use("memory_get", path="MEMORY.md", start_line=99)).startswith("Error: MEMORY.md has 4 lines")
