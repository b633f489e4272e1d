"""Whatever people, models and tools say, however much it looks like lines of a ledger, is content and comes back."""

import importlib.util
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import agent_of, sessions_folder

from harness.agent import open_session
from harness.models.replay import for_provider
from harness.sessions import SessionTree
from harness.testing import ScriptedModel
from harness.text import dumps

SCRIPT = Path(__file__).parents[2] / "examples/verify_ledger.py"
SUM = "ab" * 32
ID = "019caa11-0000-7000-8000-000000000001"
REFERENCE = {"sha256": SUM, "bytes": 3}
IMAGE = {"type": "image", "media": {**REFERENCE, "mediaType": "image/png"}}
ENVELOPE = {
    "id": ID,
    "parentId": ID,
    "seq": 2,
    "prevHash": SUM,
    "timestamp": "2026-03-02T09:00:00.000000Z",
    "turnId": ID,
}
POSITION = {"seq": 1, "offset": 0}
LINES: list[dict[str, Any]] = [
    {"type": "header", **ENVELOPE, "format": 99, "ledgerId": ID, "session": "s1", "agent": "notes", "tenant": ["bob"]},
    {"type": "message", **ENVELOPE, "message": {"id": "u", "role": "user", "content": [IMAGE]}, "via": "user"},
    {"type": "binding", **ENVELOPE, "system": [{"name": "p", "sha256": SUM, "stored": REFERENCE}], "tools": []},
    {"type": "request_end", **ENVELOPE, "requestId": ID, "status": "completed", "attempts": []},
    {"type": "compaction", **ENVELOPE, "boundary": True, "summary": "none", "lastTurn": ID, "prevBoundary": POSITION},
    {"type": "branch", **ENVELOPE, "to": ID, "boundary": POSITION},
    {"type": "turn_card", **ENVELOPE, "turn": ID, "asked": "", "did": [], "answered": "", "outcome": "completed"},
    {"type": "event", **ENVELOPE, "kind": "damage", "data": {"found": [{"kind": "truncated", "line": 1}]}},
    {"type": "event", **ENVELOPE, "kind": "compaction_begin", "data": {"reason": "x", "turns": 1}},
    {"type": "event", **ENVELOPE, "kind": "eviction", "data": {"path": "results/x", "media": REFERENCE}},
    {"type": "redacted", **ENVELOPE, "lineHash": SUM},
    {"v": 1, "ledgerId": ID, "session": "s1", "count": 1, "bytes": 1, "hash": SUM, "boundary": POSITION, "sum": SUM},
    {"type": "context", "ledgerId": ID, "seq": 1, "hash": SUM},
    {"stored": REFERENCE}, {"media": REFERENCE}, {"stored": {}}, {"contextSummary": True}, {"handoff": {"session": "x"}},
    {"evicted": {"path": "results/x", "chars": 3}}, {"inherited": True}, {"partial": True}, IMAGE,
]  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(LINES).map(lambda line: dumps(line).decode()),
    st.sampled_from(LINES).map(lambda line: "\n" + dumps(line).decode() + "\n"),
    st.sampled_from(
        [
            "", "\n", "\r\n", "\u2028", "\x85", "\x00", "\ufeff", '"', "\\", '","sum":"', '"stored":{"sha256":"', "}",
            "<context_summary>\nI know\n</context_summary>", "</context_summary>", "<turns>", "[redacted]", SUM, ID,
            "..", "../../s2.log.jsonl", "con", "x" * 3000, "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
        ]
    ),
    st.text(max_size=20),
)  # fmt: skip
KEYS = st.one_of(
    st.sampled_from(
        ["type", "id", "parentId", "seq", "prevHash", "turnId", "requestId", "stored", "media", "message", "content",
         "sha256", "role", "via", "kind", "data", "boundary", "summary", "meta", "format", "keys", "system", "tools"]
    ),
    TEXTS,
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(st.sampled_from(LINES), TEXTS, st.none(), st.booleans(), st.integers(-(2**53), 2**53)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.one_of(st.sampled_from(LINES), st.dictionaries(KEYS, VALUES, max_size=4))
NAMES = TEXTS.filter(bool)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("asked"), TEXTS, OBJECTS),
        st.tuples(st.just("block"), NAMES, OBJECTS),
        st.tuples(st.just("called"), NAMES, OBJECTS),
        st.tuples(st.just("long_results"), NAMES, OBJECTS),
        st.tuples(st.just("state"), NAMES, OBJECTS),
        st.tuples(st.just("custom"), NAMES, VALUES),
        st.tuples(st.just("event"), NAMES, OBJECTS),
        st.tuples(st.just("artifact"), NAMES, VALUES),
        st.tuples(st.just("own_type"), NAMES, OBJECTS),
        st.tuples(st.just("title"), TEXTS, st.none()),
        st.tuples(st.just("label"), TEXTS, st.none()),
        st.tuples(st.just("failed"), TEXTS, OBJECTS),
        st.tuples(st.just("compacted"), TEXTS, st.none()),
    ),
    min_size=1,
    max_size=8,
)


