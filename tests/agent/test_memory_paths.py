"""No file and no folder that a model makes stands where its memory belongs; what stood there already is set aside."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness import HarnessAgent, RuntimeContext
from harness.errors import PathRefused
from harness.filesystem.local import LocalFilesystem
from harness.models import ModelRequest
from harness.testing import ScriptedModel

ALICE = RuntimeContext(session_id="s1", user_id="alice")
TODAY = f"memory/{datetime.now(UTC):%Y-%m-%d}.md"
IN_THE_WAY = [
    "memory", "Memory", "MEMORY.md/x", "memory.MD/x/y", f"{TODAY}/x", "memory/2020-01-01.md/x", "memory/archive",
    "memory/archive/2020-01-01.md/x", "memory/.consolidated.json/x",
]  # fmt: skip
FREE = [
    "MEMORY.md",
    TODAY,
    "memory/notes.md",
    "memory/archive/old.md",
    "memory/notes/x.md",
    "x/MEMORY.md/y",
    "x/memory",
]


@pytest.fixture
def files(workspace: Path) -> LocalFilesystem:
    return LocalFilesystem(workspace).for_namespace(("alice",))


@pytest.mark.parametrize("path", IN_THE_WAY)
async def test_what_would_stand_in_the_way_of_the_memory_is_refused(files: LocalFilesystem, path: str) -> None:
    await files.write("a/file.md", "x")
    for way in (files.write(path, "x"), files.append(path, "x"), files.write_bytes(path, b"x")):
        with pytest.raises(PathRefused, match=r"of the memory and cannot be a .*use another path"):
            await way
    with pytest.raises(PathRefused, match="of the memory"):
        await files.move("a/file.md", path)
    assert [item.path for item in (await files.ls()).items] == ["a"]


async def test_a_folder_is_not_moved_to_where_a_file_of_the_memory_belongs(files: LocalFilesystem) -> None:
    await files.write("a/file.md", "x")
    with pytest.raises(PathRefused, match=r"MEMORY\.md is kept for a file of the memory"):
        await files.move("a", "MEMORY.md")
    await files.move("a", "memory")
    assert await files.exists("memory/file.md")


@pytest.mark.parametrize("path", FREE)
async def test_other_names_and_the_memory_itself_are_written(files: LocalFilesystem, path: str) -> None:
    await files.write(path, "x")
    assert await files.exists(path)


def facts(request: ModelRequest) -> str:
    return "- Alice likes tea." if "long-term memory" in request.system else "Noted."


@pytest.mark.parametrize(
    "obstacle", ["memory", "MEMORY.md/x", f"{TODAY}/x", "memory/archive", "memory/.consolidated.json/x"]
)
async def test_what_stands_in_the_way_already_is_set_aside_and_said_and_facts_are_remembered(
    workspace: Path, obstacle: str
) -> None:
    tenant = workspace / "tenants" / "alice"
    (tenant / obstacle).parent.mkdir(parents=True)
    (tenant / obstacle).write_text("in the way")
    builder = HarnessAgent.builder().name("notes").model(ScriptedModel([facts] * 4)).workspace(workspace)
    async with builder.memory_flush().build() as agent:
        call = agent.call("I like tea.", ALICE)
        await call
    assert "Alice likes tea." in (tenant / TODAY).read_text()
    assert (tenant / "MEMORY.md").is_file()
    place = obstacle.removesuffix("/x")
    assert [text.partition(" ")[0] for text in call.warnings] == [place]
    kept = [path for path in tenant.rglob("*") if path.is_file() and path.read_text() == "in the way"]
    assert len(kept) == 1
    assert f"{place}.set-aside-" in str(kept[0])
    assert f"{kept[0].relative_to(tenant)}".removesuffix("/x") in call.warnings[0]
