"""A session of another harness as a new session of this library: logged line by line, ready to go on.

What a person, the model and the tools said keeps its place and its ids; a line has the time at which it was
written, and `meta` of the message the time at which it was said. What the other harness told the model
beside it (`context`) is logged as a hook's work is: it is there to be read, and the model sees it only while
its turn is open. Where no turn is open, it belongs to what follows, behind the prompt that opens the turn. What
it told only itself (`meta`), and context that nothing follows, is no message: an `event` line holds it.
The title is that of the new session. Where the other harness compacted, so does the ledger: its summary
stands for what came before. Calls without a result stay open until the next call on the session. Sub-agents
inside the file, branches that were left, results without a call, media of what is no message, and that a
prompt was typed while the model worked, are left out and counted.
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
from harness.text import clean_text
from harness.transcripts.blocks import BlockDict
from harness.transcripts.export.base import UniqueNames, conversation, file_digest, media_of, text_of
from harness.transcripts.formats.ledger import NOTE
from harness.transcripts.reader import Transcript
from harness.transcripts.telling import Tell
from harness.transcripts.turns import Turn

__all__ = ["Imported", "import_transcript"]

_BATCH = 500
"""Lines between two writes: a long session is not held in memory twice."""
_OPENING = ("prompt", "queued")
_SAID = {
    "prompt": ("user", "user"),
    "queued": ("user", "user"),
    "answer": ("assistant", "model"),
    "results": ("tool", "tool"),
}
"""Role and origin of what stays in the conversation; context is a hook's."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import made.

    `messages` are those of the person, the model and the tools, `harness_texts` what the other harness said beside
    them; `open_calls` are calls without a result; `left_out` counts what has no place.
    """

    session_id: str
    messages: int
    prompts: int
    harness_texts: int
    open_calls: int
    compactions: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "sessionId": self.session_id,
            "messages": self.messages,
            "prompts": self.prompts,
            "harnessTexts": self.harness_texts,
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
        if not importer.has_conversation():
            place = f"session {transcript.session_id!r} in {transcript.file_name}"
            raise TranscriptRefused("no_transcript", f"{place} has no message to import; nothing was imported")
        importer.give_title(transcript.about.title or transcript.about.weak_title)
        await tree.commit(sync=True)
    return importer.report()


def _origin(transcript: Transcript) -> dict[str, Any]:
    named = {"format": transcript.format, "session": transcript.session_id, "file": transcript.file_name}
    return {**named, "sha256": file_digest(transcript.source)["sha256"]}


class _Importer:
    """One pass over the turns of one session; it exists to carry what a boundary has to name, and whose context is."""

    def __init__(self, tree: SessionTree, media: Mapping[str, bytes]) -> None:
        self._tree = tree
        self._media = media
        self._names = UniqueNames()
        self._left_out: Counter[str] = Counter()
        self._turns: list[str] = []
        self._summarised = ""
        self._open: set[str] = set()
        self._waiting: list[Turn] = []
        self._is_turn_open = False
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
            elif turn.kind == "meta":
                self._note(turn)
            elif turn.kind == "context" and not self._is_turn_open:
                self._waiting.append(turn)
            else:
                self._said(turn)
            yield
        for turn in self._waiting:
            self._note(turn)
        yield

    def has_conversation(self) -> bool:
        """Whether there is anything to go on with."""
        return bool(self._count["messages"] or self._count["compactions"])

    def give_title(self, title: str | None) -> None:
        """Call the new session as the other one was called."""
        if title and (named := clean_text(title)).strip():
            self._tree.add("event", {"kind": "title", "data": {"title": named}})

    def report(self) -> Imported:
        """What was made."""
        return Imported(
            self._tree.session_id,
            self._count["messages"],
            self._count["prompts"],
            self._count["harness texts"],
            len(self._open),
            self._count["compactions"],
            dict(+self._left_out),
        )

    def _said(self, turn: Turn) -> None:
        """A message, and the context that waited for it: behind a prompt, which opens the turn, else in front."""
        opens = turn.kind in _OPENING
        for each in [turn, *self._waiting] if opens else [*self._waiting, turn]:
            self._message(each)
        self._waiting = []
        is_last_word = turn.kind == "answer" and not turn.message.get("partial") and not any(turn.of_type("toolUse"))
        self._is_turn_open = not is_last_word

    def _message(self, turn: Turn) -> None:
        role, via = _SAID.get(turn.kind, ("user", "hook"))
        message = {**_dated(turn), "id": self._names.of(str(turn.message["id"])), "role": role}
        message["content"] = [_stored(block) for block in turn.blocks]
        is_partial = message.pop("partial", False) is True
        media = {name: self._media[name] for name in _named(turn.blocks) if name in self._media}
        entry = self._tree.add_message(message, via=via, partial=is_partial, media=media)
        self._count["harness texts" if via == "hook" else "messages"] += 1
        self._left_out["queued marks"] += turn.kind == "queued"
        self._open |= {block["id"] for block in turn.of_type("toolUse")}
        self._open -= {block["id"] for block in turn.of_type("toolResult")}
        if turn.kind in _OPENING:
            self._count["prompts"] += 1
            self._turns.append(entry)

    def _note(self, turn: Turn) -> None:
        """What is no message is logged as none: it would open the turn again that was answered."""
        told = {"content": [_stored(block) for block in turn.blocks], **({"at": turn.at} if turn.at else {})}
        self._tree.add("event", {"kind": NOTE, "data": told})
        self._count["harness texts"] += 1
        self._left_out["media"] += sum(1 for _ in _named(turn.blocks))

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
        self._is_turn_open = keeps
        self._summarised = last
        self._count["compactions"] += 1


def _dated(turn: Turn) -> MessageDict:
    """The message, with the time at which it was said, where that is known."""
    meta = turn.message.get("meta", {})
    if turn.at is None or not isinstance(meta, dict):
        return turn.message
    return {**turn.message, "meta": {**meta, NOTE: {"at": turn.at}}}


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