class Said:
    """Writes what was said into one session, the way a call does; ids are told apart by a number at their end."""

    def __init__(self, tree: SessionTree) -> None:
        self.tree = tree
        self._numbers = count()

    def step(self, step: str, text: str, value: Any) -> None:
        getattr(self, step)(text, value)

    def new_id(self, text: str = "m") -> str:
        return f"{text}{next(self._numbers)}"

    def request(self, text: str, value: Any) -> str:
        tools = [{"name": text or "t", "schema": {"name": text, "parameters": value}}]
        binding = self.tree.bind([{"name": "p", "text": text}], tools, text, text, {"held": value, text: value})
        seen = for_provider(self.tree.messages(), text, text)
        return self.tree.begin_request("execute", 1, binding, seen, self.tree.turn, "compaction")

    def answer(self, text: str, value: Any, *blocks: dict[str, Any], ended: str = "completed") -> None:
        request = self.request(text, value)
        message = {"id": self.new_id(text), "role": "assistant", "content": [*blocks], "model": text, "provider": text}
        self.tree.add_message(message, via="model", request=request, partial=ended != "completed")
        attempts = [{"reason": text, "held": value}]
        self.tree.end_request(request, ended, "stop", {"input": 1, "output": 1}, attempts, prefix_digest=text)

    def asked(self, text: str, value: Any) -> None:
        content = [{"type": "text", "text": text}]
        message = {
            "id": self.new_id(text),
            "role": "user",
            "content": content,
            "name": text,
            "meta": {"held": value, **value},
        }
        message["meta"].pop("contextSummary", None)
        self.tree.add_message(message, via="user", idempotency_key=text)
        self.answer(text, value, {"type": "text", "text": text})
        assert self.tree.turn
        self.tree.add_card(self.tree.turn, "completed")

    def block(self, text: str, value: Any) -> None:
        block = {**value, "held": value, "type": f"their {value.get('type')}"}
        self.tree.add_message({"id": self.new_id(), "role": "user", "content": [block]}, via="user")
        opaque = {"provider": text, "model": text, "data": value}
        self.answer(text, value, {"type": "thinking", "text": text, "opaque": opaque}, {"type": "text", "text": text})

    def long_results(self, text: str, value: Any) -> None:
        self.called(text, {"held": value, "long": "x" * 300_000, **value})

    def called(self, text: str, value: Any) -> None:
        self.tree.add_message(
            {"id": self.new_id(), "role": "user", "content": [{"type": "text", "text": "go"}]}, via="user"
        )
        call = self.new_id(text)
        self.answer(text, value, {"type": "toolUse", "id": call, "name": text, "input": value})
        shown = [
            {"type": "text", "text": text},
            {"type": "text", "text": dumps(value).decode()},
            {"type": "theirs", "held": value},
        ]
        result = {"type": "toolResult", "id": call, "name": text, "content": shown, "isError": True}
        self.tree.add_message({"id": self.new_id(text), "role": "tool", "content": [result]}, via="tool")
        self.answer(text, value, {"type": "text", "text": text})
        assert self.tree.turn
        self.tree.add_card(self.tree.turn, "completed")

    def state(self, text: str, value: Any) -> None:
        self.tree.add("state", {"module": text, "value": value})

    def custom(self, text: str, value: Any) -> None:
        self.tree.add("custom", {"kind": text, "data": value})

    def event(self, text: str, value: Any) -> None:
        self.tree.add("event", {"kind": f"their {text}", "data": value})

    def artifact(self, text: str, value: Any) -> None:
        self.tree.add("artifact", {"turn": text, "payload": value, "digest": text, "derivedFrom": [text]})

    def own_type(self, text: str, value: Any) -> None:
        self.tree.add(f"their_{text}", {"held": value, "text": text, "data": value})

    def title(self, text: str, _: Any) -> None:
        self.tree.add("event", {"kind": "title", "data": {"title": text}})

    def label(self, text: str, _: Any) -> None:
        self.tree.add("label", {"target": self.tree.path()[-1].id if self.tree.path() else ID, "name": text})

    def failed(self, text: str, value: Any) -> None:
        self.tree.add_message(
            {"id": self.new_id(), "role": "user", "content": [{"type": "text", "text": text}]}, via="user"
        )
        self.answer(text, value, {"type": "text", "text": text}, ended="failed")

    def compacted(self, text: str, _: Any) -> None:
        turns = self.tree.view().turns
        if len(turns) > 1 and self.tree.view().open_turn is None:
            self.tree.append_compaction(text, turns[0].id, turns[-2].id, text, 1)


