"""Priority 900: the snapshot of track 1, taken on every way out of a call."""

from __future__ import annotations

import asyncio
import logging

from harness.context import CallScope
from harness.errors import ConfigError, PersistenceError
from harness.hooks.events import Error, PostCall
from harness.hooks.side import Notices
from harness.hooks.uninterrupted import patiently, uninterrupted
from harness.sessions.snapshots.snapshot import SnapshotWriter
from harness.sessions.snapshots.state_files import FileSession
from harness.sessions.snapshots.state_modules import StateModules
from harness.sessions.tree.session_tree import SessionTree
from harness.state import Session, SessionKey

__all__ = ["SECONDS_TO_STOP", "SessionPersistenceHook", "plan_snapshot"]

log = logging.getLogger("harness.hooks")

SECONDS_TO_STOP = 5.0
"""How long a store that is no folder of files may take where the call has been stopped."""


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
        if isinstance(ctx.session, FileSession):
            await uninterrupted(_save(event.scope, ctx.session, ctx.session_key))
        else:
            await _save_elsewhere(event.scope, ctx.session, ctx.session_key)


async def _save(scope: CallScope, session: Session, key: SessionKey) -> None:
    values = scope.get(StateModules).values()
    await scope.get(SnapshotWriter).save(session, key, scope.get(SessionTree), values)


async def _save_elsewhere(scope: CallScope, session: Session, key: SessionKey) -> None:
    """In a store that may never answer: whoever stops the call, or gave it a time limit, is not kept for it."""
    untold = (
        f"the snapshot of session {key.session!r} was not stored: its store ({type(session).__name__}) gave no answer "
        "in time; the ledger has the turn, and the next call stores the snapshot"
    )
    try:
        await patiently(_save(scope, session, key), SECONDS_TO_STOP)
    except TimeoutError:
        raise PersistenceError(untold) from None
    except asyncio.CancelledError:
        if not scope.get(SnapshotWriter).is_current(session, key, scope.get(SessionTree)):
            log.warning("%s", untold)
            scope.get(Notices).warn(untold)  # type: ignore[type-abstract]  # looked up by its protocol
        raise


def plan_snapshot(scope: CallScope) -> None:
    """Let the turn's last commit take the snapshot along where it can; then the hook has nothing left to do."""
    ctx = scope.ctx
    if ctx.session is not None and isinstance(ctx.session_key, SessionKey):
        tree, values = scope.get(SessionTree), scope.get(StateModules).values()
        scope.get(SnapshotWriter).save_with_commit(ctx.session, ctx.session_key, tree, values)
