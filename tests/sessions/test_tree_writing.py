"""Records are written once, commits are whole, and writers take turns (cases B25, B46)."""

import asyncio
import errno
import itertools
import os
import shutil
import subprocess
import sys

import pytest

from harness.errors import ConfigError, PersistenceError, SessionBusy
from harness.sessions import SessionCatalog, verify_chain


def _message_ids(lines, path):
    return [line["message"]["id"] for line in lines(path) if line["type"] == "message"]


# ---- a record is written once


async def test_a_message_added_again_is_not_logged_again(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        first = tree.add_message(talk.user("hi", "u1"), via="user")
        assert tree.add_message(talk.user("hi", "u1"), via="user") == first
    async with make_tree().writing() as tree:
        assert tree.add_message(talk.user("hi", "u1"), via="user") == first

    assert _message_ids(lines, folder / "s-1.log.jsonl") == ["u1"]


async def test_a_hundred_calls_flushed_twice_log_each_message_once_in_both_files(make_tree, talk, folder, lines):
    sizes = []
    for number in range(100):
        async with make_tree().writing() as tree:
            for message in tree.messages():
                tree.add_message(message, via="user" if message["role"] == "user" else "repair")
            await talk.turn(tree, number)
            await tree.commit()
            await tree.commit()
        sizes.append((folder / "s-1.log.jsonl").stat().st_size)

    expected = [message_id for number in range(100) for message_id in (f"u{number}", f"a{number}")]
    assert _message_ids(lines, folder / "s-1.log.jsonl") == expected
    assert _message_ids(lines, folder / "s-1.jsonl") == expected
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    assert max(grown) - min(grown) < 60  # longer numbers, not longer histories


async def test_resuming_without_a_new_message_writes_nothing(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    async with make_tree().writing() as tree:
        for message in tree.messages():
            tree.add_message(message, via="user")
        await tree.commit()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


async def test_kept_messages_are_not_logged_again_after_a_compaction(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        for number in (1, 2, 3):
            await talk.turn(tree, number)
        turns = tree.view().turns
        tree.append_compaction("Summary.", turns[0].id, turns[1].id, "m-1", 100)
        await tree.commit()
        for message in tree.messages()[1:]:
            tree.add_message(message, via="user")

    assert _message_ids(lines, folder / "s-1.log.jsonl") == ["u1", "a1", "u2", "a2", "u3", "a3"]
    assert _message_ids(lines, folder / "s-1.jsonl") == ["u3", "a3"]


async def test_output_of_a_failed_attempt_does_not_block_the_next(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        failed = talk.request(tree)
        tree.add_message(talk.assistant("hello", "a1"), via="model", request=failed)
        tree.end_request(failed, "failed")
        await talk.answer(tree, "hello", "a1")
    assert [message["id"] for message in (await make_tree().load()).messages] == ["u1", "a1"]


async def test_partial_text_does_not_stand_in_for_the_whole(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        tree.add_message(talk.assistant("hel", "a1"), via="model", partial=True)
        await talk.answer(tree, "hello", "a1")
    assert (await make_tree().load()).messages[1]["content"][0]["text"] == "hello"


async def test_a_prompt_is_found_by_its_idempotency_key_in_a_new_process(make_tree, talk):
    async with make_tree().writing() as tree:
        entry = tree.add_message(talk.user("hi", "u1"), via="user", idempotency_key="k-1")
        await talk.answer(tree, "hello", "a1")
    cold = make_tree()
    await cold.load()
    found = cold.answered("k-1")
    assert (found.entry_id, found.turn.closed, found.turn.messages[-1]["id"]) == (entry, True, "a1")
    assert cold.answered("k-2") is None


async def test_an_equal_binding_is_logged_once_and_a_changed_one_names_known_texts_only(make_tree, talk, folder, lines):
    tool = {"name": "look", "schema": {"name": "look", "parameters": {"type": "object"}}}
    async with make_tree().writing() as tree:
        first = tree.bind([{"name": "p", "text": "Be brief."}], [tool], "m-1", "test", {})
        assert tree.bind([{"name": "p", "text": "Be brief."}], [tool], "m-1", "test", {}) == first
        second = tree.bind([{"name": "p", "text": "Be brief."}], [tool], "m-2", "test", {})
    async with make_tree().writing() as tree:
        assert tree.bind([{"name": "p", "text": "Be brief."}], [tool], "m-2", "test", {}) == second

    bindings = [line for line in lines(folder / "s-1.log.jsonl") if line["type"] == "binding"]
    assert [list(line["system"][0]) for line in bindings] == [["name", "sha256", "text"], ["name", "sha256"]]
    assert [list(line["tools"][0]) for line in bindings] == [["name", "sha256", "schema"], ["name", "sha256"]]


async def test_a_request_needs_a_binding_since_the_boundary(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        binding = tree.bind([], [], "m", "p")
        tree.append_compaction("Summary.", tree.turn, tree.turn, "m", 1)
        with pytest.raises(ConfigError, match="bind"):
            tree.begin_request("execute", 1, binding, [], tree.turn, "compaction")


# ---- commits are whole


async def test_what_a_full_disk_refused_goes_out_with_the_next_commit(make_tree, talk, folder, monkeypatch):
    real = os.write

    def full(descriptor, data):
        if len(data) > 200:
            real(descriptor, bytes(data)[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        before = (folder / "s-1.log.jsonl").read_bytes()
        count = tree.count
        tree.add_message(talk.user("lost?", "u2"), via="user")
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(PersistenceError, match="free space"):
                await tree.commit()
        assert (folder / "s-1.log.jsonl").read_bytes() == before
        assert tree.count == count
        await talk.answer(tree, "kept", "a2")

    data = (folder / "s-1.log.jsonl").read_bytes()
    assert verify_chain(data) == []
    assert [m["id"] for m in (await make_tree().load()).messages] == ["u1", "a1", "u2", "a2"]


async def test_lines_that_could_not_be_written_are_not_believed_by_the_next_call(make_tree, talk, monkeypatch):
    def full(descriptor, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    tree = make_tree()
    async with tree.writing():
        await talk.turn(tree, 1)
    await tree.lock()
    tree.add_message(talk.user("lost", "u2"), via="user")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(PersistenceError):
            await tree.release()
    async with tree.writing():
        assert talk.ids(tree) == ["u1", "a1"]
        await talk.turn(tree, 3)
    assert [m["id"] for m in (await make_tree().load()).messages] == ["u1", "a1", "u3", "a3"]


async def test_a_commit_whose_caller_is_cancelled_is_written_and_known(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        for number in range(50):
            tree.add_message(talk.user("x" * 10_000, f"u{number}"), via="user")
        task = asyncio.ensure_future(tree.commit())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert tree.bytes == (folder / "s-1.log.jsonl").stat().st_size > 0
        await talk.turn(tree, 100)
    assert verify_chain((folder / "s-1.log.jsonl").read_bytes()) == []


async def test_lines_added_while_a_commit_runs_follow_it(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        running = []
        for number in range(40):
            tree.add_message(talk.user("hi", f"u{number}"), via="user")
            running.append(asyncio.ensure_future(tree.commit(sync=number % 2 == 0)))
            await asyncio.sleep(0)
        await asyncio.gather(*running)
    data = (folder / "s-1.log.jsonl").read_bytes()
    assert verify_chain(data) == []
    assert data.count(b'"type":"message"') == 40


@pytest.mark.parametrize(("durability", "synced"), [("commit", 1), ("every", 2), ("none", 0)])
async def test_durability_says_which_commits_are_synced(make_tree, talk, monkeypatch, durability, synced):
    tree = make_tree(durability=durability)
    async with tree.writing():
        await talk.turn(tree, 1)
        calls = []
        monkeypatch.setattr(os, "fdatasync", calls.append)
        tree.add_message(talk.user("hi", "u2"), via="user")
        await tree.commit(sync=False)
        tree.add_message(talk.user("there", "u3"), via="user")
        await tree.commit(sync=True)
        assert len(calls) == synced


async def test_release_syncs_what_was_only_written_and_anchors_it(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        await tree.commit(sync=False)
    cold = make_tree()
    await cold.load()
    assert cold.damage == []
    assert talk.ids(cold) == ["u1"]


# ---- writers take turns


async def test_a_second_writer_waits_and_is_refused(make_tree):
    async with make_tree().writing():
        with pytest.raises(SessionBusy):
            await make_tree().lock(timeout=0.05)


async def test_a_cached_tree_sees_what_another_process_wrote(make_tree, talk, folder):
    cached = make_tree()
    async with cached.writing():
        await talk.turn(cached, 1)

    script = f"""
import asyncio, pathlib
from harness.sessions import SessionTree
async def main():
    tree = SessionTree(pathlib.Path({str(folder)!r}), "s-1", agent="notes", namespace=("alice",))
    async with tree.writing():
        message = {{"id": "u2", "role": "user", "content": [{{"type": "text", "text": "from elsewhere"}}]}}
        tree.add_message(message, via="user")
asyncio.run(main())
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], env=env, check=False)
    assert done.returncode == 0

    assert [message["id"] for message in (await cached.load()).messages] == ["u1", "a1", "u2"]
    async with cached.writing():
        await talk.answer(cached, "hello", "a2")
    assert verify_chain((folder / "s-1.log.jsonl").read_bytes()) == []
    assert [m["id"] for m in (await make_tree().load()).messages] == ["u1", "a1", "u2", "a2"]


async def test_readers_need_no_lock_while_a_writer_writes(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        assert [message["id"] for message in (await make_tree().load()).messages] == ["u1", "a1"]


def test_a_tree_may_be_used_from_one_event_loop_after_another(make_tree, talk):
    tree = make_tree()

    async def call(number):
        async with tree.writing():
            tree.add_message(talk.user("hi", f"u{number}"), via="user")
            await asyncio.gather(*(tree.commit() for _ in range(3)))

    for number in range(3):
        asyncio.run(call(number))
    assert talk.ids(tree) == ["u0", "u1", "u2"]


# ---- a file that vanishes


async def test_a_ledger_removed_during_a_call_is_reported_and_not_made_anew(make_tree, talk, folder):
    tree = make_tree()
    await tree.lock()
    await talk.turn(tree, 1)
    (folder / "s-1.log.jsonl").unlink()
    tree.add_message(talk.user("late", "u2"), via="user")
    with pytest.raises(PersistenceError, match="nothing was written"):
        await tree.commit()
    assert not (folder / "s-1.log.jsonl").exists()
    await tree.release()

    async with tree.writing():  # the next call begins a complete, loadable file
        assert tree.messages() == []
        await talk.turn(tree, 3)
    assert [m["id"] for m in (await make_tree().load()).messages] == ["u3", "a3"]


async def test_a_ledger_removed_before_the_first_write_of_a_call_is_reported(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
    tree = make_tree()
    await tree.lock()
    (folder / "s-1.log.jsonl").rename(folder / "elsewhere")
    tree.add_message(talk.user("late", "u2"), via="user")
    with pytest.raises(PersistenceError, match="removed"):
        await tree.commit()
    await tree.release()
    assert not (folder / "s-1.log.jsonl").exists()


@pytest.mark.parametrize("gone", ["folder", "workspace"])
async def test_a_folder_removed_during_a_call_is_reported(make_tree, talk, folder, tmp_path, gone):
    tree = make_tree()
    await tree.lock()
    await talk.turn(tree, 1)
    shutil.rmtree(folder if gone == "folder" else tmp_path / "agents")
    tree.add_message(talk.user("late", "u2"), via="user")
    with pytest.raises(PersistenceError):
        await tree.commit()
    await tree.release()
    async with tree.writing():
        await talk.turn(tree, 3)
    assert [m["id"] for m in (await make_tree().load()).messages] == ["u3", "a3"]


@pytest.mark.parametrize("suffix", [".log.jsonl", ".jsonl", ".head.json"])
async def test_a_directory_in_the_place_of_a_file_loses_nothing_that_was_committed(make_tree, talk, folder, suffix):
    tree = make_tree()
    await tree.lock()
    await talk.turn(tree, 1)
    (folder / f"s-1{suffix}").rename(folder / "aside")
    (folder / f"s-1{suffix}").mkdir()
    tree.add_message(talk.user("late", "u2"), via="user")
    if suffix == ".log.jsonl":
        with pytest.raises(PersistenceError):
            await tree.commit()
    else:
        await tree.commit()
    await tree.release()
    if suffix == ".log.jsonl":
        (folder / f"s-1{suffix}").rmdir()
        (folder / "aside").rename(folder / f"s-1{suffix}")
    expected = ["u1", "a1"] if suffix == ".log.jsonl" else ["u1", "a1", "u2"]
    assert [m["id"] for m in (await make_tree().load()).messages] == expected


async def test_a_session_deleted_through_the_api_does_not_come_back_from_a_handle(make_tree, talk, folder):
    tree = make_tree()
    async with tree.writing():
        await talk.turn(tree, 1)
        old = tree.ledger_id
    assert await SessionCatalog(folder, "notes", ("alice",)).delete("s-1")
    assert (await tree.load()).messages == []
    async with tree.writing():
        await talk.turn(tree, 2)
    assert talk.ids(tree) == ["u2", "a2"]
    assert tree.ledger_id != old


@pytest.mark.parametrize("killed", [True, False])
async def test_the_name_of_a_ledger_is_synced_by_whoever_syncs_it_first(make_tree, folder, monkeypatch, killed):
    """Its first writer may have been killed before that."""
    async with make_tree().writing() as tree:
        tree.add("custom", {"kind": "n"})
    if killed:
        (folder / "s-1.head.json").unlink()
    synced, real = [], os.fsync

    def noted(descriptor: int) -> None:
        synced.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    async with make_tree().writing() as tree:
        for _ in range(2):
            tree.add("custom", {"kind": "n"})
            await tree.commit(sync=True)
    async with tree.writing():
        tree.add("custom", {"kind": "n"})
    assert len(synced) == killed