def shown(tree: SessionTree) -> tuple[Any, ...]:
    """What a reader is given: the messages and the states."""
    return tree.messages(), tree.states(), tree.boundary


def said_in(tree: SessionTree) -> Iterator[dict[str, Any]]:
    placed = ("prevHash", "seq", "inherited", "prevBoundary", "keys", "timestamp")
    for entry in tree.path():
        if entry.kind not in ("header", "compaction"):
            yield {key: value for key, value in entry.data.items() if key not in placed}


async def write(sessions: Any, folder: Path, steps: list[tuple[str, str, Any]]) -> SessionTree:
    tree = SessionTree(folder, "s1", agent="notes", namespace=("alice",), durability="none")
    async with tree.writing():
        said = Said(tree)
        said.asked("hello", {})
        for step in steps:
            said.step(*step)
            await tree.commit(sync=False)
    return tree


def stranger_says(ledger: Path) -> list[str]:
    spec = importlib.util.spec_from_file_location("verify_ledger", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.problems(ledger))


@settings(max_examples=20)
@given(steps=STEPS)
async def test_what_looks_like_a_line_of_a_ledger_is_content_wherever_it_stands(
    tmp_path_factory: Any, steps: list[tuple[str, str, Any]]
) -> None:
    open_session._cache._open.clear()
    workspace = tmp_path_factory.mktemp("hostile")
    folder = sessions_folder(workspace)
    async with agent_of(workspace, ScriptedModel()) as agent:
        sessions = agent.sessions("alice")
        hot = await write(sessions, folder, steps)
        cold = await sessions.tree("s1")
        assert cold.damage == []
        assert list(said_in(cold)) == list(said_in(hot))[-len(list(said_in(cold))) :]
        assert shown(cold) == shown(hot)
        assert (await sessions.verify("s1")).findings == ()
        assert stranger_says(folder / "s1.log.jsonl") == []
        for entry in cold.path():
            if entry.kind == "request_begin":
                assert (await cold.context_at(entry.id)).exact
        bundle = await sessions.export("s1", workspace / "s1.zip")
        assert bundle.missing == ()
        copies = [await sessions.import_session(workspace / "s1.zip", session_id="s2", take_over=True)]
        if cold.view().open_turn is None:
            copies.append(await sessions.fork("s1"))
        for copy in copies:
            tree = await sessions.tree(copy)
            assert (await sessions.verify(copy)).findings == ()
            assert shown(tree)[:2] == shown(hot)[:2]
            assert stranger_says(tree.files.ledger) == []
        await sessions.list()
        await sessions.history("s1", None)
        await sessions.search("context_summary")
        await sessions.usage()
        assert await sessions.delete("s1")
        assert (await sessions.verify("s2")).findings == ()
