"""Who is speaking: `RuntimeContext`, and the scope of the call in progress.

Identity travels with the call. Hooks get it with every event; tools and files reach it through a
`ContextVar` that is set in the call's own task. There is no default: outside a call, asking raises
`NoCurrentCall`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar, overload

from harness.errors import ConfigError, NoCurrentCall
from harness.ids import check_id
from harness.state import Session, SessionKey

__all__ = ["CallScope", "RuntimeContext", "RuntimeContextBuilder", "current_scope", "enter_scope"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeContext:
    """Per-call identity and overrides. Never stored, never changed; `with_changes` makes another.

    session_id   the conversation; without one each call is a conversation of its own
    user_id      the tenant; None is the tenant of nobody (`_`)
    session      the store of track 1 for this call, instead of the agent's
    session_key  where in that store; a plain text is a session id
    extra        whatever hooks and tools need: names to values, or types to their objects

    Raises `InvalidId` for ids that cannot be stored, and `ConfigError` for what is no store, key or mapping.
    """

    session_id: str | None = None
    user_id: str | None = None
    session: Session | None = None
    session_key: SessionKey | str | None = None
    extra: Mapping[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, value in (("session_id", self.session_id), ("user_id", self.user_id)):
            if value is not None:
                check_id(kind, value)
        if isinstance(self.session_key, str):
            check_id("session_key", self.session_key)
        self._check_types()
        object.__setattr__(self, "extra", MappingProxyType(dict(self.extra)))

    def _check_types(self) -> None:
        store: object = self.session  # nobody has looked at these yet, whatever is written above
        key: object = self.session_key
        extra: object = self.extra
        if store is not None and (isinstance(store, type) or not isinstance(store, Session)):
            name = store.__name__ if isinstance(store, type) else f"of type {type(store).__name__}"
            raise ConfigError(
                f"RuntimeContext: session is {name}, which is no store; give one such as JsonSession(folder), "
                "and the id of a conversation as session_id"
            )
        if not isinstance(key, SessionKey | str | None):
            kind = type(key).__name__
            raise ConfigError(f"RuntimeContext: session_key is of type {kind}; give a SessionKey or a text")
        if not isinstance(extra, Mapping):
            kind = type(extra).__name__
            raise ConfigError(f"RuntimeContext: extra is of type {kind}; give a dict, as {{'name': value}}")

    @staticmethod
    def builder() -> RuntimeContextBuilder:
        """A builder, for those who prefer one."""
        return RuntimeContextBuilder()

    @overload
    def get(self, key: type[T]) -> T | None: ...
    @overload
    def get(self, key: str) -> Any: ...
    def get(self, key: Any) -> Any:
        """The extra of that name or type, or None; a type also finds an object of a subclass."""
        if key in self.extra:
            return self.extra[key]
        if isinstance(key, type):
            return next((value for value in self.extra.values() if isinstance(value, key)), None)
        return None

    def with_changes(self, **fields: Any) -> RuntimeContext:
        """A copy with these fields changed and everything else kept."""
        return replace(self, **fields)


class RuntimeContextBuilder:
    """Collects the fields of a `RuntimeContext`; each method returns the builder."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._extra: dict[Any, Any] = {}

    def session_id(self, value: str | None) -> RuntimeContextBuilder:
        """The conversation."""
        return self._with("session_id", value)

    def user_id(self, value: str | None) -> RuntimeContextBuilder:
        """The tenant."""
        return self._with("user_id", value)

    def session(self, value: Session | None) -> RuntimeContextBuilder:
        """The store of track 1 for this call."""
        return self._with("session", value)

    def session_key(self, value: SessionKey | str | None) -> RuntimeContextBuilder:
        """Where in that store."""
        return self._with("session_key", value)

    def put(self, key: Any, value: Any) -> RuntimeContextBuilder:
        """An extra under a name, or an object under its type."""
        self._extra[key] = value
        return self

    def build(self) -> RuntimeContext:
        """The context. Raises `InvalidId` and `ConfigError`."""
        return RuntimeContext(**self._fields, extra=self._extra)

    def _with(self, name: str, value: Any) -> RuntimeContextBuilder:
        self._fields[name] = value
        return self


@dataclass(frozen=True, slots=True, eq=False)
class CallScope:
    """One call's identity with every default filled in, and the services that belong to it.

    `ctx` is the caller's context with `session_id`, `session` and `session_key` filled in.
    `services` maps a type to the object of that type which serves this call (its filesystem, its
    conversation, its state modules); tools get them injected, hooks ask with `get`.
    """

    ctx: RuntimeContext
    namespace: tuple[str, ...]
    agent_id: str
    session_id: str
    services: Mapping[type, Any]

    @property
    def user_id(self) -> str | None:
        """The tenant as the caller named it."""
        return self.ctx.user_id

    def __str__(self) -> str:
        """Who this is, for log lines: the agent, the tenant by the parts of its namespace, the session."""
        return f"agent {self.agent_id!r}, tenant {'+'.join(self.namespace) or '_'!r}, session {self.session_id!r}"

    def find(self, kind: type[T]) -> T | None:
        """The service of that type, or the extra of the caller's context, or None."""
        if kind in self.services:
            return self.services[kind]  # type: ignore[no-any-return]  # the mapping is keyed by its values' types
        for service in self.services.values():
            if isinstance(service, kind):
                return service
        return self.ctx.get(kind)

    def get(self, kind: type[T]) -> T:
        """The service of that type. Raises `ConfigError` naming what is missing."""
        found = self.find(kind)
        if found is None:
            name = kind.__name__
            raise ConfigError(
                f"this call has no {name}; give one with the call, as RuntimeContext(extra={{{name}: …}}), "
                f"or, where it is a state module, to the agent with .state_module({name})"
            )
        return found


_current: ContextVar[CallScope | None] = ContextVar("harness_call", default=None)


def current_scope() -> CallScope:
    """The scope of the call this code runs in. Raises `NoCurrentCall`."""
    scope = _current.get()
    if scope is None:
        raise NoCurrentCall(
            "no call is in progress here; identity is known inside hooks and tools of a call. "
            "A thread of your own must run in contextvars.copy_context()"
        )
    return scope


@contextmanager
def enter_scope(scope: CallScope) -> Iterator[None]:
    """Make `scope` the current one for the code inside, and for the tasks and threads it starts."""
    token = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(token)
