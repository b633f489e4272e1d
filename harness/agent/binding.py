"""From what a caller said to what a call uses: every default filled in, before anything runs.

Binding touches no disk and changes nothing on the agent: two calls bound at the same moment do not
know of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.agent.checks import kind_of
from harness.agent.config import AgentConfig
from harness.agent.gate import SessionPlace
from harness.context import RuntimeContext
from harness.errors import ConfigError, InvalidId
from harness.filesystem.namespaces import agent_root, tenant_root
from harness.ids import check_id, new_session_id
from harness.messages import Msg, TextBlock
from harness.sessions.view.pairing import in_its_place
from harness.state import SessionKey

__all__ = ["Binding", "bind", "messages_of", "owner_of"]


@dataclass(frozen=True, slots=True)
class Binding:
    """Whose call it is and where its session lies. `ctx` is the caller's with every default filled in."""

    ctx: RuntimeContext
    namespace: tuple[str, ...]
    session_id: str
    tenant_root: Path
    sessions_folder: Path

    @property
    def place(self) -> SessionPlace:
        """What the gate knows the session by."""
        return SessionPlace(str(self.sessions_folder), self.session_id)


def bind(config: AgentConfig, ctx: RuntimeContext | None) -> Binding:
    """Fill in what the caller left out. Raises `InvalidId`, and `ConfigError` for a key of somebody else.

    The session id is the context's, else the one of its session key, else a new one: strangers never
    share a conversation because an id was missing. The session key only says where track 1 goes, and
    always belongs to the caller's own namespace and agent.
    """
    ctx = RuntimeContext() if ctx is None else kind_of("ctx", ctx, RuntimeContext, "RuntimeContext(user_id=…)")
    namespace = owner_of(config, ctx)
    session_id = ctx.session_id or _id_in(ctx.session_key) or new_session_id()
    key = _own_key(ctx.session_key or session_id, namespace, config.agent_id)
    root = tenant_root(config.workspace, namespace)
    return Binding(
        ctx=ctx.with_changes(session_id=session_id, session=ctx.session or config.session, session_key=key),
        namespace=namespace,
        session_id=session_id,
        tenant_root=root,
        sessions_folder=agent_root(root, config.agent_id) / "sessions",
    )


def owner_of(config: AgentConfig, ctx: RuntimeContext) -> tuple[str, ...]:
    """The tenant of a context. Raises `InvalidId` where a user is required and not given."""
    if config.require_user and ctx.user_id is None:
        raise InvalidId("this agent serves known users only; give RuntimeContext(user_id=…)")
    parts: Any = config.namespace(ctx)
    if not isinstance(parts, tuple | list):
        raise ConfigError(f"the namespace function gave a {type(parts).__name__}; it must give a tuple of texts")
    namespace = tuple(parts)
    for part in namespace:
        check_id("namespace part", part)
    return namespace


def messages_of(given: Any) -> list[Msg]:
    """The messages in what a caller handed in. Raises `ConfigError` naming what is none."""
    if isinstance(given, str | Msg):
        return messages_of([given])
    if not isinstance(given, Sequence):
        raise ConfigError(f"a call takes text, a Msg, or a list of them, not {type(given).__name__}")
    if not given:
        raise ConfigError("a call without a message cannot be made; give text, a Msg, or a list of them")
    return [_message(item) for item in given]


def _message(item: Any) -> Msg:
    message = _made(item)
    if message.role == "system":
        raise ConfigError("a system message is no part of a conversation; use the builder's system_prompt or a hook")
    if all(isinstance(block, TextBlock) and not block.text for block in message.blocks):
        raise ConfigError("a message without content cannot be sent; give it text or a block")
    return in_its_place(message)


def _made(item: Any) -> Msg:
    if isinstance(item, str):
        return Msg.user(item)
    if isinstance(item, dict):
        return Msg.from_dict(item)
    if isinstance(item, Msg):
        return item.checked()
    raise ConfigError(f"{type(item).__name__} is no message; give text, a Msg, or a dict of one")


def _id_in(key: SessionKey | str | None) -> str | None:
    return key.session if isinstance(key, SessionKey) else key


def _own_key(key: SessionKey | str, namespace: tuple[str, ...], agent: str) -> SessionKey:
    if isinstance(key, str):
        return SessionKey(namespace, agent, key)
    if (key.namespace, key.agent) not in ((namespace, agent), ((), agent)):
        raise ConfigError(
            f"session_key belongs to {key.namespace!r} and agent {key.agent!r}, the call to {namespace!r} and "
            f"{agent!r}; give the session id alone, and the key is made for the caller"
        )
    return key.with_owner(namespace, agent)
