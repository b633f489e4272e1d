"""Tokens and money, from the ledgers alone: each request once, whatever happened to it."""

import builtins
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, BOB, agent_of, ledger, sessions_folder

from harness import RuntimeContext
from harness.agent import open_session
from harness.errors import HookError, ModelError, ModelRejected, ModelTimeout, ModelUnavailable, SessionNotFound
from harness.hooks import CompactionConfig, PostReasoning
from harness.messages import Usage
from harness.sessions.catalog.usage import report_of, requests_in
from harness.testing import ScriptedModel

TEN = Usage(input=10, cache_read=100, cache_write=5, output=3)


async def test_a_request_counts_its_tokens_with_the_cache_apart(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "two"], usage=TEN)) as agent:
        await agent.call("a", ALICE)
        await agent.call("b", ALICE)
        report = await agent.sessions("alice").usage("s1")
    total = report.billed
    assert (total.requests, total.completed, total.unknown, total.abandoned) == (2, 2, 0, 0)
    assert (total.input, total.cache_read, total.cache_write, total.output) == (20, 200, 10, 6)
    assert report.active == report.billed == report.by_session["s1"] == report.by_model["scripted:scripted"]
    assert [(row.purpose, row.status, row.tokens["input"]) for row in report.rows] == [("execute", "completed", 10)] * 2


async def test_what_nobody_reported_is_unknown_and_not_zero(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one"])) as agent:
        await agent.call("a", ALICE)
        report = await agent.sessions("alice").usage("s1")
    assert (report.billed.requests, report.billed.unknown, report.billed.uncosted) == (1, 1, 0)
    assert report.rows[0].tokens is None
    assert "usage" not in report.rows[0].to_dict()


async def test_a_left_branch_was_billed_and_is_not_active(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "two", "three"], usage=TEN)) as agent:
        call = agent.call("a", ALICE)
        await call
        await agent.call("b", ALICE)
        await agent.sessions("alice").branch("s1", call.entry_id)
        await agent.call("c", ALICE)
        report = await agent.sessions("alice").usage("s1")
    assert (report.billed.input, report.active.input) == (30, 20)
    assert [row.active for row in report.rows] == [True, False, True]


async def test_a_copy_counts_nothing_twice(workspace: Path) -> None:
    model = ScriptedModel(["one", "two", "three"], usage=TEN)
    async with agent_of(workspace, model) as agent:
        await agent.call("a", ALICE)
        await agent.call("b", ALICE)
        await agent.sessions("alice").fork("s1", to="copy")
        await agent.call("c", RuntimeContext(session_id="copy", user_id="alice"))
        everything = await agent.sessions("alice").usage()
        copy = await agent.sessions("alice").usage("copy")
        await agent.sessions("alice").fork("copy", to="copy of copy")
        again = await agent.sessions("alice").usage()
    assert (everything.billed.requests, everything.billed.input) == (3, 30)
    assert {name: total.input for name, total in everything.by_session.items()} == {"s1": 20, "copy": 10}
    assert (copy.billed.input, copy.active.input, copy.inherited.input) == (10, 10, 20)
    assert again.billed == everything.billed


async def test_tries_that_gave_no_answer_are_seen(workspace: Path) -> None:
    first = ScriptedModel([ModelTimeout("slow"), ModelTimeout("slow")], name="a", provider="p")
    second = ScriptedModel([ModelTimeout("slow"), "two"], name="b", provider="p", usage=TEN)
    from harness.models import RetryPolicy

    async with agent_of(workspace, first, fallback_models=second, retry=RetryPolicy(base=0, attempts=2)) as agent:
        await agent.call("a", ALICE)
        report = await agent.sessions("alice").usage("s1")
    assert [(row.model, row.status, len(row.attempts)) for row in report.rows] == [
        ("a", "timeout", 2),
        ("b", "completed", 2),
    ]
    assert (report.billed.requests, report.billed.completed, report.billed.abandoned) == (2, 1, 3)
    assert {name: total.abandoned for name, total in report.by_model.items()} == {"p:a": 2, "p:b": 1}


