"""The normal form that every reader gives: one `Turn` a message, results behind the calls they answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from harness.messages import MessageDict
from harness.transcripts.blocks import BlockDict, says

__all__ = ["MAX_TURNS", "Aside", "Kind", "Turn"]

Kind: TypeAlias = Literal["prompt", "queued", "answer", "results", "orphan", "context", "meta", "compaction"]
Aside: TypeAlias = Literal["sidechain", "abandoned"]


MAX_TURNS = 20_000
"""Turns of a page, and of a session that is read with a cap; where there are more, it is said."""


class Turn(NamedTuple):
    """One message of a transcript, in the form in which this library stores messages.

    kind    `prompt`: a person typed it; `queued`: typed while the model worked, and written nowhere
            else. `answer`: a model's message, calls included. `results` of its calls; `orphan`: a
            result without a call. `context` and `meta`: the other harness said it, to the model or to
            itself. `compaction`: what stood for older messages.
    line    where in the file it begins, from 1; 0 where a window does not know
    offset  the bytes in front of that line; in a database, of the messages before it
    key     its name within the session, for links; stays when the file grows
    at      RFC 3339 in UTC with milliseconds, where the time is known
    final   the last answer with text before the next prompt
    aside   not in the person's conversation: `sidechain` (a sub-agent inside its parent's file) or
            `abandoned` (a branch that was left)
    """

    kind: Kind
    message: MessageDict
    line: int
    at: str | None = None
    aside: Aside | None = None
    offset: int = 0
    key: str = ""
    final: bool = False

    @property
    def sidechain(self) -> bool:
        """Whether a sub-agent said it inside its parent's file."""
        return self.aside == "sidechain"

    @property
    def role(self) -> str:
        """`user`, `assistant`, `tool`, or `system` for what no person, model or tool said."""
        return str(self.message["role"])

    @property
    def blocks(self) -> list[BlockDict]:
        """The content, in order."""
        blocks: list[BlockDict] = self.message["content"]
        return blocks

    @property
    def text(self) -> str:
        """The text blocks, a line each."""
        return "\n".join(block["text"] for block in self.blocks if block["type"] == "text")

    def has_text(self) -> bool:
        """Whether there is text to read; blanks are none."""
        return any(block["type"] == "text" and says(block) for block in self.message["content"])

    def of_type(self, kind: str) -> Iterator[BlockDict]:
        """The blocks of one type, in order."""
        return (block for block in self.blocks if block["type"] == kind)
