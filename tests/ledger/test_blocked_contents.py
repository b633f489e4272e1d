"""Something that is no file in the place of a large content: the session is exported as it is, and later ones go on."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder

from harness.context import RuntimeContext
from harness.sessions.moving import exporting
from harness.testing import ScriptedModel

LONG = "a contract " * 30_000
OTHER = RuntimeContext(session_id="s2", user_id="alice")


def put_in_the_way(content: Path, what: str) -> None:
    content.unlink()
    match what:
        case "a folder":
            (content / "within").mkdir(parents=True)
        case "a link to nothing":
            content.symlink_to(content.parent / "nowhere")
        case "a file for its folder":
            content.parent.rmdir()
            content.parent.write_bytes(b"no folder")


@pytest.mark.parametrize("what", ["a folder", "a link to nothing", "a file for its folder"])
async def test_what_is_no_file_is_missing_to_an_export_and_set_aside_by_the_next_who_needs_the_place(
    tmp_path, new_process, what
):
    async with agent_of(tmp_path, ScriptedModel(["ok"])) as agent:
        await agent.call(LONG, ALICE)
    [content] = sessions_folder(tmp_path).glob("files/??/*")
    put_in_the_way(content, what)
    new_process()
    async with agent_of(tmp_path, ScriptedModel(["ok", "ok"])) as agent:
        sessions = agent.sessions("alice")
        assert (await sessions.export("s1", tmp_path / "bundle")).missing == (content.name,)
        await agent.call(LONG, OTHER)
        assert (await sessions.verify("s2")).findings == ()
        await agent.call("next", ALICE)
        assert (await sessions.verify("s1")).findings == ()
    aside = [path.name for path in (sessions_folder(tmp_path) / "files").rglob("*.damaged-*")]
    assert len(aside) == 1


async def test_an_export_holds_what_there_was_when_it_began_and_can_be_imported(tmp_path, monkeypatch):
    async with agent_of(tmp_path, ScriptedModel(["ok", "ok"])) as agent:
        sessions, real = agent.sessions("alice"), exporting.named_contents
        await agent.call("one", ALICE)

        def while_a_call_goes_on(ledger: Path, *rest):
            # A turn with a content of its own is logged between the two looks at the ledger.
            agent.call(LONG, ALICE).block()
            return real(ledger, *rest)

        monkeypatch.setattr(exporting, "named_contents", while_a_call_goes_on)
        bundle = await sessions.export("s1", tmp_path / "bundle")
        monkeypatch.undo()
        assert [member.path for member in bundle.members if member.path.startswith("files/")] == []
        await sessions.delete("s1")
        await sessions.import_session(tmp_path / "bundle")
        assert [message.text for message in await sessions.history("s1")] == ["one", "ok"]
