"""What a turn does next, as a value; the loop only looks at which one it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.messages import Msg

__all__ = ["Act", "Finish", "Reason", "Step", "Summarise"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Ask the model. `number` counts the turn's requests from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Act:
    """Run the tools that this committed message asks for, then reason as `number`."""

    message: Msg
    number: int


@dataclass(frozen=True, slots=True)
class Summarise:
    """The step limit is reached: one closing request without tools."""

    number: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The turn's reply."""

    message: Msg


Step: TypeAlias = Reason | Act | Summarise | Finish
