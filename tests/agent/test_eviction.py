"""A large tool result is shown with both its ends, and every byte of it can be read back with the file tools."""

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, BOB, call_of, ledger, of_kind, sessions_folder
from fitkit import Windowed

from harness import HarnessAgent, RuntimeContext
from harness.agent import open_session
from harness.errors import ConfigError
from harness.filesystem import AbstractFilesystem, FsspecFilesystem
from harness.hooks import PostActing, ToolResultEvictionConfig, ToolResultEvictionHook
from harness.messages import Media, MediaBlock
from harness.models import ModelRequest, RetryPolicy
from harness.testing import ScriptedModel
from harness.tools import tool

LINES = "".join(f"{n:06} {'x' * 40}\n" for n in range(2_500))
"""120 000 characters."""


@tool
def dig() -> str:
    """Dig."""
    return LINES


def builder_of(workspace: Path, model: Any, *tools: Any) -> Any:
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).retry(RetryPolicy(base=0))
    return builder.without("workspace_context", "session_tools", "memory_tools").tools(dig, *tools)


def results(request: ModelRequest) -> list[str]:
    return [result.text for message in request.messages for result in message.tool_results]


def path_in(text: str) -> str:
    return text.partition("is the file ")[2].partition(" ")[0]


async def dig_once(workspace: Path, *more: Any, ctx: RuntimeContext = ALICE) -> tuple[ScriptedModel, str]:
    """A digging agent, and the path under which its result lies."""
    model = ScriptedModel([call_of("dig"), "done", *more])
    async with builder_of(workspace, model).build() as agent:
        await agent.call("Dig.", ctx)
    return model, path_in(results(model.requests[1])[0])


async def ask_tool(workspace: Path, name: str, ctx: RuntimeContext = ALICE, **given_input: Any) -> str:
    model = ScriptedModel([call_of(name, **given_input), "done"])
    async with builder_of(workspace, model).build() as agent:
        await agent.call("Use it.", ctx)
    return results(model.requests[-1])[-1]


async def test_a_result_of_80_000_characters_stays_whole_and_a_larger_one_is_cut(workspace: Path) -> None:
    @tool
    def just() -> str:
        """Just so much."""
        return "y" * 80_000

    model = ScriptedModel([[call_of("just"), call_of("dig")], "done"])
    async with builder_of(workspace, model, just).build() as agent:
        await agent.call("Dig.", ALICE)
    whole, cut = results(model.requests[1])
    assert whole == "y" * 80_000
    assert (cut[:2000], cut[-2000:]) == (LINES[:2000], LINES[-2000:])
    assert "[116000 of 120000 characters are left out here." in cut
    assert len(cut) < 4_500


async def test_the_note_names_the_call_and_a_path_that_the_ledger_names_too(workspace: Path) -> None:
    model, path = await dig_once(workspace)
    [use] = model.requests[1].messages[1].tool_uses
    assert f"The whole result of call {use.id} is the file {path} (2500 lines)" in results(model.requests[1])[0]
    [eviction] = of_kind(ledger(workspace), "eviction")
    assert (eviction["data"]["path"], eviction["data"]["call"], eviction["data"]["tool"]) == (path, use.id, "dig")
    assert (eviction["data"]["chars"], eviction["data"]["media"]["bytes"]) == (120_000, 120_000)


async def test_model_input_ledger_and_state_hold_the_same_short_text(workspace: Path) -> None:
    model, _ = await dig_once(workspace)
    text = results(model.requests[1])[0]
    logged = [
        entry["message"]["content"][0] for entry in of_kind(ledger(workspace), "message") if entry["via"] == "tool"
    ]
    assert [block["content"][0]["text"] for block in logged] == [text]
    context = sessions_folder(workspace).parent / "context" / "s1" / "memory_messages.jsonl"
    assert "002000 x" not in context.read_text()
    assert "000001 x" in context.read_text()


async def read_all(workspace: Path, path: str, **first: Any) -> str:
    """A file as a model reads it with `read_file`: part by part, as each part says."""
    read, given_input = "", {"offset": 0, **first}
    for _ in range(100):
        page = await ask_tool(workspace, "read_file", path=path, **given_input)
        text, note, more = page.rpartition("\n[")
        if not note or not more.endswith("]"):
            return read + page
        read += text.removesuffix("\n") if more.startswith("characters") else text
        if "go on with" not in more:
            return read
        wanted = dict(part.split("=") for part in more.rstrip("]").partition("go on with ")[2].split(", "))
        read += "\n" if more.startswith("characters") and "column" not in wanted else ""
        given_input = {name: int(value) for name, value in wanted.items()}
    raise AssertionError("the parts do not end")


async def test_every_byte_is_read_back_with_the_ordinary_tools(workspace: Path) -> None:
    _, path = await dig_once(workspace)
    assert await read_all(workspace, path) == LINES
    assert await ask_tool(workspace, "grep_files", pattern="001234 ") == f"{path}:1235:001234 {'x' * 40}"
    assert await ask_tool(workspace, "list_files", path="results") == f"[FILE] {path} (120000 bytes)"
    assert path in await ask_tool(workspace, "glob_files", pattern="*.txt")


