"""What every store of track 1 promises. A new store joins by one line in `STORES`."""

import asyncio
from datetime import UTC, datetime

import pytest

from harness.errors import InvalidId, ListMoved
from harness.sessions.snapshots.json_session import JsonSession
from harness.sessions.snapshots.memory_session import InMemorySession
from harness.sessions.snapshots.workspace_session import WorkspaceSession
from harness.state import Session, SessionKey

STORES = {
    "memory": lambda _: InMemorySession(),
    "json": JsonSession,
    "json-synced": lambda path: JsonSession(path, sync=True),
    "workspace": lambda path: WorkspaceSession(path, "notes"),
    "workspace of another agent": lambda path: WorkspaceSession(path, "other"),
}

KEY = SessionKey(("alice",), "notes", "s-1")

STRANGE_IDS = [
    "a",
    "A",
    "a.jsonl",
    "a/b",
    "..",
    ".hidden",
    "a+b",
    "notes+a",
    "_",
    "-x",
    "con",
    "caf\u00e9",
    "cafe\u0301",
    "日本",
    "x" * 200,
    "x" * 201,
    "%61",
    " a ",
]


@pytest.fixture(params=STORES, ids=[name.replace(" ", "-") for name in STORES])
async def store(request, tmp_path):
    made = STORES[request.param](tmp_path / "store")
    yield made
    await made.aclose()


async def test_a_store_fits_the_protocol(store):
    assert isinstance(store, Session)


async def test_a_saved_value_comes_back(store):
    await store.save(KEY, "memory", {"seq": 7, "hash": "ab", "deep": {"list": [1, 2.5, None, True]}})
    assert await store.get(KEY, "memory") == {"seq": 7, "hash": "ab", "deep": {"list": [1, 2.5, None, True]}}


async def test_nothing_is_there_at_first(store):
    assert await store.get(KEY, "memory") is None
    assert await store.get_list(KEY, "messages") == []
    assert await store.exists(KEY) is False
    assert await store.list_keys(("alice",), "notes") == []


async def test_saving_again_replaces_the_whole_value(store):
    await store.save(KEY, "plan", {"a": 1, "b": 2})
    await store.save(KEY, "plan", {"c": 3})
    assert await store.get(KEY, "plan") == {"c": 3}


async def test_an_empty_object_is_a_value(store):
    await store.save(KEY, "plan", {})
    assert await store.get(KEY, "plan") == {}
    assert await store.exists(KEY) is True


async def test_a_saved_value_is_not_shared_with_its_giver(store):
    value = {"todo": ["one"]}
    await store.save(KEY, "plan", value)
    value["todo"].append("two")
    (await store.get(KEY, "plan"))["todo"].append("three")
    assert await store.get(KEY, "plan") == {"todo": ["one"]}


async def test_list_items_are_not_shared_with_their_giver(store):
    item = {"content": ["one"]}
    await store.append(KEY, "messages", [item], 0)
    item["content"].append("two")
    (await store.get_list(KEY, "messages"))[0]["content"].append("three")
    assert await store.get_list(KEY, "messages") == [{"content": ["one"]}]


async def test_a_list_grows_in_order(store):
    await store.append(KEY, "messages", [{"n": 1}], 0)
    await store.append(KEY, "messages", [{"n": 2}, {"n": 3}], 1)
    await store.append(KEY, "messages", [], 3)
    assert await store.get_list(KEY, "messages") == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("expected", [0, 1, 3])
async def test_an_append_that_expects_another_length_changes_nothing(store, expected):
    await store.append(KEY, "messages", [{"n": 1}, {"n": 2}], 0)
    with pytest.raises(ListMoved) as caught:
        await store.append(KEY, "messages", [{"n": 9}], expected)
    assert caught.value.count == 2
    assert await store.get_list(KEY, "messages") == [{"n": 1}, {"n": 2}]


async def test_an_append_to_nothing_that_expects_items_stores_nothing(store):
    with pytest.raises(ListMoved) as caught:
        await store.append(KEY, "messages", [{"n": 1}], 5)
    assert caught.value.count == 0
    assert await store.exists(KEY) is False
    assert await store.list_keys(("alice",), "notes") == []


async def test_appending_no_items_to_nothing_stores_nothing(store):
    await store.append(KEY, "messages", [], 0)
    assert await store.exists(KEY) is False


