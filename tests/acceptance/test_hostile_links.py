"""Links in a tenant's folder, seen through the agent's file tools: nothing outside is read, changed or listed."""

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from places import all_ids, changed_outside, listing

from harness.agent import HarnessAgent
from harness.context import RuntimeContext
from harness.errors import PersistenceError
from harness.messages import ToolResult, ToolUse
from harness.testing import ScriptedModel

SECRET = "secret-of-others"
CTX = RuntimeContext(session_id="s", user_id="user1")


def tools_on(path: str) -> list[ToolUse]:
    """Every file tool, on one path."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"path": path}),
        ("write_file", {"path": path, "content": "mine"}),
        ("edit_file", {"path": path, "old_string": SECRET, "new_string": "mine"}),
        ("list_files", {"path": path}),
        ("glob_files", {"pattern": "**/*", "path": path}),
        ("glob_files", {"pattern": f"{path}/**"}),
        ("grep_files", {"pattern": SECRET, "path": path}),
        ("memory_get", {"path": path}),
    ]
    return [ToolUse(id=f"c{number}", name=name, input=given) for number, (name, given) in enumerate(asked)]


async def use_tools(workspace: Path, uses: list[ToolUse], ctx: RuntimeContext = CTX) -> list[ToolResult]:
    """One agent call in which the model uses these tools; their results in call order."""
    model = ScriptedModel([uses, "done"])
    async with HarnessAgent.builder().name("a").model(model).workspace(workspace).build() as agent:
        await agent.call("use the tools", ctx)
    shown = model.requests[1].messages
    directive = max(place for place, message in enumerate(shown) if message.role == "user")
    return [result for message in shown[directive:] for result in message.tool_results]


@pytest.fixture
async def workspace(tmp_path: Path) -> Path:
    """Three tenants, of whom user10's name begins with user1's, and a folder that belongs to nobody."""
    workspace = tmp_path / "workspace"
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "secret.md").write_text(SECRET)
    (outside / "inner/deep.md").write_text(SECRET)
    for user in ("user10", "user2"):
        ctx = RuntimeContext(session_id="s", user_id=user)
        await use_tools(
            workspace, [ToolUse(id="w", name="write_file", input={"path": "own.md", "content": SECRET})], ctx
        )
    await use_tools(workspace, [ToolUse(id="w", name="write_file", input={"path": "own.md", "content": "mine"})])
    plant_links(workspace / "tenants/user1", outside)
    return workspace


def plant_links(root: Path, outside: Path) -> None:
    links = {
        "to-file": outside / "secret.md",
        "to-folder": outside,
        "to-neighbour": root.parent / "user10",
        "to-neighbour-relative": Path("../user10"),
        "to-itself": Path("to-itself"),
        "chain-1": Path("chain-2"),
        "chain-2": Path("to-folder"),
        "to-root": Path("/"),
        "to-agents": Path("agents"),
        "to-nothing": outside / "not-there.md",
        "memory": outside,
        "MEMORY.md": outside / "secret.md",
        "AGENTS.md": outside / "secret.md",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)


LINKED = [
    "to-file",
    "to-folder",
    "to-folder/secret.md",
    "to-folder/inner/deep.md",
    "to-folder/new.md",
    "to-folder/new/deeper.md",
    "to-neighbour/own.md",
    "to-neighbour/new.md",
    "to-neighbour-relative/own.md",
    "to-itself",
    "to-itself/x.md",
    "chain-1/secret.md",
    "chain-1/new.md",
    "to-root/etc/hostname",
    "to-agents/a/sessions/s.log.jsonl",
    "to-nothing",
    "memory/secret.md",
    "memory/new.md",
    "MEMORY.md",
    "AGENTS.md",
]


@pytest.mark.parametrize("path", LINKED)
async def test_no_file_tool_follows_a_link_out(tmp_path: Path, workspace: Path, path: str) -> None:
    before = listing(tmp_path)
    results = await use_tools(workspace, tools_on(path))
    assert len(results) == len(tools_on(path))
    told = "\n".join(result.text for result in results)
    assert SECRET not in told.replace(f"no {SECRET}", "")
    assert changed_outside(before, listing(tmp_path), "workspace/tenants/user1/agents/a/") == []


async def test_listing_and_grep_of_the_root_do_not_go_through_links(tmp_path: Path, workspace: Path) -> None:
    results = await use_tools(workspace, tools_on(""))
    told = "\n".join(result.text for result in results if not result.is_error)
    assert "own.md" in told
    assert SECRET not in told
    assert "deep.md" not in told


async def test_what_a_link_points_to_gets_into_no_prompt(tmp_path: Path, workspace: Path) -> None:
    model = ScriptedModel(["done"])
    async with HarnessAgent.builder().name("a").model(model).workspace(workspace).build() as agent:
        await agent.call("hello", RuntimeContext(session_id="another", user_id="user1"))
    shown = model.requests[0].system + "".join(message.text for message in model.requests[0].messages)
    assert SECRET not in shown


@contextmanager
def swapping(place: Path, target: Path) -> Iterator[None]:
    """Make and remove a link at `place` as fast as can be while the block runs; what stands there is removed."""
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place, ignore_errors=True)
            with suppress(FileExistsError):
                place.symlink_to(target)
                place.unlink()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


async def test_a_link_swapped_in_between_check_and_use_leads_nowhere(tmp_path: Path, workspace: Path) -> None:
    before = listing(tmp_path / "outside")
    told = []
    with swapping(workspace / "tenants/user1/swapped", tmp_path / "outside"):
        for number in range(40):
            uses = [*tools_on("swapped/secret.md")[:3], *tools_on(f"swapped/new-{number}.md")[:2]]
            told += [result.text for result in await use_tools(workspace, uses)]
    assert [text for text in told if SECRET in text] == []
    assert listing(tmp_path / "outside") == before


async def test_a_model_that_makes_a_folder_of_the_memory_file_does_not_lock_its_user_out(tmp_path: Path) -> None:
    spoil = ToolUse(id="w", name="write_file", input={"path": "MEMORY.md/x", "content": "x"})
    [refused] = await use_tools(tmp_path, [spoil])
    assert refused.is_error
    assert "MEMORY.md" in refused.text
    keep = ToolUse(id="k", name="write_file", input={"path": "MEMORY.md", "content": "x"})
    await use_tools(tmp_path, [keep])
    [result] = await use_tools(tmp_path, [ToolUse(id="r", name="read_file", input={"path": "MEMORY.md"})])
    assert result.text == "x"


def put_a_link(tmp_path: Path, workspace: Path, name: str) -> None:
    file = workspace / "tenants/user1/agents/a/sessions" / name
    os.replace(file, tmp_path / "moved")
    file.symlink_to(tmp_path / "outside/secret.md")


@pytest.mark.parametrize("name", ["s.log.jsonl", "s.lock"])
async def test_a_link_in_place_of_the_ledger_or_its_lock_ends_the_call_and_changes_nothing_behind_it(
    tmp_path: Path, workspace: Path, name: str
) -> None:
    put_a_link(tmp_path, workspace, name)
    before = listing(tmp_path / "outside")
    with pytest.raises(PersistenceError, match=name.replace(".", r"\.")):
        await use_tools(workspace, tools_on("own.md")[:1])
    assert listing(tmp_path / "outside") == before


@pytest.mark.parametrize("name", ["s.jsonl", "s.head.json", "sessions.json"])
async def test_a_link_in_place_of_a_copy_changes_nothing_behind_it_and_the_call_goes_on(
    tmp_path: Path, workspace: Path, name: str
) -> None:
    put_a_link(tmp_path, workspace, name)
    before = listing(tmp_path / "outside")
    [result] = await use_tools(workspace, tools_on("own.md")[:1])
    assert result.text == "mine"
    assert listing(tmp_path / "outside") == before


async def test_every_id_of_the_corpus_as_a_path_stays_in_the_tenants_files(tmp_path: Path, workspace: Path) -> None:
    before = listing(tmp_path)
    uses = [
        ToolUse(id=f"{number}-{use.id}", name=use.name, input=use.input)
        for number, path in enumerate(all_ids())
        if path.isprintable() or path.isascii()  # half a surrogate pair cannot be sent to a model's client
        for use in tools_on(path)
    ]
    for start in range(0, len(uses), 200):
        results = await use_tools(workspace, uses[start : start + 200])
        assert [result.text for result in results if SECRET in result.text.replace(f"no {SECRET}", "")] == []
    after = listing(tmp_path)
    assert changed_outside(before, after, "workspace/tenants/user1/") == []
    agents = {key.split("/")[4] for key in after if key.startswith("workspace/tenants/user1/agents/")}
    assert agents == {"a", "edit.lock"}  # the lock of the file tools; as an agent id it would be encoded
    sessions = "workspace/tenants/user1/agents/a/sessions/"
    kinds = {key.removeprefix(sessions).split(".", 1)[-1] for key in after if key.startswith(sessions)}
    assert kinds <= {"log.jsonl", "jsonl", "head.json", "lock", "json", "json.lock", "files"} | {
        kind for kind in kinds if kind.startswith("files")
    }
