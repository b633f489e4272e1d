"""Who is speaking, where it goes, and which model answers: decided for each call by itself."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, call_of, context_folder, json_lines, ledger, logged, of_kind, shown

from harness import HarnessAgent, RuntimeContext
from harness.context import current_scope
from harness.errors import AgentClosed, CallCancelled, ConfigError, InvalidId, ModelRejected, NoCurrentCall
from harness.hooks import PreCall
from harness.messages import Msg
from harness.sessions import InMemorySession, JsonSession, SessionKey
from harness.testing import ScriptedModel


async def test_a_missing_session_id_is_a_new_conversation_each_time(workspace: Path) -> None:
    model = ScriptedModel(["one", "two"])
    async with agent_of(workspace, model) as agent:
        first = agent.call("hi", RuntimeContext(user_id="alice"))
        second = agent.call("hi", RuntimeContext(user_id="alice"))
        await first
        await second
    assert re.fullmatch(r"session-\d{4}(-\d\d){5}-[0-9a-f]{8}", first.session_id)
    assert first.session_id != second.session_id
    assert [shown(request) for request in model.requests] == [[("user", "hi")], [("user", "hi")]]
    assert logged(workspace, first.session_id)[1] == ("model", "assistant", "one")


async def test_a_call_without_any_context_belongs_to_nobody(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi")
        await call
    header = ledger(workspace, call.session_id, "_")[0]
    assert (header["type"], header["tenant"], header["session"], header["agent"]) == (
        "header", [], call.session_id, "notes",
    )  # fmt: skip


def test_a_blank_user_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidId, match="user_id"):
        RuntimeContext(user_id="")


async def test_a_required_user_must_be_named(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"]), require_user=True) as agent:
        with pytest.raises(InvalidId, match="known users only"):
            agent.call("hi", RuntimeContext(session_id="s1"))
        with pytest.raises(InvalidId):
            agent.call("hi")
        assert (await agent.call("hi", ALICE)).text == "hello"


async def test_the_key_of_a_session_names_the_conversation_where_no_id_does(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", RuntimeContext(user_id="alice", session_key="from-key"))
        await call
    assert call.session_id == "from-key"
    assert logged(workspace, "from-key")[0] == ("user", "user", "hi")


async def test_a_session_of_a_call_takes_track_1_elsewhere_and_leaves_track_2(workspace: Path, tmp_path: Path) -> None:
    store = JsonSession(tmp_path / "elsewhere")
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        await agent.call("hi", ALICE.with_changes(session=store))
    [messages] = (tmp_path / "elsewhere").rglob("memory_messages.jsonl")
    assert [message["role"] for message in json_lines(messages)] == ["user", "assistant"]
    assert len(logged(workspace)) == 2
    assert not context_folder(workspace).exists()


async def test_a_session_key_only_says_where_track_1_goes(workspace: Path) -> None:
    store = InMemorySession()
    ctx = ALICE.with_changes(session=store, session_key="another place")
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        await agent.call("hi", ctx)
    assert await store.list_keys(("alice",), "notes") == [SessionKey(("alice",), "notes", "another place")]
    assert len(logged(workspace, "s1")) == 2


@pytest.mark.parametrize("key", [SessionKey(("bob",), "notes", "s1"), SessionKey(("alice",), "diary", "s1")])
async def test_a_key_of_somebody_else_is_refused(workspace: Path, key: SessionKey) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ConfigError, match="session_key belongs to"):
            agent.call("hi", ALICE.with_changes(session_key=key))


async def test_one_store_for_all_keeps_two_users_of_one_key_apart(workspace: Path) -> None:
    store = InMemorySession()
    async with agent_of(workspace, ScriptedModel(["for alice", "for bob"]), session=store) as agent:
        for user in ("alice", "bob"):
            await agent.call("hi", RuntimeContext(session_id="s1", user_id=user))
    texts = [
        (await store.get_list(SessionKey((user,), "notes", "s1"), "memory_messages"))[1]["content"][0]["text"]
        for user in ("alice", "bob")
    ]
    assert texts == ["for alice", "for bob"]


async def test_a_namespace_factory_decides_the_tenant(workspace: Path) -> None:
    async with agent_of(
        workspace, ScriptedModel(["hello"]), namespace=lambda ctx: ("acme", ctx.user_id or "nobody")
    ) as agent:
        await agent.call("hi", ALICE)
    assert len(logged(workspace, user="acme+alice")) == 2


async def test_a_model_can_be_named_for_one_call(workspace: Path) -> None:
    usual, other = ScriptedModel(["usual"]), ScriptedModel(["other"], name="other")
    async with agent_of(workspace, usual) as agent:
        replies = [await agent.call("hi", ALICE, model=other), await agent.call("hi", ALICE)]
    assert [(reply.text, reply.model) for reply in replies] == [("other", "other"), ("usual", "scripted")]
    assert [entry["model"] for entry in of_kind(ledger(workspace), "binding")] == ["other", "scripted"]


async def test_a_model_named_for_a_call_has_no_fallbacks(workspace: Path) -> None:
    other = ScriptedModel([ModelRejected("no")])
    async with agent_of(workspace, ScriptedModel(), fallback_models=ScriptedModel()) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("hi", ALICE, model=other)


async def test_an_unknown_model_is_refused_at_once(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ConfigError):
            agent.call("hi", ALICE, model="no provider in it")


async def test_a_retry_with_its_key_gets_the_first_answer_and_runs_nothing(workspace: Path) -> None:
    model = ScriptedModel(["first", "between"])
    async with agent_of(workspace, model) as agent:
        call = agent.call("hi", ALICE, idempotency_key="k1")
        first = await call
        await agent.call("something else", ALICE)
        before = ledger(workspace)
        again = agent.call("hi", ALICE, idempotency_key="k1")
        assert (await again).to_dict() == first.to_dict()
        assert (again.turn_id, again.entry_id) == (call.turn_id, call.entry_id)
    assert len(model.requests) == 2
    assert ledger(workspace) == before


async def test_a_retry_while_the_first_call_still_runs_waits_for_its_answer(workspace: Path) -> None:
    model = ScriptedModel(["first"], delay=0.01)
    async with agent_of(workspace, model) as agent:
        calls = [agent.call("hi", ALICE, idempotency_key="k1") for _ in range(3)]
        replies = await asyncio.gather(*calls)
    assert [reply.text for reply in replies] == ["first"] * 3
    assert len(model.requests) == 1


async def test_a_retry_in_a_new_process_gets_the_first_answer(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["first"])) as agent:
        await agent.call("hi", ALICE, idempotency_key="k1")
    from harness.agent import open_session

    open_session._cache._open.clear()
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert (await agent.call("hi", ALICE, idempotency_key="k1")).text == "first"


async def test_a_retry_of_a_call_that_failed_runs(workspace: Path) -> None:
    model = ScriptedModel([ModelRejected("no"), "second"])
    async with agent_of(workspace, model) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("hi", ALICE, idempotency_key="k1")
        assert (await agent.call("hi", ALICE, idempotency_key="k1")).text == "second"
        assert (await agent.call("hi", ALICE, idempotency_key="k1")).text == "second"
    assert len(model.requests) == 2


async def test_a_retry_of_a_call_that_failed_and_was_closed_meanwhile_runs(workspace: Path) -> None:
    model = ScriptedModel([ModelRejected("no"), "between", "second"])
    async with agent_of(workspace, model) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("hi", ALICE, idempotency_key="k1")
        await agent.call("something else", ALICE)
        assert (await agent.call("hi", ALICE, idempotency_key="k1")).text == "second"


async def test_another_message_under_a_known_key_gets_the_first_answer_and_a_warning(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["first", "between"])) as agent:
        await agent.call("hi", ALICE, idempotency_key="k1")
        await agent.call("something else", ALICE)
        same, other = (agent.call(text, ALICE, idempotency_key="k1") for text in ("hi", "delete it all"))
        assert [(await same).text, (await other).text] == ["first", "first"]
    assert same.warnings == []
    assert ["'k1' was used before, with another message" in warning for warning in other.warnings] == [True]


async def test_a_turn_that_is_resumed_with_another_message_says_so(workspace: Path) -> None:
    model = ScriptedModel([ModelRejected("no"), "first"])
    async with agent_of(workspace, model) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("hi", ALICE, idempotency_key="k1")
        call = agent.call("delete it all", ALICE, idempotency_key="k1")
        assert (await call).text == "first"
    assert shown(model.requests[1]) == [("user", "hi")]
    assert len(call.warnings) == 1


async def test_a_retry_of_what_a_hook_or_a_redactor_changed_is_no_other_message(workspace: Path) -> None:
    def rewrite(event: PreCall) -> PreCall:
        return event.change(messages=(Msg.user("hooked"),), context=("and a fact",))

    secret = "my key is sk-proj-" + "a1B2" * 12
    for user, options in (("alice", {"hooks": [rewrite]}), ("bob", {"redact": True})):
        ctx = RuntimeContext(session_id="s1", user_id=user)
        async with agent_of(workspace, ScriptedModel(["first"]), **options) as agent:
            calls = [agent.call(secret, ctx, idempotency_key="k1") for _ in range(2)]
            assert [(await call).text for call in calls] == ["first", "first"]
        assert calls[1].warnings == []


async def test_keys_of_two_sessions_do_not_meet(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "two"])) as agent:
        await agent.call("hi", ALICE, idempotency_key="k1")
        other = ALICE.with_changes(session_id="s2")
        assert (await agent.call("hi", other, idempotency_key="k1")).text == "two"


async def test_a_message_object_said_twice_is_said_twice(workspace: Path) -> None:
    model, hello = ScriptedModel(["one", "two"]), Msg.user("hello")
    async with agent_of(workspace, model) as agent:
        await agent.call(hello, ALICE)
        await agent.call(hello, ALICE)
    assert shown(model.requests[1]) == [("user", "hello"), ("assistant", "one"), ("user", "hello")]


async def test_a_message_object_said_again_after_an_error_is_said_again(workspace: Path) -> None:
    model, hello = ScriptedModel([ModelRejected("no"), "two"]), Msg.user("hello")
    async with agent_of(workspace, model) as agent:
        with pytest.raises(ModelRejected):
            await agent.call(hello, ALICE)
        await agent.call(hello, ALICE)
    assert shown(model.requests[1]) == [("user", "hello"), ("assistant", "[stopped]"), ("user", "hello")]


async def test_a_list_with_what_was_said_before_adds_only_what_is_new(workspace: Path) -> None:
    model, first, second = ScriptedModel(["one", "two"]), Msg.user("first"), Msg.user("second")
    async with agent_of(workspace, model) as agent:
        reply = await agent.call([first], ALICE)
        await agent.call([first, reply, second], ALICE)
    assert shown(model.requests[1]) == [("user", "first"), ("assistant", "one"), ("user", "second")]


async def test_texts_in_a_list_become_messages(workspace: Path) -> None:
    model = ScriptedModel(["hello"])
    async with agent_of(workspace, model) as agent:
        await agent.call(["one", Msg.user("two")], ALICE)
    assert shown(model.requests[0]) == [("user", "one"), ("user", "two")]


async def test_identity_is_at_hand_in_the_call_and_nowhere_else(workspace: Path) -> None:
    seen = []

    def who() -> str:
        seen.append(("thread", current_scope().user_id, current_scope().session_id))
        return "x"

    async def hook(event: PreCall) -> None:
        seen.append(("hook", current_scope().user_id, current_scope().session_id))

    async with agent_of(workspace, ScriptedModel([call_of("who"), "done"]), who, hooks=[hook]) as agent:
        await agent.call("hi", ALICE)
    assert seen == [("hook", "alice", "s1"), ("thread", "alice", "s1")]
    with pytest.raises(NoCurrentCall):
        current_scope()


async def test_hooks_see_the_context_with_its_defaults_and_the_callers_extras(workspace: Path) -> None:
    seen = []

    async def hook(event: PreCall) -> None:
        seen.append(event.ctx)

    async with agent_of(workspace, ScriptedModel(["done"]), hooks=[hook]) as agent:
        await agent.call("hi", ALICE.with_changes(extra={"plan": "gold"}))
    [ctx] = seen
    assert (ctx.user_id, ctx.session_id, ctx.get("plan")) == ("alice", "s1", "gold")
    assert ctx.session_key == SessionKey(("alice",), "notes", "s1")
    assert ctx.session is not None


async def test_a_closed_agent_takes_no_calls_and_says_so(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        waiting = agent.call("hi", ALICE)
    with pytest.raises(AgentClosed, match="build another"):
        agent.call("hi", ALICE)
    with pytest.raises(AgentClosed):
        await waiting


async def test_no_field_of_the_agent_changes_during_a_call(workspace: Path) -> None:
    fields = []

    async def hook(event: object) -> None:
        fields.append({name: id(value) for name, value in vars(agent).items()})

    agent: HarnessAgent = agent_of(workspace, ScriptedModel(["hello"]), hooks=[hook])
    fields.append({name: id(value) for name, value in vars(agent).items()})
    await agent.call("hi", ALICE)
    assert len(fields) == 6
    assert all(seen == fields[0] for seen in fields)
    await agent.aclose()


async def test_a_cancelled_call_is_an_error_of_our_own(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        call = agent.call("hi", ALICE)
        call.cancel()
        with pytest.raises(CallCancelled, match="what it had done is kept"):
            await call
