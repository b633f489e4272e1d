"""A session of another harness as a new session of this library: logged line by line, ready to go on.

What a person, the model and the tools said keeps its place, its ids, times left out. What the other
harness put in beside it (`context`, `meta`) is logged as a hook's work is: it is there to be read, and
the model sees it only while its turn is open. Where the other harness compacted, so does the ledger:
its summary stands for what came before. Calls without a result stay open until the next call on the
session. Sub-agents inside the file, branches that were left, results without a call, and that a prompt
was typed while the model worked, are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import SessionExists, TranscriptRefused
from harness.filesystem import disk, pool
from harness.messages import MessageDict
from harness.sessions.moving.importing import remove_abandoned
from harness.sessions.tree.session_tree import SessionTree
from harness.transcripts.blocks import BlockDict
from harness.transcripts.export.base import UniqueNames, conversation, file_digest, media_of, text_of
from harness.transcripts.reader import Transcript
from harness.transcripts.telling import Tell
from harness.transcripts.turns import Turn

__all__ = ["Imported", "import_transcript"]

_BATCH = 500
"""Lines between two writes: a long session is not held in memory twice."""
_SAID = {
    "prompt": ("user", "user"),
    "queued": ("user", "user"),
    "answer": ("assistant", "model"),
    "results": ("tool", "tool"),
}
"""Role and origin of what stays in the conversation; anything else is a hook's."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import made. `open_calls` are calls without a result; `left_out` counts what has no place."""

    session_id: str
    messages: int
    prompts: int
    open_calls: int
    compactions: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "sessionId": self.session_id,
            "messages": self.messages,
            "prompts": self.prompts,
            "openCalls": self.open_calls,
            "compactions": self.compactions,
            "leftOut": dict(self.left_out),
        }


async def import_transcript(transcript: Transcript, tree: SessionTree, tell: Tell | None = None) -> Imported:
    """Log a transcript that was read without a `cap` into a session that does not exist yet, under its lock.

    It is written beside its place and moved there once it is whole: what is cut off leaves no session.
    `tell` is given how many turns were logged, and of how many, now and then.
    The header's `importedFrom` names the format, the session, the file and its SHA-256. Raises
    `SessionExists` where the session has a ledger already, `TranscriptRefused` where there is nothing to log,
    `SessionBusy`, `PersistenceError`.
    """
    source = await pool.run(_origin, transcript)
    media = await pool.run(media_of, transcript)
    async with tree.writing():
        if tree.ledger_id is not None:
            raise SessionExists(
                f"there is a session {tree.session_id!r} already; import under another id, or delete that one first"
            )
        await pool.run(remove_abandoned, tree.files.folder)
        staged = tree.beside()
        try:
            made = await _log(transcript, staged, source, media, tell)
            await tree.take_in(staged)
        except BaseException:
            await pool.run(disk.remove_tree, staged.files.folder)
            raise
    await tree.load()
    return made


async def _log(
    transcript: Transcript, tree: SessionTree, source: Mapping[str, Any], media: Mapping[str, bytes], tell: Tell | None
) -> Imported:
    async with tree.writing():
        tree.describe(model=transcript.about.model or transcript.counts.model, imported_from=source)
        importer = _Importer(tree, media)
        for number, _ in enumerate(importer.log(transcript.turns)):
            if number % _BATCH == _BATCH - 1:
                await tree.commit(sync=False)
                if tell is not None:
                    tell(number + 1, len(transcript.turns))
        if tree.ledger_id is None:
            place = f"session {transcript.session_id!r} in {transcript.file_name}"
            raise TranscriptRefused("no_transcript", f"{place} has no message to import; nothing was imported")
        await tree.commit(sync=True)
    return importer.report()


def _origin(transcript: Transcript) -> dict[str, Any]:
    named = {"format": transcript.format, "session": transcript.session_id, "file": transcript.file_name}
    return {**named, "sha256": file_digest(transcript.source)["sha256"]}


class _Importer:
    """One pass over the turns of one session; it exists to carry what a boundary has to name."""

    def __init__(self, tree: SessionTree, media: Mapping[str, bytes]) -> None:
        self._tree = tree
        self._media = media
        self._names = UniqueNames()
        self._left_out: Counter[str] = Counter()
        self._turns: list[str] = []
        self._summarised = ""
        self._open: set[str] = set()
        self._count: Counter[str] = Counter()

    def log(self, turns: Iterable[Turn]) -> Iterator[None]:
        """Add everything to the tree, and stop after each line for the caller to write."""
        told = list(conversation(turns, self._left_out))
        position = 0
        while position < len(told):
            turn = told[position]
            position += 1
            if turn.kind == "compaction":
                run = [turn]
                while position < len(told) and told[position].kind == "compaction":
                    run.append(told[position])
                    position += 1
                self._compaction(run, told[position:])
            elif turn.kind == "orphan":
                self._left_out["results without a call"] += 1
            else:
                self._message(turn)
            yield

    def report(self) -> Imported:
        """What was made."""
        return Imported(
            self._tree.session_id,
            self._count["messages"],
            self._count["prompts"],
            len(self._open),
            self._count["compactions"],
            dict(+self._left_out),
        )

    def _message(self, turn: Turn) -> None:
        role, via = _SAID.get(turn.kind, ("user", "hook"))
        message = {**turn.message, "id": self._names.of(str(turn.message["id"])), "role": role}
        message["content"] = [_stored(block) for block in turn.blocks]
        is_partial = message.pop("partial", False) is True
        media = {name: self._media[name] for name in _named(turn.blocks) if name in self._media}
        entry = self._tree.add_message(message, via=via, partial=is_partial, media=media)
        self._count["messages"] += 1
        self._left_out["queued marks"] += turn.kind == "queued"
        self._open |= {block["id"] for block in turn.of_type("toolUse")}
        self._open -= {block["id"] for block in turn.of_type("toolResult")}
        if via == "user":
            self._count["prompts"] += 1
            self._turns.append(entry)

    def _compaction(self, run: list[Turn], following: list[Turn]) -> None:
        """A boundary. Where the model goes on without a new prompt, the turn that was open stays so."""
        texts = [text_of(turn.blocks, self._left_out).strip() for turn in run]
        summary = "\n\n".join(dict.fromkeys(text for text in texts if text))
        goes_on = next((turn.kind for turn in following if turn.kind not in ("context", "meta")), "")
        keeps = goes_on in ("answer", "results") and bool(self._turns)
        closed = self._turns[:-1] if keeps else self._turns
        first, last = (closed[0], closed[-1]) if closed else (self._summarised, self._summarised)
        self._tree.append_compaction(summary, first, last, None, None, keeps_open_turn=keeps)
        self._turns = self._turns[-1:] if keeps else []
        self._summarised = last
        self._count["compactions"] += 1


def _stored(block: BlockDict) -> MessageDict:
    """A block as it is logged: media by their digest."""
    made = dict(block)
    if isinstance(block.get("media"), dict):
        made["media"] = {name: value for name, value in block["media"].items() if name != "data"}
    if isinstance(block.get("content"), list):
        made["content"] = [_stored(item) if isinstance(item, dict) else item for item in block["content"]]
    return made


def _named(content: Iterable[Any]) -> Iterator[str]:
    for block in content:
        if isinstance(block, dict):
            if isinstance(block.get("media"), dict):
                yield str(block["media"].get("sha256"))
            if isinstance(block.get("content"), list):
                yield from _named(block["content"])
