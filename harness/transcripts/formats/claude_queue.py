"""Prompts that were typed while the model worked: shown once, wherever the harness wrote them down."""

from __future__ import annotations

from collections.abc import Iterable

from harness.transcripts.assembly import Assembly, Draft, Span, with_aside
from harness.transcripts.pieces import Piece

__all__ = ["QueueAssembly"]


class QueueAssembly(Assembly):
    """A queued prompt is shown unless a later line says the same, or it was taken back.

    The two lines are read together: no window ends between them. The queue is empty when a person speaks afresh: what
    was typed before and not taken never was, and a later line of the same words says them anew.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[str, Draft]] = []
        self._is_dequeued = self._is_fresh = False
        self._is_agents = True

    def note(self, piece: Piece) -> None:
        """`withdrawn`: the text went back into the input box; `dequeued`: what is said next was typed before."""
        if piece.note == "dequeued":
            self._is_dequeued = True
            return
        found = self._settle(str(piece.data))
        self._tie(found, piece)

    def message(self, piece: Piece) -> Draft:
        """See `Assembly`."""
        is_taken = piece.kind == "queued" and piece.data == "taken"
        if is_taken or piece.kind == "prompt":
            self._speak(piece, is_queued=is_taken or self._is_dequeued)
        if piece.kind in ("prompt", "context"):
            self._is_dequeued = False
        draft = self.keep(Draft(piece))
        if piece.kind == "queued" and not is_taken:
            self._waiting.append((_text(piece.blocks), draft))
        return draft

    def prime(self, head: Iterable[Piece]) -> None:
        """See `Assembly`: whose conversation the file is."""
        self._is_agents = all(piece.aside == "sidechain" for piece in head if piece.kind != "note")

    def spans(self) -> list[Span]:
        """See `Assembly`. What waits reaches to the end of what is known."""
        found = super().spans()
        end = max((span.until for span in found), default=0) + 1
        waiting = [Span("meta", draft.offset, end, is_open=False, is_tie=True) for _, draft in self._waiting]
        return found + waiting

    def finish(self) -> None:
        """A file that holds nothing but a sub-agent's lines is that agent's own conversation."""
        said = (*self._drafts, *self._results.values())
        if self._is_agents and said and all(one.aside == "sidechain" for one in said):
            self._drafts = [with_aside(draft, None) for draft in self._drafts]

    def _speak(self, piece: Piece, *, is_queued: bool) -> None:
        """A person's words reach the model; those that wait and are the same are not said twice."""
        found = self._settle(_text(piece.blocks), exact=True) if self._waiting else []
        if found or is_queued:
            self._tie(found, piece)
        elif piece.aside is None:
            self._is_fresh = True
            self._waiting.clear()

    def _tie(self, found: list[Draft], piece: Piece) -> None:
        """Read a line together with those that it accounts for; they may stand in front of all that is known."""
        for draft in found:
            self.tie(draft.offset, piece.offset)
        if not found and not self._is_fresh:
            self.tie_in_front(piece.offset)

    def _settle(self, text: str, *, exact: bool = False) -> list[Draft]:
        """Take from the waiting prompts what this text accounts for."""
        found: list[Draft] = []
        for waiting, draft in list(self._waiting):
            if waiting == text or (not exact and waiting and waiting in text):
                self._waiting.remove((waiting, draft))
                self._drafts.remove(draft)
                found.append(draft)
                if exact:
                    break
        return found


def _text(content: list[dict[str, object]]) -> str:
    return "\n".join(str(block["text"]) for block in content if block["type"] == "text").strip()
