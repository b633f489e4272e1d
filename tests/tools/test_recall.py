"""`recall` as a model calls it: whole texts in pieces, this conversation's only."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.filesystem.namespaces import agent_root, tenant_root
from harness.messages import Media, MediaBlock, Msg, TextBlock, ToolResult, ToolUse
from harness.sessions import SessionTree
from harness.sessions.tree.results import keep_result
from harness.testing import ScriptedModel
from harness.tools import SESSION_TOOLS, ToolCall, Toolkit

TOOLS = Toolkit(*SESSION_TOOLS)


def tree_of(workspace: Path, user: str = "alice", session: str = "s1") -> SessionTree:
    folder = agent_root(tenant_root(workspace, (user,)), "agent") / "sessions"
    return SessionTree(folder, session, agent="agent", namespace=(user,))


async def dug(tree: SessionTree, number: int, *results: str, error: bool = False) -> None:
    """A turn in which a tool gave these results, in one message."""
    tree.add_message(Msg.user(f"question {number}"), via="user")
    uses = [ToolUse(id=f"c-{number}-{n}", name="dig", input={"n": n}) for n in range(len(results))]
    for message in (Msg.assistant(*uses), Msg.assistant(f"answer {number}")):
        binding = tree.bind([], [], "m", "p")
        request = tree.begin_request("execute", 1, binding, [], tree.turn, "compaction")
        tree.add_message(message, via="model", request=request)
        tree.end_request(request, "completed")
        if message.tool_uses:
            given = [
                ToolResult(id=use.id, name="dig", content=text, is_error=error)
                for use, text in zip(uses, results, strict=True)
            ]
            tree.add_message(Msg.tool(*given), via="tool")
    await tree.commit()


@pytest.fixture
def place(tmp_path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def recall(make_scope, place):
    """Calls the tool as a user's model would; gives the result."""

    async def call(user: str = "alice", session: str = "s1", model: object = None, **given: object) -> ToolResult:
        services = [tree_of(place, user, session), *([model] if model else [])]
        return await TOOLS.run(ToolCall("c", "recall", given), make_scope(user, *services, session=session))

    return call


@pytest.fixture
async def tree(place):
    """A conversation that is written to."""
    made = tree_of(place)
    async with made.writing():
        yield made


def body_of(text: str) -> str:
    head, _, body = text.partition("\n")
    assert head.startswith("[from earlier in this conversation: ")
    return body


async def read_on(recall, **target: object) -> tuple[str, int]:
    """A text read from its beginning to its end as its answers say, and in how many answers."""
    pieces: list[str] = []
    more: dict[str, object] = {}
    while True:
        text = (await recall(**target, **more)).text
        assert len(text) <= 29_000
        pieces.append(body_of(text))
        following = re.match(r'[^\n]*go on with recall\([^\n]*chars="([0-9-]+)"\)', text)
        if following is None:
            return "".join(pieces), len(pieces)
        more = {"chars": following[1]}


async def test_a_result_is_read_by_evidence_id_and_by_call_id(recall, tree):
    await dug(tree, 1, "one", "two")
    expected = "[from earlier in this conversation: result 1.2 of dig, 3 characters]\ntwo"
    for wanted in ("1.2", "evidence:1.2", "[evidence:1.2]", " 1.2 ", "c-1-1"):
        assert (await recall(id=wanted)).text == expected


async def test_a_call_id_that_looks_like_an_evidence_id_is_found_too(recall, tree):
    tree.add_message(Msg.user("look"), via="user")
    binding = tree.bind([], [], "m", "p")
    request = tree.begin_request("execute", 1, binding, [], tree.turn, "compaction")
    tree.add_message(Msg.assistant(ToolUse(id="7.7", name="dig", input={})), via="model", request=request)
    tree.end_request(request, "completed")
    tree.add_message(Msg.tool(ToolResult(id="7.7", name="dig", content="odd")), via="tool")
    await tree.commit()
    assert body_of((await recall(id="7.7")).text) == "odd"


