"""How much one request of a consolidation may show: what is configured, or less where the model takes less."""

from __future__ import annotations

from dataclasses import dataclass

from harness.models.tokens import estimate_tokens

__all__ = ["AROUND_TOKENS", "Fitting"]

AROUND_TOKENS = 400
"""What the rules and the tags of a request cost."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Sizes in estimated tokens. `room` is what one request may show in all; None for any number."""

    max_memory: int
    max_notes: int
    room: int | None = None

    @property
    def memory(self) -> int:
        """What the answer may have."""
        return self.max_memory if self.room is None else min(self.max_memory, self.room // 2)

    @property
    def notes(self) -> int:
        """How many notes are shown at once."""
        return self.max_notes if self.room is None else min(self.max_notes, self.room // 5)

    def divided(self, memory: str, notes: str) -> tuple[str, str]:
        """The memory file in two: what stays as it is unseen, and its end, which is shown with these notes."""
        if self.room is None:
            return "", memory
        left = self.room - AROUND_TOKENS - estimate_tokens(notes)
        if self.memory < self.max_memory:
            # What is shown must find room in the answer too, or there would be no way to lose nothing of it.
            left = min(left, self.memory * 6 // 5 - estimate_tokens(notes))
        lines = memory.splitlines(keepends=True)
        cut = len(lines)
        while cut and (left := left - estimate_tokens(lines[cut - 1])) >= 0:
            cut -= 1
        return "".join(lines[:cut]), "".join(lines[cut:])
