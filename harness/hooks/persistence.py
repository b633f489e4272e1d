"""Priority 900: the snapshot of track 1, taken on every way out of a call."""

from __future__ import annotations

from harness.context import CallScope
from harness.errors import ConfigError
from harness.hooks.events import Error, PostCall
from harness.hooks.uninterrupted import uninterrupted
from harness.sessions.snapshots.snapshot import SnapshotWriter
from harness.sessions.snapshots.state_modules import StateModules
from harness.sessions.tree.session_tree import SessionTree
from harness.state import SessionKey

__all__ = ["SessionPersistenceHook", "plan_snapshot"]


class SessionPersistenceHook:
    """Writes what the model would see and the state modules to the call's `Session`.

    The ledger has everything already: a snapshot that fails costs a warning, and the next call
    writes it again from the ledger.
    """

    priority = 900
    events = (PostCall, Error)

    async def on_event(self, event: PostCall | Error) -> None:
        """Write the snapshot. Raises `PersistenceError`."""
        ctx = event.ctx
        if ctx.session is None or not isinstance(ctx.session_key, SessionKey):
            raise ConfigError("this call has no store for its snapshot; the agent fills one in when it binds the call")
        writer = event.scope.get(SnapshotWriter)
        tree, values = event.scope.get(SessionTree), event.scope.get(StateModules).values()
        await uninterrupted(writer.save(ctx.session, ctx.session_key, tree, values))


def plan_snapshot(scope: CallScope) -> None:
    """Let the turn's last commit take the snapshot along where it can; then the hook has nothing left to do."""
    ctx = scope.ctx
    if ctx.session is not None and isinstance(ctx.session_key, SessionKey):
        tree, values = scope.get(SessionTree), scope.get(StateModules).values()
        scope.get(SnapshotWriter).save_with_commit(ctx.session, ctx.session_key, tree, values)