async def test_an_error_is_called_an_error_and_media_are_named(recall, tree):
    await dug(tree, 1, "went wrong", error=True)
    tree.add_message(Msg.user("draw"), via="user")
    binding = tree.bind([], [], "m", "p")
    request = tree.begin_request("execute", 1, binding, [], tree.turn, "compaction")
    tree.add_message(Msg.assistant(ToolUse(id="p", name="draw", input={})), via="model", request=request)
    tree.end_request(request, "completed")
    picture = MediaBlock(type="image", media=Media.from_bytes(b"pixels", "image/png"))
    tree.add_message(Msg.tool(ToolResult(id="p", name="draw", content=(TextBlock(text="a cat"), picture))), via="tool")
    await tree.commit()
    assert (await recall(id="1.1")).text == (
        "[from earlier in this conversation: error 1.1 of dig, 10 characters]\nwent wrong"
    )
    assert (await recall(id="2.1")).text == (
        "[from earlier in this conversation: result 2.1 of draw, besides: image image/png 6 bytes, 5 characters]\na cat"
    )


async def test_a_turn_is_read_whole_with_calls_and_results(recall, tree):
    await dug(tree, 1, "one", "two")
    assert (await recall(turn=1)).text == (
        "[from earlier in this conversation: turn #1 of 1, 153 characters]\n"
        "[USER]: question 1\n\n"
        '[CALL c-1-0 of dig]: {"n":0}\n\n[CALL c-1-1 of dig]: {"n":1}\n\n'
        "[RESULT 1.1 of dig]: one\n\n[RESULT 1.2 of dig]: two\n\n"
        "[ASSISTANT]: answer 1"
    )


async def test_a_query_names_turns_and_evidence(recall, tree):
    await dug(tree, 1, "the code is 4711")
    await dug(tree, 2, "nothing")
    await dug(tree, 3)
    assert (await recall(query="code")).text == (
        "[from earlier in this conversation; read on with turn=<number> or id=<evidence id>]\n"
        "#1 [evidence:1.1] dig: the code is 4711"
    )
    assert (await recall(query="answer", limit=1)).text.splitlines()[1:] == ["#2 [ASSISTANT]: answer 2"]
    assert (await recall(query="zebra")).text == "Nothing said earlier in this conversation holds any word of: zebra"


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"lines": "2-3"}, "b\r\nc\u2028d\n"),
        ({"lines": "2"}, "b\r\n"),
        ({"lines": "3-"}, "c\u2028d\nlast"),
        ({"lines": "0-1"}, "a\n"),
        ({"lines": "4-99"}, "last"),
        ({"lines": "9-10"}, ""),
        ({"lines": "3-1"}, "c\u2028d\n"),
        ({"chars": "0-3"}, "a\nb"),
        ({"chars": "2"}, "b"),
        ({"chars": "6-"}, "\u2028d\nlast"),
        ({"chars": "9-999"}, "last"),
        ({"chars": "50-60"}, ""),
        ({"chars": "3-1"}, ""),
    ],
)
async def test_parts_are_exact_and_ranges_are_clamped(recall, tree, given, part):
    await dug(tree, 1, "a\nb\r\nc\u2028d\nlast")
    assert body_of((await recall(id="1.1", **given)).text) == part


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give exactly one of query, turn and id; none was given"),
        ({"query": "a", "id": "1.1"}, "query and id were given"),
        ({"query": "  "}, "the query is empty"),
        ({"query": "x" * 2_049}, "the query has 2049 characters; give at most 2048"),
        ({"turn": 9}, "there is no turn #9; this conversation has the turns #1 to #1"),
        ({"turn": -1}, "there is no turn #-1"),
        ({"id": "1.9"}, 'there is no result "1.9" in this conversation'),
        ({"id": "../../etc/passwd"}, 'there is no result "../../etc/passwd"'),
        ({"id": "1.1", "lines": "1-2", "chars": "1-2"}, "give lines or chars, not both"),
        ({"id": "1.1", "lines": "two"}, 'lines is "two"; give a range such as 1-200'),
        ({"id": "1.1", "chars": "-5"}, 'chars is "-5"; give a range such as 0-20000'),
    ],
)
async def test_what_cannot_be_meant_is_refused_with_what_to_do(recall, tree, given, said):
    await dug(tree, 1, "one")
    result = await recall(**given)
    assert result.is_error is True
    assert said in result.text


async def test_a_long_result_is_read_in_pieces_that_join_to_the_whole(recall, tree):
    whole = "".join(f"{n:06} {'é' * 40}\n" for n in range(2_000))
    await dug(tree, 1, whole)
    assert await read_on(recall, id="1.1") == (whole, 4)


