"""What `harness quickstart` does, as a function that returns what happened and whether it was right."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness.agent import HarnessAgent
from harness.context import RuntimeContext
from harness.errors import ConfigError, HarnessError
from harness.filesystem import disk, pool
from harness.hooks import CompactionConfig
from harness.ids import new_id
from harness.messages import Msg
from harness.text import loads

__all__ = ["ContextView", "Said", "Story", "fresh_folder", "tell"]

Hits: TypeAlias = tuple[dict[str, Any], ...]

AGENT = "notes"
SESSION = "monday"
"""Both users name their conversation alike, on purpose."""
_FIRST = {
    "alice": "My name is Alice. My code word is blue-fox.",
    "bob": "My name is Bob. My code word is red-owl.",
}
_SECOND = "What is my name? What is my code word?"
_SMALL_TALK = ("I water the plants on Fridays.", "The blue bicycle has a flat tyre.", "My train leaves at nine.")


@dataclass(frozen=True, slots=True)
class Said:
    """One turn in a process of its own."""

    user: str
    message: str
    reply: str
    process: int


@dataclass(frozen=True, slots=True)
class ContextView:
    """A compacted conversation: the messages in the ledger, those shown to the model, and that it still knows."""

    logged: tuple[str, ...]
    shown: tuple[str, ...]
    question: str
    reply: str


@dataclass(frozen=True, slots=True)
class Story:
    """What happened."""

    folder: Path
    turns: tuple[Said, ...]
    hits: Hits
    context: ContextView
    files: tuple[tuple[str, int], ...]
    checks: Mapping[str, bool]

    @property
    def ok(self) -> bool:
        """Whether everything was as it should be."""
        return all(self.checks.values())

    def to_dict(self) -> dict[str, Any]:
        """The story as `--json` shows it."""
        return {
            "ok": self.ok,
            "dir": str(self.folder),
            "turns": [asdict(said) for said in self.turns],
            "hits": list(self.hits),
            "context": asdict(self.context),
            "files": [{"path": path, "bytes": size} for path, size in self.files],
            "checks": dict(self.checks),
        }


async def fresh_folder(wanted: Path | None) -> Path:
    """The folder to work in, made if need be. Raises `ConfigError` for one that has something in it."""
    return await pool.run(_fresh_folder, wanted)


async def tell(folder: Path) -> Story:
    """Run it all in `folder`."""
    turns = await _talk(folder)
    async with _agent(folder) as agent:
        hits = {user: await _hits(agent, user, "code word") for user in _FIRST}
        context = await _compact(agent)
    files = tuple(await pool.run(lambda: list(_files(folder, ""))))
    return Story(folder, turns, hits["alice"], context, files, _checks(turns, hits, context))


async def _talk(folder: Path) -> tuple[Said, ...]:
    """Both users at once; each user's second turn after their first."""
    first = await asyncio.gather(*(_child(folder, user, message) for user, message in _FIRST.items()))
    second = await asyncio.gather(*(_child(folder, user, _SECOND) for user in _FIRST))
    return (*first, *second)


async def _child(folder: Path, user: str, message: str) -> Said:
    """One turn by the command line, in a new process."""
    words = ["chat", "--json", "--workspace", str(folder), "--agent", AGENT, "--user", user]
    words += ["--session", SESSION, "--message", message]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "harness", *words, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    if child.returncode != 0:
        raise HarnessError(f"the turn of {user} ended with exit code {child.returncode}; what it says stands above")
    return Said(user, message, loads(output)["reply"], child.pid)


def _agent(folder: Path) -> HarnessAgent:
    """The same agent here, one that compacts early."""
    builder = HarnessAgent.builder().name(AGENT).agent_id(AGENT).model("offline").workspace(folder)
    return builder.compaction(CompactionConfig(trigger_messages=6, keep_messages=2)).build()


async def _hits(agent: HarnessAgent, user: str, query: str) -> Hits:
    hits = await agent.sessions(user).search(query)
    return tuple({"session_id": hit.session_id, "role": hit.role, "snippet": hit.snippet} for hit in hits)


async def _compact(agent: HarnessAgent) -> ContextView:
    """Talk on until the conversation of alice has been compacted, and ask again for what was said first."""
    ctx = RuntimeContext(session_id=SESSION, user_id="alice")
    for message in _SMALL_TALK:
        await agent.call(message, ctx)
    question = "What is my code word?"
    reply = await agent.call(question, ctx)
    tree = await agent.sessions("alice").tree(SESSION)
    view = await tree.load()
    logged = await agent.sessions("alice").history(SESSION, 1_000)
    shown = [Msg.from_dict(message) for message in view.messages]
    return ContextView(_lines(logged), _lines(shown), question, reply.text)


def _lines(messages: Sequence[Msg]) -> tuple[str, ...]:
    return tuple(f"{message.role}: {message.text}" for message in messages)


def _checks(turns: tuple[Said, ...], hits: Mapping[str, Hits], view: ContextView) -> dict[str, bool]:
    alice, bob = turns[-2].reply, turns[-1].reply
    found = {user: " ".join(hit["snippet"] for hit in of_user) for user, of_user in hits.items()}
    return {
        "alice is remembered by a new process": "Alice" in alice and "blue-fox" in alice,
        "bob is remembered by a new process": "Bob" in bob and "red-owl" in bob,
        "neither is told what the other said": _apart(alice, bob),
        "search finds what alice said, and only that": "blue-fox" in found["alice"] and "red-owl" not in found["alice"],
        "the model is shown less than the ledger holds": len(view.shown) < len(view.logged),
        "what was compacted is still known": "blue-fox" in view.reply,
    }


def _apart(alice: str, bob: str) -> bool:
    mixed = ("Bob" in alice, "red-owl" in alice, "Alice" in bob, "blue-fox" in bob)
    return not any(mixed)


def _fresh_folder(wanted: Path | None) -> Path:
    folder = (wanted or Path(tempfile.gettempdir()) / f"harness-quickstart-{new_id()}").absolute()
    if disk.list_folder(folder):
        raise ConfigError(f"{folder} is not empty; give --dir a new folder, or leave it out")
    disk.make_folder(folder)
    return folder


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    for item in disk.list_folder(folder):
        if item.is_dir:
            yield from _files(folder / item.name, f"{prefix}{item.name}/")
        else:
            yield f"{prefix}{item.name}", item.size