def counted(error: ModelError, usage: Usage) -> ModelError:
    error.usage = usage
    return error


async def test_tries_that_were_billed_and_gave_no_answer_are_billed_and_not_active(workspace: Path) -> None:
    broken = [counted(ModelUnavailable("broke off"), Usage(input=7, output=1)), ModelTimeout("slow")]
    first = ScriptedModel([*broken, "one"], usage=TEN)
    async with agent_of(workspace, first) as agent:
        await agent.call("a", ALICE)
        report = await agent.sessions("alice").usage("s1")
    (end,) = (entry for entry in ledger(workspace) if entry["type"] == "request_end")
    assert [attempt.get("usage") for attempt in end["attempts"]] == [
        {"input": 7, "cacheRead": 0, "cacheWrite": 0, "output": 1}, None, None,
    ]  # fmt: skip
    assert end["usage"]["input"] == 10
    assert (report.billed.input, report.billed.output, report.billed.abandoned) == (17, 4, 2)
    assert (report.active.input, report.active.output) == (10, 3)
    assert report.rows[0].to_dict()["abandonedUsage"]["input"] == 7


async def test_a_failed_request_whose_tokens_are_known_is_not_unknown(workspace: Path) -> None:
    refused = counted(ModelRejected("refused"), Usage(input=4))
    async with agent_of(workspace, ScriptedModel([refused])) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("a", ALICE)
        report = await agent.sessions("alice").usage("s1")
    assert (report.billed.unknown, report.billed.input, report.active.input) == (0, 4, 0)


async def test_an_answer_that_a_hook_refuses_was_billed_all_the_same(workspace: Path) -> None:
    class Refuses:
        async def on_event(self, event: Any) -> Any:
            if isinstance(event, PostReasoning):
                raise ValueError("not that")
            return event

    async with agent_of(workspace, ScriptedModel(["one"], usage=TEN), hooks=[Refuses()]) as agent:
        with pytest.raises(HookError):
            await agent.call("a", ALICE)
        report = await agent.sessions("alice").usage("s1")
    assert (report.billed.input, report.billed.cache_read, report.billed.abandoned) == (10, 100, 1)
    assert (report.active.input, report.active.requests, report.active.completed) == (0, 1, 0)


async def test_side_requests_count_with_their_purpose(workspace: Path) -> None:
    model = ScriptedModel(["one", "two", "SUMMARY", "three"], usage=TEN)
    async with agent_of(workspace, model, compaction=CompactionConfig(5, 2)) as agent:
        for prompt in "abc":
            await agent.call(prompt, ALICE)
        report = await agent.sessions("alice").usage("s1")
    assert [row.purpose for row in report.rows] == ["execute", "execute", "summarize", "execute"]
    assert report.billed.input == 40


async def test_a_request_that_a_crash_cut_off_is_unfinished(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one"], usage=TEN)) as agent:
        await agent.call("a", ALICE)
    path = sessions_folder(workspace) / "s1.log.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'{"type":"request_end"') + 30])
    open_session._cache._open.clear()
    async with agent_of(workspace, ScriptedModel()) as agent:
        report = await agent.sessions("alice").usage("s1")
    assert [(row.status, row.tokens) for row in report.rows] == [("unfinished", None)]


async def test_a_user_sees_only_what_is_his(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "two"], usage=TEN)) as agent:
        await agent.call("a", ALICE)
        await agent.call("b", BOB)
        assert (await agent.sessions("alice").usage()).billed.requests == 1
        assert (await agent.sessions("carol").usage()).billed.requests == 0
        with pytest.raises(SessionNotFound):
            await agent.sessions("alice").usage("nowhere")


