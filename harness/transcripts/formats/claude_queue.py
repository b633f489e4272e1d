"""Prompts that were typed while the model worked: shown once, wherever the harness wrote them down."""

from __future__ import annotations

from harness.transcripts.assembly import Assembly, Draft
from harness.transcripts.pieces import Piece

__all__ = ["QueueAssembly"]


class QueueAssembly(Assembly):
    """A queued prompt is shown unless a later line says the same, or it was taken back."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[Draft] = []

    def note(self, piece: Piece) -> None:
        """A `withdrawn` note: the text went back into the input box."""
        self._settle(str(piece.data))

    def message(self, piece: Piece) -> Draft:
        """See `Assembly`."""
        if piece.kind in ("prompt", "queued"):
            text = _text(piece.blocks)
            if piece.kind == "prompt" or piece.data == "taken":
                self._settle(text, exact=True)
        draft = super().message(piece)
        if piece.kind == "queued" and piece.data != "taken":
            self._waiting.append(draft)
        return draft

    def finish(self) -> None:
        """A file that holds nothing but a sub-agent's lines is that agent's own conversation."""
        if self._drafts and all(draft.aside == "sidechain" for draft in self._drafts):
            for draft in self._drafts:
                draft.aside = None

    def _settle(self, text: str, *, exact: bool = False) -> None:
        """Take from the waiting prompts what this text accounts for."""
        for draft in list(self._waiting):
            waiting = _text(draft.blocks)
            if waiting == text or (not exact and waiting and waiting in text):
                self._waiting.remove(draft)
                self._drafts.remove(draft)
                if exact:
                    return


def _text(content: list[dict[str, object]]) -> str:
    return "\n".join(str(block["text"]) for block in content if block["type"] == "text").strip()