async def test_a_result_that_is_one_line_is_read_back_too(workspace: Path) -> None:
    line = "".join(f"{n:05}," for n in range(20_000))

    @tool
    def one_line() -> str:
        """One line."""
        return line

    model = ScriptedModel([call_of("one_line"), "done"])
    async with builder_of(workspace, model, one_line).build() as agent:
        await agent.call("Go.", ALICE)
    assert await read_all(workspace, path_in(results(model.requests[1])[0])) == line


async def test_it_is_read_back_in_a_new_process_and_behind_a_boundary(workspace: Path) -> None:
    _, path = await dig_once(workspace)
    open_session._cache._open.clear()
    model = ScriptedModel(["fine", "SUMMARY"])
    async with builder_of(workspace, model).build() as agent:
        await agent.call("And?", ALICE)
        object.__setattr__(agent.config.compaction, "keep_messages", 0)
        assert await agent.sessions("alice").compact("s1")
    assert f"- result kept in: {path} (call " in of_kind(ledger(workspace), "compaction")[0]["summary"]
    assert (await ask_tool(workspace, "read_file", path=path, limit=1)).startswith("000000 x")


async def test_no_other_session_and_no_other_user_sees_it(workspace: Path) -> None:
    _, path = await dig_once(workspace)
    for ctx in (BOB, RuntimeContext(session_id="s2", user_id="alice")):
        assert (await ask_tool(workspace, "read_file", ctx, path=path)).startswith("Error: ")
        assert await ask_tool(workspace, "grep_files", ctx, pattern="001234 ") == "No matches found"


@pytest.mark.parametrize(
    ("name", "given_input"),
    [
        ("write_file", {"content": "mine"}),
        ("edit_file", {"old_string": "000001 ", "new_string": "mine "}),
    ],
)
async def test_nobody_changes_it(workspace: Path, name: str, given_input: dict[str, str]) -> None:
    _, path = await dig_once(workspace)
    assert (await ask_tool(workspace, name, path=path, **given_input)).startswith("Error: ")
    assert await read_all(workspace, path) == LINES


async def test_the_tenant_s_own_folder_of_that_name_stays_in_reach(workspace: Path) -> None:
    _, path = await dig_once(workspace)
    assert (
        await ask_tool(workspace, "write_file", path="results/mine.md", content="mine") == "Written to results/mine.md"
    )
    listed = await ask_tool(workspace, "list_files", path="results")
    assert listed == f"[FILE] {path} (120000 bytes)\n[FILE] results/mine.md (4 bytes)"
    assert await ask_tool(workspace, "read_file", path="results/mine.md") == "mine"


async def test_pictures_in_a_cut_result_stay_by_reference(workspace: Path) -> None:
    picture = Media.from_bytes(b"\x89PNG" * 10, "image/png")

    @tool
    def look() -> list[Any]:
        """Look."""
        return [LINES, MediaBlock(type="image", media=picture)]

    model = ScriptedModel([call_of("look"), "done"])
    async with builder_of(workspace, model, look).build() as agent:
        await agent.call("Look.", ALICE)
        report = await agent.sessions("alice").verify("s1")
    [message] = [entry for entry in of_kind(ledger(workspace), "message") if entry["via"] == "tool"]
    kinds = [block["type"] for block in message["message"]["content"][0]["content"]]
    assert (kinds, report.ok, report.files) == (["text", "image"], True, 2)


async def test_the_text_that_is_kept_counts_as_a_file_of_the_session(workspace: Path) -> None:
    _, _ = await dig_once(workspace)
    async with builder_of(workspace, ScriptedModel([])).build() as agent:
        assert (await agent.sessions("alice").verify("s1")).files == 1
        [kept] = [
            path
            for path in (sessions_folder(workspace) / "files").rglob("*")
            if path.is_file() and len(path.name) == 64
        ]
        kept.unlink()
        assert not (await agent.sessions("alice").verify("s1")).ok
        await agent.sessions("alice").delete("s1")
    assert not kept.exists()


async def test_what_is_redacted_is_not_kept_either(workspace: Path) -> None:
    @tool
    def leak() -> str:
        """Leak."""
        return f"{LINES}password=hunter2-hunter2\n{LINES}"

    model = ScriptedModel([call_of("leak"), "done"])
    async with builder_of(workspace, model, leak).redact().build() as agent:
        await agent.call("Go.", ALICE)
    stored = b"".join(path.read_bytes() for path in sessions_folder(workspace).rglob("*") if path.is_file())
    assert b"hunter2" not in stored


