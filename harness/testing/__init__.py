"""Test doubles and a crash kit that are part of the product: for testing what is built on this library.

Names are loaded when they are first used: a scripted model needs neither readers nor a crash kit.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.testing.crash import CommittedTurn, Crash, CrashKit, Kill
    from harness.testing.crash_checks import SessionCheck, check_ledger, check_session
    from harness.testing.crash_process import Progress
    from harness.testing.power import DiskRecorder, Loss
    from harness.testing.recording import Adaptations, RecordedPrompt
    from harness.testing.replay import ReplayModel
    from harness.testing.scripted import ScriptedModel, Step

__all__ = [
    "Adaptations",
    "CommittedTurn",
    "Crash",
    "CrashKit",
    "DiskRecorder",
    "Kill",
    "Loss",
    "Progress",
    "RecordedPrompt",
    "ReplayModel",
    "ScriptedModel",
    "SessionCheck",
    "Step",
    "check_ledger",
    "check_session",
]

_HOMES = {
    "crash": ("CommittedTurn", "Crash", "CrashKit", "Kill"),
    "crash_checks": ("SessionCheck", "check_ledger", "check_session"),
    "crash_process": ("Progress",),
    "power": ("DiskRecorder", "Loss"),
    "recording": ("Adaptations", "RecordedPrompt"),
    "replay": ("ReplayModel",),
    "scripted": ("ScriptedModel", "Step"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"harness.testing.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
