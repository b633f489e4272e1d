"""What must hold for a session after a crash, checked from its bytes and by going on with it.

The rules are written down here a second time, from the file format, so that an error of the library
cannot hide itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.agent import HarnessAgent
from harness.agent.binding import Binding, bind
from harness.context import RuntimeContext
from harness.errors import FileMissing, HarnessError
from harness.filesystem import disk, pool
from harness.messages import Msg
from harness.sessions.lines.blobs import block_text
from harness.sessions.lines.layout import SessionFiles
from harness.state import SessionKey
from harness.testing.crash import CommittedTurn
from harness.text import loads

__all__ = ["SessionCheck", "check_ledger", "check_session"]

_EVERYTHING = 1_000_000


@dataclass(frozen=True, slots=True)
class SessionCheck:
    """What was found; `problems` are sentences, and none if the session is as it must be.

    reply  of the call that was made; empty if it failed
    torn   lines that a crash cut short, healed ones included
    lines  lines of the ledger
    """

    problems: list[str]
    reply: str
    torn: int
    lines: int


async def check_session(
    agent: HarnessAgent,
    ctx: RuntimeContext,
    committed: Sequence[CommittedTurn],
    *,
    prompt: str = "Are you there?",
    power_cut: bool = False,
) -> SessionCheck:
    """Check a session's files, call the agent once on it, and check again.

    committed  every turn that was ever reported as given on this session
    prompt     what to say in the call; a text that was not said before
    power_cut  copies may say what the ledger has lost, until the call makes them right: they are never synced

    The agent must be a new one, built like the one that was killed. Raises nothing of its own: a
    call that fails is a problem among the others.
    """
    files = _Files(bind(agent.config, ctx))
    problems, torn = await pool.run(files.check, committed, copies=not power_cut)
    if not power_cut:
        problems += await files.check_snapshot(_bound(agent, ctx))
    try:
        reply = await agent.call(prompt, ctx)
    except HarnessError as error:
        problems.append(f"the next call failed: {type(error).__name__}: {error}")
        return SessionCheck(problems, "", torn, files.lines)
    said = [*committed, CommittedTurn(0, prompt, reply.text)]
    after, torn = await pool.run(files.check, said)
    after += await files.check_snapshot(_bound(agent, ctx))
    after += await _check_view(agent, ctx, files)
    after += await _check_history(agent, files.session_id, ctx, said)
    problems += [f"after the next call: {problem}" for problem in after]
    return SessionCheck(problems, reply.text, torn, files.lines)


def _bound(agent: HarnessAgent, ctx: RuntimeContext) -> RuntimeContext:
    """The caller's context as a call would fill it in."""
    return bind(agent.config, ctx).ctx


def check_ledger(data: bytes) -> tuple[list[str], int]:
    """What is wrong with the bytes of a ledger, in sentences, and how many of its lines are torn.

    A line that a crash cut short is allowed where the next one is linked to it, and at the end. Every
    other line must be whole, numbered by its place, and linked to the exact bytes before it.
    """
    problems: list[str] = []
    torn = 0
    lines = _lines(data)
    for number, raw in enumerate(lines, 1):
        entry = _object(raw)
        before = lines[number - 2] if number > 1 else None
        if entry is None:
            torn += 1
            problems += _fused(raw, number)
        else:
            problems += _misplaced(entry, number, before)
    return problems, torn


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = loads(raw)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "type" in found else None


def _fused(raw: bytes, number: int) -> Iterator[str]:
    """A torn line that ends in a whole one: the append after a crash began right behind the fragment."""
    place = raw.find(b'{"type":"', 1)
    while place > 0:
        found = _object(raw[place:])
        if found is not None and "seq" in found:
            yield f"line {number} holds a torn record and a whole one"
        place = raw.find(b'{"type":"', place + 1)


def _misplaced(entry: dict[str, Any], number: int, before: bytes | None) -> Iterator[str]:
    if entry.get("seq") != number:
        yield f"line {number} says it is line {entry.get('seq')}"
    expected = None if before is None else hashlib.sha256(before).hexdigest()
    if entry.get("prevHash") != expected:
        yield f"line {number} is not linked to the bytes of the line before it"
    if (entry.get("type") == "header") != (number == 1):
        yield f"line {number} is a {entry.get('type')}"


