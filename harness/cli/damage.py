"""What a reader found wrong with a transcript, told beside the output and in its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.cli.output import one_line, say_aside
from harness.transcripts.lines import TranscriptWarning

__all__ = ["damage_fields", "say_warning", "tell_damage"]

_SAID = 5
_LISTED = 200
"""As in the viewer: a file may have as many faults as lines."""


def say_warning(text: str) -> None:
    """One line on standard error."""
    say_aside(f"warning: {one_line(text, 2000)}")


def tell_damage(warnings: Sequence[TranscriptWarning], file: str = "") -> None:
    """The first few warnings, one a line, and how many there are besides; `file` says whose they are."""
    for found in warnings[:_SAID]:
        say_warning(": ".join(part for part in (file, f"line {found.line}" if found.line else "", found.text) if part))
    if len(warnings) > _SAID:
        say_warning(f"{file}{': ' if file else ''}and {len(warnings) - _SAID:,} more; --json lists them")


def damage_fields(warnings: Sequence[TranscriptWarning]) -> dict[str, Any]:
    """What the JSON document says of them: the first 200, and how many are left out; nothing where there are none."""
    listed = [{"kind": found.kind, "line": found.line, "text": found.text} for found in warnings[:_LISTED]]
    left_out = len(warnings) - len(listed)
    return {**({"warnings": listed} if listed else {}), **({"warnings_left_out": left_out} if left_out else {})}
