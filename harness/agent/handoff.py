"""Going on in a new session: it begins with word of the old one, whose history stays where it is.

The old session is not touched. The new one belongs to the same tenant and agent, so its session tools can read the old
one; what they read is an ordinary tool result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.agent.binding import Binding
from harness.agent.config import AgentConfig
from harness.agent.gate import process_gate
from harness.agent.meta import AgentMeta, made_by
from harness.agent.open_session import holding, refuse_remembered
from harness.errors import SessionExists
from harness.filesystem import disk, pool
from harness.messages import Msg, TextBlock
from harness.models.base import Model
from harness.sessions.catalog.index import HANDOFF
from harness.sessions.tree.session_tree import SessionTree
from harness.state import State
from harness.text import dumps

__all__ = ["Handoff", "hand_over"]

_TOOL = "session_history"


class Handoff:
    """The state module `handoff`: where the session came from; nothing in a session that began by itself."""

    name = HANDOFF

    def __init__(self, config: AgentConfig) -> None:
        self._can_read = config.toolkit.get(_TOOL) is not None
        self._value: State | None = None

    def save(self) -> State | None:
        """What `hand_over` wrote."""
        return self._value

    def load(self, value: State) -> None:
        """Take it over."""
        self._value = value

    def opened(self, messages: Sequence[Msg]) -> list[Msg]:
        """The first messages of the session, the first of a person opening with the handoff."""
        made = list(messages)
        first = next((n for n, message in enumerate(made) if message.role == "user"), None)
        if self._value is not None and first is not None:
            text = _handoff_text(self._value, can_read=self._can_read)
            block = TextBlock.model_validate({"type": "text", "text": text, HANDOFF: self._value})
            made[first] = made[first].with_changes(blocks=(block, *made[first].blocks))
        return made


async def hand_over(config: AgentConfig, source: SessionTree, target: Binding, model: Model) -> None:
    """Begin the session of `target` as the one in which `source` goes on. Raises `SessionExists`, `SessionBusy`."""
    async with (
        process_gate().hold(target.place, source, config.gate_timeout),
        holding(config, target) as session,
    ):
        tree = session.tree
        if tree.count:
            raise SessionExists(f"there is a session {target.session_id!r} already; choose another id for the new one")
        await refuse_remembered(config, target)
        staged = tree.beside()
        try:
            await _begin(staged, source, model, config.policy)
            await tree.take_in(staged)
        except BaseException:
            await pool.run(disk.remove_tree, staged.files.folder)
            raise


async def _begin(tree: SessionTree, source: SessionTree, model: Model, policy: str) -> None:
    async with tree.writing():
        tree.describe(
            **made_by(model),
            context_window=model.context_window,
            parent={"session": source.session_id, "entry": source.leaf},
            policy=policy,
        )
        tree.add("state", {"module": HANDOFF, "value": _word_of(source)})
        await tree.commit(sync=True)


def _handoff_text(value: State, *, can_read: bool) -> str:
    """What the model is told. The ids stand as JSON, as the session tools take them."""
    session = dumps(value.get("session")).decode()
    before = value.get("previousModel") or {}
    lines = ["[handoff_from]", f"session: {session}", "workspace: the same files of the same user"]
    lines += [f"previous_provider: {before['provider']}", f"previous_model: {before['model']}"] if before else []
    lines += ["[/handoff_from]", "This conversation goes on from that session. Nothing of it is repeated here."]
    lines += [f"Read it with {_TOOL}(session_id={session}) where it matters."] if can_read else []
    return "\n".join(lines)


def _word_of(source: SessionTree) -> dict[str, Any]:
    meta = source.states().get(AgentMeta.name)
    model = meta.get("model") if isinstance(meta, dict) else None
    known = model if isinstance(model, dict) else source.header or {}
    value: dict[str, Any] = {"session": source.session_id, "entry": source.leaf}
    if known.get("provider") and known.get("model"):
        value["previousModel"] = {"provider": known["provider"], "model": known["model"]}
    return value
