"""No tool of one tenant reaches anything of another one, or of the harness, whatever path a model makes up."""

from __future__ import annotations

import asyncio
import json
import os
import random
from pathlib import Path

import pytest

from harness.tools import FILE_TOOLS, MEMORY_TOOLS, ToolCall, Toolkit

TOOLS = Toolkit(*FILE_TOOLS, *MEMORY_TOOLS)
SECRET = "canary-of-bob"

HOSTILE = [
    "../bob/secret.md",
    "../../tenants/bob/secret.md",
    "notes/../../bob/secret.md",
    "./../bob/secret.md",
    "..\\bob\\secret.md",
    "%2e%2e/bob/secret.md",
    "．．/bob/secret.md",
    "//bob/secret.md",
    "~/secret.md",
    "file:///etc/hostname",
    "/etc/hostname",
    "a\0b",
    "a\nb",
    "..",
    "agents/agent/sessions/s1.log.jsonl",
    "AGENTS/agent/sessions/s1.log.jsonl",
    "./agents/agent/sessions/s1.log.jsonl",
    "Agents./agent/sessions/s1.log.jsonl",
    "agents\u200b/agent/sessions/s1.log.jsonl",
    "ａｇｅｎｔｓ/agent/sessions/s1.log.jsonl",
    "tenant.json",
    "TENANT.JSON",
    "link-out/secret.md",
    "link-file",
    "link-agents/agent/sessions/s1.log.jsonl",
]


def call(name: str, **given: object) -> ToolCall:
    return ToolCall("c", name, given)


def attacks(path: str) -> list[ToolCall]:
    return [
        call("read_file", path=path),
        call("write_file", path=path, content="x"),
        call("edit_file", path=path, old_string=SECRET, new_string="x"),
        call("grep_files", pattern="canary", path=path),
        call("grep_files", pattern="canary", glob=path),
        call("glob_files", pattern=path),
        call("glob_files", pattern="*", path=path),
        call("list_files", path=path),
        call("memory_get", path=path),
        call("memory_get", path=f"memory/{path}"),
        call("memory_search", query=f"canary {path}"),
    ]


