"""The four invariants of the ledger, over conversations that nobody would think of."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).parent))
from random_talks import PLACE, STEPS, RandomTalk

from harness.sessions import SessionTree, View, project, verify_chain
from harness.sessions.ledger.reading import active_path, scan
from harness.sessions.lines.digest import message_digest
from harness.sessions.lines.entries import START


class Watched(RandomTalk):
    """A talk whose ledger is looked at after each step."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.before = b""

    async def watch(self, steps: list[tuple[str, int]]) -> None:
        for step, size in steps:
            await self.play(step, size)
            data = self.data()
            requests = self.take_requests()
            if data:
                self.append_only(data)
                await self.visible_means_logged(data, requests)
                self.turns_are_whole(data)
                self.written_once(data)
            self.before = data

    def append_only(self, data: bytes) -> None:
        if not self.crashed:
            assert data.startswith(self.before)
        assert [finding for finding in verify_chain(data) if finding.error] == []

    async def visible_means_logged(self, data: bytes, requests: list) -> None:
        lines = [json.loads(raw) for raw in data.split(b"\n") if whole(raw)]
        begun = [line["id"] for line in lines if line["type"] == "request_begin"]
        tree = self.tree()
        seen = [await tree.context_at(request) for request in begun]
        assert [context.request for context in seen if not context.exact] == []
        if self.crashed or not requests:
            return
        sent = sorted(fingerprint([m.to_dict() for m in request.messages], request.system) for request in requests)
        noted = [fingerprint(context.messages, "\n\n".join(s["text"] for s in context.system)) for context in seen]
        # What went out in this step was logged in this step; a try repeats its request and has no line of its own.
        assert set(sent) <= set(noted[-len(requests) :])

    def turns_are_whole(self, data: bytes) -> None:
        path = self.path(data)
        shown = project(path)
        assert_pairs(shown)
        for turn in shown.turns:
            opener = next(entry for entry in path if entry.id == turn.id)
            assert turn.messages[0]["id"] == opener.data["message"]["id"]
            assert opener.data.get("turnId") in (None, turn.id)
        assert all(turn.closed for turn in shown.turns[:-1])

    def written_once(self, data: bytes) -> None:
        counts: dict[str, int] = {}
        path = self.path(data)
        done = {e.data["requestId"] for e in path if e.kind == "request_end" and e.data["status"] == "completed"}
        for entry in path:
            if entry.kind != "message" or entry.data.get("partial"):
                continue
            if entry.data["via"] == "model" and entry.data["requestId"] not in done:
                continue
            counts[entry.data["message"]["id"]] = counts.get(entry.data["message"]["id"], 0) + 1
        assert {key: count for key, count in counts.items() if count > 1} == {}
        cards = [entry.data["turn"] for entry in path if entry.kind == "turn_card"]
        assert len(cards) == len(set(cards))

    def path(self, data: bytes) -> list:
        entries, _, _ = scan(data, START)
        return active_path(entries, damaged=True) or []

    def tree(self) -> SessionTree:
        return SessionTree(self.workspace / PLACE / "sessions", "s", agent="notes", namespace=("alice",))


def whole(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


def fingerprint(messages: list, system: str) -> str:
    return "\n".join([system, *(message_digest(message) for message in messages)])


def assert_pairs(view: View) -> None:
    """Each result stands directly behind its call; only the last turn may have calls that wait."""
    waiting: list[str] = []
    for turn in view.turns:
        for message in turn.messages:
            results = [block["id"] for block in message["content"] if block["type"] == "toolResult"]
            assert set(results) <= set(waiting)
            if message["role"] == "assistant":
                assert set(waiting) <= {call.id for call in view.open_calls}
            waiting = [block["id"] for block in message["content"] if block["type"] == "toolUse"] or [
                call for call in waiting if call not in results
            ]
    for call in view.open_calls:
        assert call.turn_id == view.turns[-1].id


@settings(max_examples=100)
@given(steps=STEPS)
def test_append_only_logged_whole_and_once_whatever_happens(tmp_path_factory, steps):
    workspace = tmp_path_factory.mktemp("talk") / "workspace"
    asyncio.run(Watched(workspace).watch(steps))
    shutil.rmtree(workspace, ignore_errors=True)