async def test_prices_are_applied_where_there_are_any(workspace: Path) -> None:
    pytest.importorskip("genai_prices")
    known = ScriptedModel(["one"], name="gpt-5-mini", provider="openai", usage=Usage(input=1_000_000, output=1_000_000))
    strange = ScriptedModel(["two"], name="no-such-model", provider="nobody", usage=TEN)
    async with agent_of(workspace, known) as agent:
        await agent.call("a", ALICE)
        await agent.call("b", ALICE, model=strange)
        report = await agent.sessions("alice").usage("s1")
    cost, unknown = [row.cost for row in report.rows]
    assert cost is not None
    assert cost > Decimal("0.1")
    assert unknown is None
    assert (report.billed.cost, report.billed.uncosted) == (cost, 1)
    assert report.by_model["nobody:no-such-model"].cost is None
    assert report.to_dict()["billed"]["cost"] == str(cost)


async def test_cached_tokens_are_priced_as_such(workspace: Path) -> None:
    pytest.importorskip("genai_prices")
    from harness.sessions.catalog.prices import find_price

    fresh = find_price("openai", "gpt-5-mini", {"input": 1_000_000})
    cached = find_price("openai", "gpt-5-mini", {"cacheRead": 1_000_000})
    assert fresh is not None
    assert cached is not None
    assert Decimal(0) < cached < fresh


async def test_without_the_package_everything_is_uncosted(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "genai_prices":
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    model = ScriptedModel(["one"], name="gpt-5-mini", provider="openai", usage=TEN)
    async with agent_of(workspace, model) as agent:
        await agent.call("a", ALICE)
        report = await agent.sessions("alice").usage()
    assert (report.billed.cost, report.billed.uncosted) == (None, 1)
    assert "cost" not in report.to_dict()["billed"]


async def test_the_report_is_json_and_can_show_every_request(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([ModelRejected("no")], usage=TEN)) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("a", ALICE)
        report = await agent.sessions("alice").usage()
    data = json.loads(json.dumps(report.to_dict(rows=True)))
    assert [row["status"] for row in data["requests"]] == ["failed"]
    assert data["billed"]["abandoned"] == 1
    assert "requests" not in report.to_dict()


def test_a_circle_among_damaged_lines_holds_nobody(tmp_path: Path) -> None:
    lines = [
        {"type": "request_begin", "id": "a", "parentId": "b", "binding": "x"},
        {"type": "request_end", "id": "b", "parentId": "a", "requestId": "a", "usage": {"input": "many", "output": 2}},
    ]
    [row] = requests_in("s", lines, lambda *_: None)
    assert (row.tokens, row.active, row.provider) == ({"output": 2}, True, "")
    assert report_of([row]).billed.output == 2


async def test_the_ledger_is_all_it_needs(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one"], usage=TEN)) as agent:
        await agent.call("a", ALICE)
        before = await agent.sessions("alice").usage("s1")
    for path in sessions_folder(workspace).iterdir():
        if path.name != "s1.log.jsonl":
            path.unlink()
    open_session._cache._open.clear()
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert await agent.sessions("alice").usage("s1") == before
    assert len(ledger(workspace)) > 1


async def test_what_an_import_took_over_counts_nothing_twice(workspace: Path, tmp_path: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "two"], usage=TEN)) as agent:
        sessions = agent.sessions("alice")
        await agent.call("a", ALICE)
        await sessions.export("s1", tmp_path / "bundle.zip")
        await sessions.import_session(tmp_path / "bundle.zip", session_id="copy", take_over=True)
        await agent.call("b", RuntimeContext(session_id="copy", user_id="alice"))
        everything, copy = await sessions.usage(), await sessions.usage("copy")
        await sessions.delete("s1")
        left = await sessions.usage()
    assert {name: total.input for name, total in everything.by_session.items()} == {"s1": 10, "copy": 10}
    assert (copy.billed.input, copy.inherited.input) == (10, 10)
    assert (left.billed.input, left.inherited.input) == (10, 10)