def listing(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and what is in it; links are named, not followed."""
    found: dict[str, bytes] = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            found[str(path.relative_to(folder))] = (
                path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            )
    return found


@pytest.fixture
async def alice(make_scope, tenants):
    """A call of alice's, beside bob's files, with links that lead out of her folder and into `agents/`."""
    bob = make_scope("bob", tenants.for_namespace(("bob",)))
    await TOOLS.run(call("write_file", path="secret.md", content=SECRET), bob)
    await TOOLS.run(call("write_file", path="memory/2026-01-01.md", content=SECRET), bob)
    alice = make_scope("alice", tenants.for_namespace(("alice",)))
    await TOOLS.run(call("write_file", path="mine.md", content="mine"), alice)
    root = tenants.root / "tenants" / "alice"
    ledger = root / "agents" / "agent" / "sessions" / "s1.log.jsonl"
    ledger.parent.mkdir(parents=True)
    ledger.write_text('{"text":"canary of the ledger"}\n')
    (root / "tenant.json").write_text('{"namespace":["alice"],"note":"canary"}')
    (root / "link-out").symlink_to(tenants.root / "tenants" / "bob")
    (root / "link-file").symlink_to(tenants.root / "tenants" / "bob" / "secret.md")
    (root / "link-agents").symlink_to("agents")
    return alice


@pytest.mark.parametrize("path", HOSTILE)
async def test_a_hostile_path_reads_nothing_and_changes_nothing_outside(alice, tenants, path):
    root = tenants.root.parent
    before = listing(root)

    results = [await TOOLS.run(attack, alice) for attack in attacks(path)]

    changed = {name for name, data in listing(root).items() if before.get(name) != data}
    assert not [result.text for result in results if "canary-of" in result.text or "canary of" in result.text]
    assert not {name for name in changed if not name.startswith("workspace/tenants/alice/")}
    assert not {
        name
        for name in changed
        if name.startswith(("workspace/tenants/alice/agents", "workspace/tenants/alice/tenant"))
    }


async def test_searches_of_everything_show_only_the_tenants_own(alice):
    listed = (await TOOLS.run(call("list_files"), alice)).text
    globbed = (await TOOLS.run(call("glob_files", pattern="**"), alice)).text
    grepped = (await TOOLS.run(call("grep_files", pattern="canary"), alice)).text
    remembered = (await TOOLS.run(call("memory_search", query="canary-of-bob"), alice)).text

    assert (listed, globbed) == ("[FILE] mine.md (4 bytes)", "mine.md (4 bytes)")
    assert grepped == "No matches found"
    assert remembered == "No matching memories found for: canary-of-bob"


async def test_no_result_names_where_the_host_keeps_the_files(alice, tenants):
    calls = [attack for path in HOSTILE for attack in attacks(path)]

    results = [await TOOLS.run(one, alice) for one in calls]

    assert not [result.text for result in results if str(tenants.root) in result.text]


async def test_the_path_corpus_stays_inside(alice, tenants, shared):
    ids = [item["id"] for item in json.loads((shared / "cases" / "B05" / "ids.json").read_text())]
    before = listing(tenants.root.parent)

    for path in ids:
        for attack in attacks(path):
            assert "canary-of" not in (await TOOLS.run(attack, alice)).text

    changed = {name for name, data in listing(tenants.root.parent).items() if before.get(name) != data}
    assert not {name for name in changed if not name.startswith("workspace/tenants/alice/")}


async def test_pattern_bombs_are_answered_while_others_go_on(alice, shared):
    cases = shared / "cases" / "B44"
    globs = [item["pattern"] for item in json.loads((cases / "globs.json").read_text())]
    texts = [item["pattern"] for item in json.loads((cases / "regex.json").read_text())]
    await TOOLS.run(call("write_file", path="a" * 80, content="a" * 100_000 + "!\n"), alice)
    calls = [call("glob_files", pattern=glob) for glob in globs]
    calls += [call("grep_files", pattern=text) for text in texts]
    calls += [call("grep_files", pattern="a", glob=glob) for glob in globs]
    calls += [call("memory_search", query=text) for text in texts]

    results = await asyncio.gather(*(TOOLS.run(one, alice) for one in calls))

    assert len(results) == len(calls)
    assert not [result.text for result in results if "took longer" in result.text]
    assert (await TOOLS.run(call("read_file", path="mine.md"), alice)).text == "mine"


async def test_many_users_at_once_see_only_their_own(make_scope, tenants):
    scopes = {user: make_scope(user, tenants.for_namespace((user,))) for user in (f"user{n}" for n in range(20))}
    chance = random.Random(7)

    async def live(user: str) -> list[str]:
        texts: list[str] = []
        for n in range(5):
            await TOOLS.run(call("write_file", path=f"memory/{n}.md", content=f"canary {user}. turn {n}"), scopes[user])
            await asyncio.sleep(chance.random() / 1000)
            calls = (
                call("read_file", path=f"memory/{n}.md"),
                call("grep_files", pattern="canary"),
                call("memory_search", query="canary", max_results=50),
                call("edit_file", path=f"memory/{n}.md", old_string="turn", new_string="Turn"),
            )
            texts += [(await TOOLS.run(one, scopes[user])).text for one in calls]
        return texts

    lives = dict(zip(scopes, await asyncio.gather(*map(live, scopes)), strict=True))

    for user, texts in lives.items():
        others = [f"canary {other}." for other in scopes if other != user]
        assert sum(f"canary {user}." in text for text in texts) == 15
        assert not [text for text in texts if any(other in text for other in others)]


async def test_a_tool_kept_from_one_call_serves_the_tenant_of_the_next(make_scope, tenants):
    read = TOOLS.get("read_file")
    for user in ("alice", "bob"):
        await tenants.for_namespace((user,)).write("me.md", user)

    for user in ("alice", "bob", "alice"):
        result = await read.run(call("read_file", path="me.md"), make_scope(user, tenants.for_namespace((user,))))
        assert result.text == user


async def test_without_files_of_the_call_there_is_no_file_tool(make_scope):
    result = await TOOLS.run(call("read_file", path="a.md"), make_scope("alice"))

    assert result.is_error
    assert result.text == "Error: the tool read_file is not available now; go on without it"
