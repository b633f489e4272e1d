"""What a model may ask to be searched for: a query of few words, bounded in one place, and never given back whole."""

from __future__ import annotations

import pytest

from harness.errors import ConfigError
from harness.filesystem import pool
from harness.filesystem.local import LocalFilesystem
from harness.filesystem.namespaces import agent_root, tenant_root
from harness.messages import Msg
from harness.sessions import SessionTree
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.sessions.view.query import MAX_QUERY, MAX_WORDS
from harness.tools import FILE_TOOLS, MEMORY_TOOLS, SESSION_TOOLS, ToolCall, Toolkit

TOOLS = Toolkit(*FILE_TOOLS, *MEMORY_TOOLS, *SESSION_TOOLS)
SEARCHES = ["session_search", "memory_search", "recall"]
MANY = " ".join(f"w{number}" for number in range(MAX_WORDS + 1))


@pytest.fixture
def use(make_scope, tmp_path):
    """Calls a tool as a model would, beside a session that says little; gives the result's text."""

    async def call(name: str, **given: object) -> str:
        folder = agent_root(tenant_root(tmp_path, ("alice",)), "agent") / "sessions"
        tree = SessionTree(folder, "s1", agent="agent", namespace=("alice",))
        async with tree.writing():
            if tree.leaf is None:
                tree.add_message(Msg.user("hello").to_dict(), via="user")
                await tree.commit()
        files = LocalFilesystem(tmp_path).for_namespace(("alice",))
        scope = make_scope("alice", files, tree, SessionCatalog(folder, "agent", ("alice",)))
        return (await TOOLS.run(ToolCall("c", name, given), scope)).text

    return call


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("x" * (MAX_QUERY + 1), f"the query has {MAX_QUERY + 1} characters; give at most {MAX_QUERY}"),
        (MANY, f"the query has {MAX_WORDS + 1} different words; give at most {MAX_WORDS}"),
        # One character that stands for four words.
        ("\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM} " + MANY[3:], "different words; give at most"),
        (" ", "the query is empty"),
    ],
    ids=["long", "many words", "words that unfold", "empty"],
)
async def test_no_search_takes_more_words_than_it_can_look_for_in_time(use, name, query, said):
    found = await use(name, query=query)

    assert found.startswith("Error: ")
    assert said in found
    assert len(found) < 300


@pytest.mark.parametrize("name", SEARCHES)
async def test_as_many_words_as_are_allowed_are_looked_for(use, name):
    assert not (await use(name, query=" ".join(MANY.split()[1:]))).startswith("Error")


async def test_a_search_from_outside_has_the_same_bound(tmp_path):
    catalog = SessionCatalog(tmp_path, "agent", ("alice",))

    for query in ("x" * (MAX_QUERY + 1), MANY):
        with pytest.raises(ConfigError, match="give at most"):
            await catalog.search(query)


@pytest.mark.parametrize("name", SEARCHES)
async def test_a_query_that_finds_nothing_is_given_back_short_and_plain(use, name):
    found = await use(name, query="zebra\x1b[31m\x07\u202e " + "y" * 1_000)

    assert "zebra" in found
    assert len(found) < 400
    assert all(char.isprintable() or char == "\n" for char in found)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("memory_get", {"path": "{}"}),
        ("memory_get", {"path": "memory/{}"}),
        ("read_file", {"path": "{}"}),
        ("read_file", {"path": "a/../../{}"}),
        ("write_file", {"path": "agents/{}", "content": "x"}),
        ("write_file", {"path": "{}", "content": "x"}),
        ("edit_file", {"path": "{}", "old_string": "a", "new_string": "b"}),
        ("list_files", {"path": "{}"}),
        ("glob_files", {"pattern": "*", "path": "{}"}),
        ("grep_files", {"pattern": "x", "path": "{}"}),
        ("session_history", {"session_id": "{}"}),
        ("session_search", {"session_id": "{}", "query": "x"}),
        ("recall", {"id": "{}"}),
    ],
)
async def test_an_error_gives_back_no_long_path_and_no_control_character(use, name, given):
    hostile = "x\x1b[31m\u202e" + "y" * 100_000
    found = await use(name, **{key: value.replace("{}", hostile) for key, value in given.items()})

    assert len(found) < 3_000
    assert all(char.isprintable() or char == "\n" for char in found)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("session_search", {"query": "x"}),
        ("session_search", {"query": "x", "session_id": "s1"}),
        ("memory_search", {"query": "x"}),
        ("recall", {"query": "x"}),
        ("recall", {"turn": 1}),
        ("recall", {"id": "1.1"}),
        ("grep_files", {"pattern": "x"}),
        ("glob_files", {"pattern": "*"}),
    ],
)
async def test_searches_of_one_tenant_take_turns_so_that_threads_are_left_to_others(monkeypatch, use, name, given):
    whose, alone = [], pool.run_alone

    async def noted(key, work, /, *args, **kwargs):
        whose.append(key)
        return await alone(key, work, *args, **kwargs)

    monkeypatch.setattr(pool, "run_alone", noted)
    await use(name, **given)

    assert whose
    assert all("alice" in str(key) for key in whose)
