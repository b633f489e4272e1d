"""Whose sessions a command is about, and where they are."""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.agent import TenantSessions
from harness.cli.opening import opened
from harness.cli.options import DEFAULT_AGENT, DEFAULT_WORKSPACE
from harness.errors import ConfigError, FileMissing
from harness.filesystem import disk, pool

__all__ = ["Place", "owner_named"]


@dataclass(frozen=True, slots=True)
class Place:
    """What the options say: whose sessions a command is about, and whether it answers with JSON.

    namespace   what was named instead of a user; empty where it is the user's alone
    """

    workspace: Path
    agent: str
    user: str | None
    as_json: bool
    namespace: tuple[str, ...] = ()

    @asynccontextmanager
    async def sessions(self, model: str = "offline", *, new: bool = False) -> AsyncIterator[TenantSessions]:
        """The sessions, for the block.

        Raises `FileMissing` as `check_there`, unless the workspace may be `new`.
        """
        if not new:
            await self.check_there()
        async with opened(self.workspace, self.agent, model, namespace=self.namespace) as made:
            yield made.sessions(self.user)

    async def check_there(self) -> None:
        """Raise `FileMissing` for a workspace that was named and is not there; the usual one need not be there yet."""
        if self.workspace != DEFAULT_WORKSPACE and await pool.run(disk.mark, self.workspace) is None:
            raise FileMissing(f"there is no workspace {self.workspace}; name one that is there with --workspace")

    @property
    def whose(self) -> str:
        """Whose sessions they are, for a person."""
        return " / ".join(self.namespace) or self.user or "nobody in particular"

    def typed(self, *words: str) -> str:
        """A command about the same place, to be typed where this one was: what the environment says is left out."""
        return shlex.join(["harness", *words, *self._named()])

    def _named(self) -> Iterator[str]:
        options = (
            ("workspace", str(self.workspace), str(DEFAULT_WORKSPACE)),
            ("agent", self.agent, DEFAULT_AGENT),
            ("user", self.user, None),
        )
        for name, value, usual in options:
            if value is not None and value != (os.environ.get(f"HARNESS_{name.upper()}") or usual):
                yield from (f"--{name}", value)
        yield from (word for part in self.namespace for word in ("--namespace", part))


def owner_named(user: str | None, parts: Sequence[str] | None) -> tuple[str | None, tuple[str, ...]]:
    """The user, or the parts of a namespace that were named instead: a user of the environment gives way to them.

    Raises `ConfigError` where both were named.
    """
    if not parts:
        return user, ()
    if user is not None and user != os.environ.get("HARNESS_USER"):
        raise ConfigError("--user is a namespace of one part; give --user or --namespace, not both")
    return None, tuple(parts)