async def test_a_replaced_list_can_shrink_and_grow_again(store):
    await store.append(KEY, "messages", [{"n": n} for n in range(10)], 0)
    await store.replace(KEY, "messages", [{"summary": "ten"}])
    await store.append(KEY, "messages", [{"n": 11}], 1)
    assert await store.get_list(KEY, "messages") == [{"summary": "ten"}, {"n": 11}]


async def test_a_list_can_be_replaced_by_an_empty_one(store):
    await store.append(KEY, "messages", [{"n": 1}], 0)
    await store.replace(KEY, "messages", [])
    assert await store.get_list(KEY, "messages") == []
    await store.append(KEY, "messages", [{"n": 2}], 0)
    assert await store.get_list(KEY, "messages") == [{"n": 2}]


async def test_a_value_and_a_list_of_one_name_do_not_meet(store):
    await store.save(KEY, "x", {"kind": "value"})
    await store.append(KEY, "x", [{"kind": "item"}], 0)
    assert await store.get(KEY, "x") == {"kind": "value"}
    assert await store.get_list(KEY, "x") == [{"kind": "item"}]


@pytest.mark.parametrize(
    "other",
    [
        SessionKey(("bob",), "notes", "s-1"),
        SessionKey((), "notes", "s-1"),
        SessionKey(("alice", "x"), "notes", "s-1"),
        SessionKey(("_",), "notes", "s-1"),
        SessionKey(("Alice",), "notes", "s-1"),
        SessionKey(("alice",), "Notes", "s-1"),
        SessionKey(("alice",), "other", "s-1"),
        SessionKey(("alice",), "notes", "S-1"),
    ],
    ids=str,
)
async def test_keys_that_differ_anywhere_do_not_meet(store, other):
    await store.save(KEY, "memory", {"of": "alice"})
    await store.append(KEY, "messages", [{"of": "alice"}], 0)
    assert await store.get(other, "memory") is None
    assert await store.get_list(other, "messages") == []
    assert await store.exists(other) is False
    await store.save(other, "memory", {"of": "another"})
    await store.delete(other)
    assert await store.get(KEY, "memory") == {"of": "alice"}
    assert await store.get_list(KEY, "messages") == [{"of": "alice"}]


async def test_strange_ids_stay_apart_and_are_listed_as_they_are(store):
    for session in STRANGE_IDS:
        await store.save(SessionKey(("alice",), "notes", session), "memory", {"session": session})
    for session in STRANGE_IDS:
        assert await store.get(SessionKey(("alice",), "notes", session), "memory") == {"session": session}
    listed = [key.session for key in await store.list_keys(("alice",), "notes")]
    assert listed == sorted(STRANGE_IDS)


async def test_strange_namespaces_and_agents_list_their_own_session(store):
    owners = [((part,), agent) for part in STRANGE_IDS for agent in ("notes", "x" * 300)]
    for namespace, agent in owners:
        await store.save(SessionKey(namespace, agent, "s"), "memory", {"of": [*namespace, agent]})
    for namespace, agent in owners:
        assert await store.list_keys(namespace, agent) == [SessionKey(namespace, agent, "s")]
        assert await store.get(SessionKey(namespace, agent, "s"), "memory") == {"of": [*namespace, agent]}


async def test_deleting_a_name_leaves_the_others(store):
    await store.save(KEY, "x", {"n": 1})
    await store.append(KEY, "x", [{"n": 1}], 0)
    await store.save(KEY, "y", {"n": 2})
    await store.delete(KEY, "x")
    assert await store.get(KEY, "x") is None
    assert await store.get_list(KEY, "x") == []
    assert await store.get(KEY, "y") == {"n": 2}


async def test_a_session_whose_last_name_was_deleted_is_gone(store):
    await store.save(KEY, "x", {"n": 1})
    await store.delete(KEY, "x")
    assert await store.exists(KEY) is False
    assert await store.list_keys(("alice",), "notes") == []


async def test_deleting_a_key_removes_it_and_it_can_be_made_anew(store):
    await store.save(KEY, "x", {"n": 1})
    await store.append(KEY, "messages", [{"n": 1}], 0)
    await store.delete(KEY)
    assert await store.exists(KEY) is False
    assert await store.get(KEY, "x") is None
    await store.append(KEY, "messages", [{"n": 2}], 0)
    assert await store.get_list(KEY, "messages") == [{"n": 2}]


