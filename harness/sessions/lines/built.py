"""Messages built from their stored dicts once, while they are in use."""

from __future__ import annotations

from collections.abc import Iterable

from harness.messages import MessageDict, Msg

__all__ = ["BuiltMessages"]


class BuiltMessages:
    """From stored dicts to `Msg` and back, by object: a history that is sent again is not built again.

    Sound as long as message dicts, once handed out, are replaced and not changed in place.
    """

    def __init__(self) -> None:
        self._built: dict[int, tuple[MessageDict, Msg]] = {}
        self._stored: dict[int, MessageDict] = {}

    def of(self, messages: Iterable[MessageDict]) -> tuple[Msg, ...]:
        """The messages in order; what was not asked for this time is forgotten."""
        shown = list(messages)
        fresh: dict[int, tuple[MessageDict, Msg]] = {}
        for message in shown:
            # The dict is kept beside its Msg, so that its address cannot be given to another one.
            fresh[id(message)] = self._built.get(id(message)) or (message, Msg.from_dict(message))
        self._built = fresh
        self._stored = {id(built): message for message, built in fresh.values()}
        return tuple(fresh[id(message)][1] for message in shown)

    def stored(self, message: Msg) -> MessageDict:
        """The dict a message was built from, or one made from it now."""
        known = self._stored.get(id(message))
        return message.to_dict() if known is None else known
