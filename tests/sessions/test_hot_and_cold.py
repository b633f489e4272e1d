"""What a running call sees is what a new process sees, whatever was said and compacted."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sessions import SessionTree, cut_for, project, repairs, verify_chain

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.integers(0, 2)),
        st.tuples(st.just("hook"), st.just(0)),
        st.tuples(st.just("failed"), st.just(0)),
        st.tuples(st.just("partial"), st.just(0)),
        st.tuples(st.just("orphan"), st.just(0)),
        st.tuples(st.just("interrupted"), st.integers(1, 3)),
        st.tuples(st.just("abort"), st.integers(0, 1)),
        st.tuples(st.just("late"), st.just(0)),
        st.tuples(st.just("compact"), st.integers(0, 6)),
        st.tuples(st.just("keep_open"), st.just(0)),
        st.tuples(st.just("state"), st.integers(0, 3)),
        st.tuples(st.just("large"), st.just(0)),
        st.tuples(st.just("cold"), st.just(0)),
    ),
    max_size=14,
)


class Story:
    """Plays steps into a session and compares the running tree with a cold one after each."""

    def __init__(self, folder, talk):
        self.folder, self.talk, self.number = folder, talk, 0
        self.tree = self._cold()

    def _cold(self):
        return SessionTree(self.folder, "s", agent="a", namespace=("t",))

    async def play(self, steps):
        await self.tree.lock()
        try:
            for step, size in steps:
                self.number += 1
                await getattr(self, step)(size)
                await self.tree.commit()
                await self._compare()
        finally:
            await self.tree.release()

    async def _compare(self):
        cold = self._cold()
        assert await cold.load() == self.tree.view()
        assert project(self.tree._store.conversation.path) == self.tree.view()
        assert cold.boundary == self.tree.boundary
        assert cold.states() == self.tree.states()
        assert cold.turn == self.tree.turn
        said = [message["id"] for turn in cold.view().turns for message in turn.messages]
        assert [*map(cold.entry_id, said)] == [*map(self.tree.entry_id, said)]
        assert (cold.count, cold.bytes, cold.last_hash, cold.leaf) == (
            self.tree.count, self.tree.bytes, self.tree.last_hash, self.tree.leaf,
        )  # fmt: skip
        assert cold.damage == []

    async def turn(self, tools):
        for message in repairs(self.tree.view(), "interrupted"):
            self.tree.add_message(message, via="repair")
        number = self.number
        self.tree.add_message(self.talk.user(f"q{number}", f"u{number}"), via="user")
        if tools:
            calls = [f"call-{number}-{each}" for each in range(tools)]
            await self.talk.answer(self.tree, "", f"c{number}", *calls)
            for call in reversed(calls):
                self.tree.add_message(self.talk.result(f"r-{call}", call), via="tool")
        await self.talk.answer(self.tree, "done", f"a{number}")

    async def hook(self, _):
        self.tree.add_message(self.talk.user("it is monday", f"h{self.number}"), via="hook")

    async def failed(self, _):
        request = self.talk.request(self.tree)
        self.tree.add_message(self.talk.assistant("x", f"f{self.number}"), via="model", request=request)
        self.tree.end_request(request, "failed")

    async def partial(self, _):
        request = self.talk.request(self.tree)
        message = self.talk.assistant("par", f"p{self.number}")
        self.tree.add_message(message, via="model", request=request, partial=True)
        self.tree.end_request(request, "aborted")

    async def orphan(self, _):
        self.tree.add_message(self.talk.result(f"o{self.number}", "gone"), via="tool")

    async def interrupted(self, calls):
        number = self.number
        self.tree.add_message(self.talk.user(f"q{number}", f"u{number}"), via="user")
        await self.talk.answer(self.tree, "", f"c{number}", *[f"open-{number}-{each}" for each in range(calls)])
        self.tree.add_message(self.talk.result(f"r{number}", f"open-{number}-0"), via="tool")

    async def abort(self, older):
        turns = self.tree.view().turns
        turn = turns[0].id if older and turns else self.tree.turn
        self.tree.add("event", {"kind": "abort", "data": {}}, turn=turn)

    async def late(self, _):
        for call in self.tree.view().open_calls[:1]:
            self.tree.add_message(self.talk.result(f"l{self.number}", call.id), via="tool")

    async def compact(self, keep):
        turns = self.tree.view().turns
        cut = cut_for(turns, keep)
        if cut:
            self.tree.append_compaction(f"Summary {self.number}", turns[0].id, turns[cut - 1].id, "m", 10)

    async def keep_open(self, _):
        view = self.tree.view()
        if view.open_turn:
            last = view.turns[-2].id if len(view.turns) > 1 else ""
            self.tree.append_compaction("Open.", view.turns[0].id, last, "m", 10, keeps_open_turn=True)

    async def state(self, value):
        self.tree.add("state", {"module": f"m{value % 2}", "value": {"n": self.number}})

    async def large(self, _):
        self.tree.add_message(self.talk.user("x" * 300_000 + "\u2028", f"u{self.number}"), via="user")

    async def cold(self, _):
        await self.tree.release()
        self.tree = self._cold()
        await self.tree.lock()


@settings(max_examples=80)
@given(steps=STEPS)
def test_running_and_cold_see_the_same_and_the_chain_holds(tmp_path_factory, talk, steps):
    folder = tmp_path_factory.mktemp("story")
    asyncio.run(Story(folder, talk).play(steps))
    ledger = folder / "s.log.jsonl"
    assert asyncio.run(_context_is_what_a_rebuild_gives(folder, talk))
    assert verify_chain(ledger.read_bytes() if ledger.exists() else b"") == []


async def _context_is_what_a_rebuild_gives(folder, talk):
    context = folder / "s.jsonl"
    if not context.exists():
        return True
    grown = context.read_bytes().partition(b"\n")[2]
    context.unlink()
    tree = SessionTree(folder, "s", agent="a", namespace=("t",))
    async with tree.writing():
        tree.add_message(talk.user("one more", "last"), via="user")
    rebuilt = context.read_bytes().partition(b"\n")[2]
    return rebuilt.startswith(grown) and rebuilt[len(grown) :].count(b"\n") == 1


async def test_no_call_is_shown_without_its_results_after_any_compaction(make_tree, talk):
    async with make_tree().writing() as tree:
        for number in range(6):
            await talk.turn(tree, number, tool=True)
            turns = tree.view().turns
            tree.append_compaction("S.", turns[0].id, turns[-1].id if number % 2 else turns[0].id, "m", 1)
            messages = tree.messages()
            calls = [b["id"] for m in messages for b in m["content"] if b["type"] == "toolUse"]
            results = [b["id"] for m in messages for b in m["content"] if b["type"] == "toolResult"]
            assert calls == results


async def test_after_a_compaction_only_the_kept_lines_are_read(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        for number in range(30):
            await talk.turn(tree, number)
        turns = tree.view().turns
        tree.append_compaction("S.", turns[0].id, turns[-2].id, "m", 1)
        await tree.commit()
    position = tree.boundary
    line = (folder / "s-1.log.jsonl").read_bytes()[position.offset :].partition(b"\n")[0]
    assert b'"u29"' in line
    assert f'"seq":{position.seq},'.encode() in line


async def test_a_boundary_that_keeps_nothing_is_its_own_line(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        entry = tree.append_compaction("S.", tree.turn, tree.turn, "m", 1)
    line = (folder / "s-1.log.jsonl").read_bytes()[tree.boundary.offset :].partition(b"\n")[0]
    assert entry.encode() in line


async def test_a_compaction_names_the_boundary_before_it(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        for number in (1, 2, 3):
            await talk.turn(tree, number)
            turns = tree.view().turns
            before = tree.boundary
            tree.append_compaction("S.", turns[0].id, turns[-1].id, "m", 1)
    compactions = [line for line in lines(folder / "s-1.log.jsonl") if line["type"] == "compaction"]
    assert "prevBoundary" not in compactions[0]
    assert compactions[2]["prevBoundary"] == {"seq": before.seq, "offset": before.offset}
    assert before.seq == compactions[1]["seq"]


async def test_after_a_boundary_texts_and_states_are_written_again(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        tree.add("state", {"module": "plan", "value": {"step": 1}})
        await talk.turn(tree, 1)
        tree.append_compaction("S.", tree.turn, tree.turn, "m", 1)
        await talk.turn(tree, 2)
    entries = lines(folder / "s-1.log.jsonl")
    boundary = next(entry["seq"] for entry in entries if entry["type"] == "compaction")
    later = [entry for entry in entries if entry["seq"] > boundary]
    assert [entry["system"][0]["text"] for entry in later if entry["type"] == "binding"] == ["Be brief."]
    assert [entry["value"] for entry in later if entry["type"] == "state"] == [{"step": 1}]
    cold = make_tree()
    await cold.load()
    assert cold.states() == {"plan": {"step": 1}}