async def test_deleting_what_is_not_there_is_no_error(store):
    await store.delete(KEY)
    await store.delete(KEY, "x")
    assert await store.exists(KEY) is False


async def test_separators_of_other_systems_are_ordinary_text(store):
    text = "a\u2028b\u2029c\u0085d\re\x0bf\x1cg\nh"
    await store.append(KEY, "messages", [{"text": text}, {"text": "next"}], 0)
    assert await store.get_list(KEY, "messages") == [{"text": text}, {"text": "next"}]
    await store.append(KEY, "messages", [{"text": "third"}], 2)
    assert len(await store.get_list(KEY, "messages")) == 3


async def test_what_json_cannot_hold_is_stored_in_its_nearest_form(store):
    value = {
        "nan": float("nan"),
        "half": "a\ud800b",
        "huge": 2**70,
        "when": datetime(2026, 1, 2, tzinfo=UTC),
        3: "three",
    }
    await store.save(KEY, "plan", value)
    assert await store.get(KEY, "plan") == {
        "nan": "NaN",
        "half": "a\ufffdb",
        "huge": "1180591620717411303424",
        "when": "2026-01-02T00:00:00+00:00",
        "3": "three",
    }


async def test_a_list_item_with_half_a_character_is_stored(store):
    await store.append(KEY, "messages", [{"text": "a\udc00b"}, {"n": 2**64}], 0)
    assert await store.get_list(KEY, "messages") == [{"text": "a\ufffdb"}, {"n": "18446744073709551616"}]


@pytest.mark.parametrize("name", ["", "  ", "a\0b"])
async def test_a_name_that_no_file_can_have_is_refused(store, name):
    with pytest.raises(InvalidId):
        await store.save(KEY, name, {})
    with pytest.raises(InvalidId):
        await store.append(KEY, name, [{}], 0)
    with pytest.raises(InvalidId):
        await store.replace(KEY, name, [{}])
    assert await store.exists(KEY) is False


@pytest.mark.parametrize("name", ["../up", "_key", "key", ".hold", "a.b", "Toolkit", "toolkit", "日", "n" * 300])
async def test_any_other_name_has_a_place_of_its_own(store, name):
    await store.save(KEY, "memory", {"n": 0})
    await store.save(KEY, name, {"n": 1})
    await store.append(KEY, name, [{"n": 2}], 0)
    assert await store.get(KEY, name) == {"n": 1}
    assert await store.get_list(KEY, name) == [{"n": 2}]
    assert await store.get(KEY, "memory") == {"n": 0}


async def test_concurrent_saves_leave_one_of_the_values_whole(store):
    values = [{"writer": n, "copy": [n] * 50} for n in range(30)]
    await asyncio.gather(*(store.save(KEY, "memory", value) for value in values))
    assert await store.get(KEY, "memory") in values


async def test_of_concurrent_appends_with_one_expectation_exactly_one_succeeds(store):
    tries = (store.append(KEY, "messages", [{"writer": n}], 0) for n in range(10))
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(ListMoved) == 9
    assert len(await store.get_list(KEY, "messages")) == 1


async def test_sessions_written_at_once_do_not_disturb_each_other(store):
    keys = [SessionKey((f"user{n % 5}",), "notes", f"s{n}") for n in range(25)]

    async def talk(key):
        for count in range(8):
            await store.append(key, "messages", [{"of": key.session, "n": count}], count)
            await store.save(key, "memory", {"of": key.session, "count": count + 1})

    await asyncio.gather(*(talk(key) for key in keys))
    for key in keys:
        assert await store.get_list(key, "messages") == [{"of": key.session, "n": n} for n in range(8)]
        assert await store.get(key, "memory") == {"of": key.session, "count": 8}


async def test_a_closed_store_can_be_closed_again_and_still_knows_its_data(store):
    await store.append(KEY, "messages", [{"n": 1}], 0)
    await store.aclose()
    await store.aclose()
    await store.append(KEY, "messages", [{"n": 2}], 1)
    assert await store.get_list(KEY, "messages") == [{"n": 1}, {"n": 2}]
