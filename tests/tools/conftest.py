"""One call's scope, made by hand: what the agent does for a real call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.context import CallScope, RuntimeContext
from harness.filesystem.local import LocalFilesystem

MakeScope = Callable[..., CallScope]


@pytest.fixture
def make_scope() -> MakeScope:
    """A scope for a user, with services by their types."""

    def make(user: str = "alice", *services: object, session: str = "s1", extra: object = None) -> CallScope:
        ctx = RuntimeContext(session_id=session, user_id=user, extra=extra or {})
        return CallScope(ctx, (user,), "agent", session, {type(service): service for service in services})

    return make


@pytest.fixture
def tenants(tmp_path) -> LocalFilesystem:
    """A workspace on disk; `for_namespace` gives a tenant's part."""
    return LocalFilesystem(tmp_path / "workspace")


@pytest.fixture
def scope(make_scope, tenants) -> CallScope:
    """A call of alice's, with her files."""
    return make_scope("alice", tenants.for_namespace(("alice",)))