class _Files:
    """The files of one session, read anew for every check."""

    def __init__(self, binding: Binding) -> None:
        self.session_id = binding.session_id
        self._files = SessionFiles.of(binding.sessions_folder, binding.session_id)
        self.entries: list[dict[str, Any]] = []
        self.lines = 0

    def check(self, committed: Sequence[CommittedTurn], *, copies: bool = True) -> tuple[list[str], int]:
        data = _read(self._files.ledger)
        problems, torn = check_ledger(data)
        lines = _lines(data)
        self.lines = len(lines)
        self.entries = [entry for raw in lines if (entry := _object(raw))]
        problems += self._lost(committed)
        problems += self._missing_files()
        problems += self._foreign_copies(set(lines)) if copies else ()
        return problems, torn

    def _lost(self, committed: Sequence[CommittedTurn]) -> Iterator[str]:
        said = [_text_of(entry) for entry in self.entries if _is_message(entry, "user")]
        given = [_text_of(entry) for entry in self.entries if _is_message(entry, "model")]
        for turn in committed:
            for what, text, found in (("prompt", turn.prompt, said), ("reply", turn.reply, given)):
                if (count := found.count(text)) != 1:
                    yield f"the {what} of committed turn {turn.number} is in the ledger {count} times"

    def _missing_files(self) -> Iterator[str]:
        for sha256 in {name for entry in self.entries for name in _named(entry)}:
            try:
                data = disk.read(self._files.blobs / sha256[:2] / sha256)
            except FileMissing:
                yield f"the ledger names the file {sha256}, which is not there"
            else:
                if hashlib.sha256(data).hexdigest() != sha256:
                    yield f"the file {sha256} has other bytes than those it is named by"

    def _foreign_copies(self, lines: set[bytes]) -> Iterator[str]:
        """The context file may be behind or torn at its end, but never say what the ledger does not."""
        data = _read(self._files.context)
        copies = data.split(b"\n")[1:-1]
        for number, raw in enumerate(copies, 2):
            # A line torn by an earlier crash must have been cut off or written anew by now.
            if raw not in lines:
                yield f"line {number} of the context file is no line of the ledger"
        if len(copies) != len(set(copies)):
            yield "the context file holds a line twice"

    def copied(self) -> set[str]:
        """The ids of the messages in the context file."""
        found = (_object(raw) for raw in _lines(_read(self._files.context))[1:])
        return {entry["message"]["id"] for entry in found if entry and entry["type"] == "message"}

    async def check_snapshot(self, ctx: RuntimeContext) -> list[str]:
        """Track 1 must be readable, and name a position that the ledger has."""
        if ctx.session is None or not isinstance(ctx.session_key, SessionKey):
            return []
        position = await ctx.session.get(ctx.session_key, "memory")
        await ctx.session.get_list(ctx.session_key, "memory_messages")
        if position is None:
            return []
        seq = position["seq"]
        if seq > self.lines:
            return [f"the snapshot names line {seq} of the ledger, which is not there"]
        line = next((entry for entry in self.entries if entry["seq"] == seq + 1), None)
        if line is not None and line.get("prevHash") != position["hash"]:
            return [f"the snapshot names line {seq} of the ledger by another hash"]
        return []


async def _check_view(agent: HarnessAgent, ctx: RuntimeContext, files: _Files) -> list[str]:
    """Both copies of the conversation must be up to date once a call has ended well."""
    tree = await agent.sessions(ctx).tree(files.session_id)
    seen = [message["id"] for message in tree.messages()]
    bound = _bound(agent, ctx)
    problems = []
    logged = {entry["message"]["id"] for entry in files.entries if entry["type"] == "message"}
    if missing := sorted(set(seen) & logged - files.copied()):
        problems.append(f"messages that the model sees are not in the context file: {missing}")
    if bound.session is not None and isinstance(bound.session_key, SessionKey):
        kept = [message["id"] for message in await bound.session.get_list(bound.session_key, "memory_messages")]
        if kept != seen:
            problems.append(f"the snapshot has {len(kept)} messages, the model sees {len(seen)}, or others")
    return problems


async def _check_history(
    agent: HarnessAgent, session_id: str, ctx: RuntimeContext, said: Sequence[CommittedTurn]
) -> list[str]:
    history: list[Msg] = await agent.sessions(ctx).history(session_id, _EVERYTHING)
    texts = [message.text for message in history]
    return [
        f"the {what} of turn {turn.number} is not in the history"
        for turn in said
        for what, text in (("prompt", turn.prompt), ("reply", turn.reply))
        if text not in texts
    ]


def _read(path: Path) -> bytes:
    try:
        return disk.read(path)
    except FileMissing:
        return b""


def _is_message(entry: dict[str, Any], via: str) -> bool:
    return entry["type"] == "message" and entry.get("via") == via and not entry.get("partial")


def _text_of(entry: dict[str, Any]) -> str:
    return "\n".join(text for block in entry["message"]["content"] if (text := block_text(block)))


def _named(entry: dict[str, Any]) -> list[str]:
    """Every file that a line names: media, and contents that were too large for the line."""
    return [item["sha256"] for item in entry.get("files", [])]