async def test_a_quarter_of_a_known_window_is_the_most(workspace: Path) -> None:
    model = Windowed(8_000, lambda request: "done" if results(request) else call_of("dig"), declares=True)
    async with builder_of(workspace, model).build() as agent:
        await agent.call("Dig.", ALICE)
    assert model.refused == []
    assert "is the file results/" in results(model.requests[-1])[0]


async def test_what_a_reading_tool_gives_is_cut_for_a_small_window_but_not_kept_again(workspace: Path) -> None:
    _, path = await dig_once(workspace)
    step = iter([call_of("read_file", path=path), "done"])
    model = Windowed(8_000, lambda _: next(step), declares=True)
    async with builder_of(workspace, model).build() as agent:
        await agent.call("Read.", ALICE)
    text = results(model.requests[-1])[-1]
    assert len(text) < 10_000
    assert text.splitlines()[-1].startswith("[cut: ")
    assert len(of_kind(ledger(workspace), "eviction")) == 1


async def test_it_can_be_configured_replaced_and_switched_off(workspace: Path) -> None:
    class Shouting(ToolResultEvictionHook):
        async def on_event(self, event: PostActing) -> PostActing | None:
            return event.change(result=event.result.model_copy(update={"content": ()}))

    model = ScriptedModel([call_of("dig"), "done"] * 3)
    small = ToolResultEvictionConfig(max_chars=1_000, preview_chars=10)
    for builder in (
        builder_of(workspace, model).tool_result_eviction(small),
        builder_of(workspace, model).hook(Shouting()),
        builder_of(workspace, model).without("tool_result_eviction"),
    ):
        async with builder.build() as agent:
            await agent.call("Dig.", RuntimeContext(user_id="alice"))
    shown = [results(request)[0] for request in model.requests[1::2]]
    assert (shown[0][:12], len(shown[0]) < 400, shown[1], shown[2]) == ("000000 xxx\n\n", True, "", LINES)


async def test_tools_that_are_left_out_of_it_stay_whole(workspace: Path) -> None:
    model = ScriptedModel([call_of("dig"), "done"])
    config = ToolResultEvictionConfig(excluded=frozenset({"dig"}))
    async with builder_of(workspace, model).tool_result_eviction(config).build() as agent:
        await agent.call("Dig.", ALICE)
    assert results(model.requests[1]) == [LINES]


async def test_in_a_store_it_works_as_on_a_disk(workspace: Path) -> None:
    model = ScriptedModel([call_of("dig"), "done"])
    store = FsspecFilesystem(f"memory://{workspace.parent.name}")
    async with builder_of(workspace, model).filesystem(store).build() as agent:
        await agent.call("Dig.", ALICE)
        path = path_in(results(model.requests[1])[0])
        model.add(call_of("read_file", path=path, limit=1), "done")
        await agent.call("Read.", ALICE)
    assert results(model.requests[-1])[-1].startswith("000000 x")


async def test_in_a_place_of_the_user_s_own_a_result_stays_whole(workspace: Path) -> None:
    class Own(AbstractFilesystem):
        pass

    def bare(_self: Any, *_: Any, **__: Any) -> Any:
        return own

    Own.__abstractmethods__ = frozenset()
    Own.for_namespace = bare  # type: ignore[method-assign]
    own = Own()  # type: ignore[abstract]
    model = ScriptedModel([call_of("dig"), "done"])
    async with builder_of(workspace, model).filesystem(own).build() as agent:
        await agent.call("Dig.", ALICE)
    assert results(model.requests[1]) == [LINES]


def test_without_the_file_tools_it_cannot_be_asked_for(workspace: Path) -> None:
    with pytest.raises(ConfigError, match="file tools"):
        builder_of(workspace, ScriptedModel([])).without("file_tools").tool_result_eviction().build()


@pytest.mark.parametrize("wrong", [{"max_chars": 999}, {"preview_chars": 0}, {"max_chars": 1000, "preview_chars": 501}])
def test_numbers_that_cannot_work_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="tool_result_eviction: "):
        ToolResultEvictionConfig(**wrong)


@settings(max_examples=12)
@given(text=st.text(st.sampled_from("ab\né漢\u2028\r💡 "), min_size=1_100, max_size=4_000))
async def test_whatever_the_text_it_is_read_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    @tool
    def say() -> str:
        """Say."""
        return text

    workspace = tmp_path_factory.mktemp("w")
    model = ScriptedModel([call_of("say"), "done"])
    small = ToolResultEvictionConfig(max_chars=1_000, preview_chars=10)
    async with builder_of(workspace, model, say).tool_result_eviction(small).build() as agent:
        await agent.call("Go.", ALICE)
        files = agent.config.filesystem.for_namespace(("alice",))
    path = path_in(results(model.requests[1])[0])
    assert not await files.exists(path)
    [kept] = [
        path for path in (sessions_folder(workspace) / "files").rglob("*") if path.is_file() and len(path.name) == 64
    ]
    assert kept.read_bytes().decode() == text
    assert (await ask_tool(workspace, "read_file", path=path)).startswith(text.replace("\u2028", "\u2028")[:100])
