"""Track 1 in values: keys, states, and the protocol of a store for them.

A store keeps, per `SessionKey`, named single values and named lists. It is what a `RuntimeContext`
carries to say where this call's snapshots go, so its contract stands on the ground floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from harness.ids import check_id

__all__ = ["Session", "SessionKey", "State", "StateModule"]

State: TypeAlias = dict[str, Any]
"""One JSON object: the whole value of a module, or one item of a list."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Where one conversation's state lives: (namespace, agent, session), never less.

    Equal session ids of two users are different keys in every store. Raises `InvalidId`.
    """

    namespace: tuple[str, ...]
    agent: str
    session: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "namespace", tuple(self.namespace))
        for part in self.namespace:
            check_id("namespace part", part)
        check_id("agent id", self.agent)
        check_id("session id", self.session)

    def with_owner(self, namespace: tuple[str, ...], agent: str) -> SessionKey:
        """The same session of this namespace and agent."""
        return replace(self, namespace=namespace, agent=agent)


@runtime_checkable
class Session(Protocol):
    """A store of track 1. Every method may raise `PersistenceError`; none keeps what it is given.

    Whatever else a method raises, and no answer within 30 seconds, counts as that error: a store that is down is
    not one that is empty.

    `name` is a plain word (a module's name): it becomes part of a file name or column.
    Single values and lists are kept apart: `save("x")` and `append("x")` do not meet.
    """

    async def save(self, key: SessionKey, name: str, value: State) -> None:
        """Replace the single value `name` at once: a reader sees the old or the new one, whole."""
        ...

    async def get(self, key: SessionKey, name: str) -> State | None:
        """The single value, or None. A damaged one is set aside, reported to the log, and None."""
        ...

    async def append(self, key: SessionKey, name: str, items: Sequence[State], expect_count: int) -> None:
        """Add to the end of a list that has `expect_count` items now; `ListMoved` if it has not.

        Costs what the new items cost, whatever the length of the list.
        """
        ...

    async def replace(self, key: SessionKey, name: str, items: Sequence[State]) -> None:
        """Replace the whole list at once."""
        ...

    async def get_list(self, key: SessionKey, name: str) -> list[State]:
        """The list; empty if there is none. Damaged items are left out and reported to the log."""
        ...

    async def exists(self, key: SessionKey) -> bool:
        """Whether anything is stored under the key."""
        ...

    async def delete(self, key: SessionKey, name: str | None = None) -> None:
        """Remove one name (both kinds) or everything under the key; nothing there is no error."""
        ...

    async def list_keys(self, namespace: tuple[str, ...], agent: str) -> list[SessionKey]:
        """The keys of one namespace and agent, sorted by session id."""
        ...

    async def aclose(self) -> None:
        """Let go of what the store holds open."""
        ...


@runtime_checkable
class StateModule(Protocol):
    """A part of a call's state that is saved when the call ends and loaded when the next begins.

    The builder is given a factory, and every call gets a module of its own: nothing of one user
    can be left in it for another. `name` is the name in the store and in the ledger.
    """

    name: str

    def save(self) -> State | None:
        """The whole value, as JSON; None to store nothing."""
        ...

    def load(self, value: State) -> None:
        """Take over a value that `save` made, perhaps by an older version."""
        ...
