"""What a call lends to the hooks that need more than an event: a model to ask, and a way to be seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from harness.filesystem import AbstractFilesystem
from harness.messages import MessageDict, Msg
from harness.models.base import Model

__all__ = ["Announcer", "Background", "Notices", "Recollector", "SideModel"]


@runtime_checkable
class SideModel(Protocol):
    """Requests beside the conversation; `event.scope.get(SideModel)`.

    Retries and fallback models apply as in the loop. Texts the model streams are not shown.
    """

    async def ask(
        self,
        purpose: str,
        system: str,
        messages: Sequence[MessageDict],
        instruction: str,
        model: Model | None = None,
    ) -> Msg:
        """Show `messages` and, behind them, `instruction`; logged like every request, with its purpose.

        `model` is another one than the call's. The answer may ask for tools; none is run.
        Raises errors of `ModelError`'s tree.
        """
        ...


@runtime_checkable
class Notices(Protocol):
    """Tells the ledger, the other hooks and whoever follows the call; `event.scope.get(Notices)`."""

    async def notice(self, kind: str, details: Mapping[str, Any]) -> None:
        """Log an `event` of this kind, and show it as a `Notice`."""
        ...

    def warn(self, text: str) -> None:
        """Say to the caller, in `call.warnings`, that something went less than well."""
        ...


@runtime_checkable
class Announcer(Protocol):
    """Shows how work behind the reply gets on: to the hooks, and to whoever still follows the call."""

    async def announce(self, kind: str, details: Mapping[str, Any]) -> None:
        """Show a `Notice` of this kind. Nothing is logged: the session belongs to nobody any more."""
        ...


@runtime_checkable
class Recollector(Protocol):
    """Asks a model after the call, when the session belongs to nobody; retries apply."""

    async def recollect(self, system: str, prompt: str, purpose: str = "flush") -> str:
        """The model's answer. Raises errors of `ModelError`'s tree."""
        ...

    def guarded(self, files: AbstractFilesystem) -> AbstractFilesystem:
        """The tenant's files, in which nothing is changed once the user was removed (`SessionNotFound`)."""
        ...


@runtime_checkable
class Background(Protocol):
    """Runs work behind the reply; `agent.aclose()` waits for it."""

    def start(self, name: str, work: Callable[[], Awaitable[None]], *, lane: Hashable = None) -> bool:
        """Run it soon, errors go to the log; False if too much waits already.

        Work of one lane is done piece after piece, in the order of its start.
        """
        ...