async def test_a_long_turn_is_read_in_pieces_that_join_to_the_whole(recall, tree):
    await dug(tree, 1, "x" * 40_000, "y" * 40_000)
    text, pieces = await read_on(recall, turn=1)
    assert pieces == 3
    assert "[RESULT 1.1 of dig]: " + "x" * 40_000 + "\n\n[RESULT 1.2 of dig]: " + "y" * 40_000 in text


async def test_a_long_part_says_how_to_go_on_within_the_part(recall, tree):
    await dug(tree, 1, "x\n" * 40_000)
    text = (await recall(id="1.1", lines="1-20000")).text
    assert text.startswith(
        "[from earlier in this conversation: result 1.1 of dig, characters 0-28000 of 80000; "
        'go on with recall(id="1.1", chars="28000-40000")]\n'
    )


async def test_an_answer_takes_no_more_than_a_share_of_a_small_window(recall, tree):
    whole = "word " * 4_000
    await dug(tree, 1, whole)
    small = ScriptedModel(context_window=8_000)
    text = (await recall(id="1.1", model=small)).text
    assert 4_000 < len(text) < 8_000
    pieces, _ = await read_on(lambda **given: recall(model=small, **given), id="1.1")
    assert pieces == whole


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\r\u2028 "), max_size=60),
    cuts=st.lists(st.integers(0, 70), max_size=4),
)
async def test_pieces_of_any_text_join_to_it_byte_for_byte(make_scope, tmp_path_factory, text, cuts):
    tree = tree_of(tmp_path_factory.mktemp("any"))
    async with tree.writing():
        await dug(tree, 1, text)
    scope = make_scope("alice", tree)

    async def part(**given: object) -> str:
        return body_of((await TOOLS.run(ToolCall("c", "recall", {"id": "1.1", **given}), scope)).text)

    places = [0, *sorted(cuts), 1_000]
    chars = [await part(chars=f"{start}-{end}") for start, end in pairwise(places)]
    lines = [await part(lines=str(number)) for number in range(1, text.count("\n") + 2)]
    blocks = tree.view().turns[0].messages[2]["content"][0]["content"]
    stored = blocks[0]["text"] if blocks else ""
    assert "".join(chars).encode() == stored.encode()
    assert "".join(lines).encode() == stored.encode()


async def test_another_users_and_another_sessions_words_are_out_of_reach(recall, tree, place):
    await dug(tree, 1, "alice's secret")
    for user, session in (("bob", "s1"), ("alice", "s2")):
        other = tree_of(place, user, session)
        async with other.writing():
            await dug(other, 1, "mine")
            await dug(other, 2)
        assert body_of((await recall(user=user, session=session, id="1.1")).text) == "mine"
        assert "Nothing said earlier" in (await recall(user=user, session=session, query="secret")).text
        assert "secret" not in (await recall(user=user, session=session, turn=1)).text


async def test_an_unreadable_ledger_is_no_word_of_the_host(recall, place):
    made = tree_of(place)
    async with made.writing():
        await dug(made, 1, "one")
    made.files.ledger.unlink()
    made.files.ledger.mkdir()
    result = await recall(id="1.1")
    assert result.text == "Error: the conversation cannot be read at the moment; go on without it"


async def test_a_result_whose_file_is_lost_says_so_wherever_it_is_read(tree, recall):
    tree.add_message(Msg.user("dig"), via="user")
    use = ToolUse(id="c-1", name="dig", input={})
    binding = tree.bind([], [], "m", "p")
    request = tree.begin_request("execute", 1, binding, [], tree.turn, "compaction")
    tree.add_message(Msg.assistant(use), via="model", request=request)
    tree.end_request(request, "completed")
    evicted = {"path": keep_result(tree, "c-1", "dig", "w" * 9_000), "chars": 9_000}
    result = ToolResult(id="c-1", name="dig", content="a part").model_copy(update={"evicted": evicted})
    tree.add_message(Msg.tool(result), via="tool")
    await tree.commit()
    for kept in tree.files.blobs.glob("??/*"):
        kept.unlink()
    lost = "whose file of 9000 characters is lost: only what was shown of it is left"
    whole = (await recall(id="1.1")).text
    assert whole == f"[from earlier in this conversation: result 1.1 of dig, {lost}, 6 characters]\na part"
    assert lost in (await recall(id="1.1", chars="5000-6000")).text
    assert lost in (await recall(turn=1)).text
