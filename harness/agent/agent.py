"""`HarnessAgent`: one object that serves every user of a process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from harness.agent.binding import bind, messages_of
from harness.agent.builder import AgentBuilder
from harness.agent.call import Call
from harness.agent.catalogs import Catalogs
from harness.agent.checks import positive_or_none
from harness.agent.config import AgentConfig
from harness.agent.gate import process_gate
from harness.agent.lifecycle import Lifecycle
from harness.agent.removing import remove_user
from harness.agent.session_call import SessionCall
from harness.agent.tenant_sessions import TenantSessions
from harness.agent.user_removal import UserRemoval
from harness.context import RuntimeContext
from harness.hooks.uninterrupted import shielded
from harness.ids import check_id
from harness.messages import Msg
from harness.models import Model

if TYPE_CHECKING:
    from reactivex import Observable

    from harness.agent.stream import StreamEvent

__all__ = ["HarnessAgent"]


class HarnessAgent:
    """Made by `HarnessAgent.builder()`. Serves any number of calls of any users at once.

    No field of it changes during a call: who is speaking travels with the call.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._lifecycle = Lifecycle()
        self._catalogs = Catalogs(config.agent_id)

    @staticmethod
    def builder() -> AgentBuilder[HarnessAgent]:
        """Where every agent begins."""
        return AgentBuilder(HarnessAgent)

    @property
    def name(self) -> str:
        """The name for people."""
        return self._config.name

    @property
    def agent_id(self) -> str:
        """The id that paths are made from."""
        return self._config.agent_id

    @property
    def config(self) -> AgentConfig:
        """What the builder decided."""
        return self._config

    def call(
        self,
        message: str | Msg | Sequence[str | Msg],
        ctx: RuntimeContext | None = None,
        *,
        model: str | Model | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Call:
        """A call, which starts when it is first awaited, iterated, blocked on or subscribed to.

        model            for this call, instead of the agent's own and its fallbacks
        idempotency_key  a second call with the same key in this session gets the first one's reply, whatever it
                         says; where it says something else, `call.warnings` tells
        timeout          seconds the whole call may take, waiting for the session included

        Raises at once `InvalidId`, `ConfigError` and `AgentClosed`; what goes wrong later is raised
        to whoever waits for the reply.
        """
        self._lifecycle.check_open()
        binding = bind(self._config, ctx)
        if idempotency_key is not None:
            check_id("idempotency_key", idempotency_key)
        models = (
            (self._config.models.resolve(model),)
            if model is not None
            else (self._config.model, *self._config.fallback_models)
        )
        run = SessionCall(
            self._config, self._lifecycle, self._catalogs, binding, models, messages_of(message), idempotency_key
        )
        return Call(run.run, binding.session_id, positive_or_none("timeout", timeout))

    def stream(
        self, message: str | Msg | Sequence[str | Msg], ctx: RuntimeContext | None = None, **options: Any
    ) -> Observable[StreamEvent]:
        """The events of a call as a reactivex Observable; options as for `call`."""
        return self.call(message, ctx, **options).observable()

    def running(self, ctx: RuntimeContext) -> Call | None:
        """The call in progress on this session in this process, to stop or steer it; None if there is none."""
        holder = process_gate().holder(bind(self._config, ctx).place)
        return holder if isinstance(holder, Call) else None

    def sessions(self, user: str | RuntimeContext | None = None) -> TenantSessions:
        """The sessions of one user with this agent. Raises `InvalidId`."""
        ctx = user if isinstance(user, RuntimeContext) else RuntimeContext(user_id=user)
        return TenantSessions(self._config, self._catalogs, ctx)

    async def delete_user(self, user: str | RuntimeContext | None, *, whole_tenant: bool = False) -> UserRemoval:
        """Remove all that is kept of a user, for good: conversations with every agent of the workspace, snapshots,
        memory, files, media, lists, and what the Java harness left. The receipt counts it, and is false where there
        was nothing; `unreached` names what may be there still.

        user          the user; a context where the namespace needs more than the user, or where calls brought a store
                      of snapshots of their own, which is emptied too
        whole_tenant  also where others than this user may own what goes: a namespace that several users share, and
                      with None the tenant of all calls without a user

        A call that begins later with this user is one of a new user. Cut off, it is finished by the next one, and no
        call sees half a user; `list`, `history` and `search` give what is left until then. Raises with nothing removed
        `SessionBusy` while a call of the user is in progress or another removal goes on, `ConfigError` where the tenant
        may be several people's, `SessionDamaged` where the folder says that it is somebody else's; and
        `PersistenceError`, which says what is gone.
        """
        ctx = user if isinstance(user, RuntimeContext) else RuntimeContext(user_id=user)
        return await remove_user(self._config, self._lifecycle, self._catalogs, ctx, whole_tenant=whole_tenant)

    async def aclose(self, timeout: float = 30.0) -> None:
        """Take no new calls, let the running ones end, stop those that take longer than `timeout`, store everything."""
        await self._lifecycle.drain(timeout)
        await self._catalogs.aclose()
        await self._config.session.aclose()
        await self._config.models.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await shielded(self.aclose())
