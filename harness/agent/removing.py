"""Removing a whole user: refused while anybody is at work there, then everything, and a receipt.

The order is what makes it safe to be cut off anywhere. Behind the barrier nobody becomes a writer. What lies outside
the tenant's folder goes first, and from its first piece on calls are refused until the removal is finished; the folder
goes last, by one rename, and from then on the user is a new one. So no call ever sees half a user.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from harness.agent.agents_there import agent_folders, agent_named
from harness.agent.binding import owner_of
from harness.agent.catalogs import Catalogs
from harness.agent.config import AgentConfig
from harness.agent.gate import process_gate
from harness.agent.lifecycle import Lifecycle
from harness.agent.open_session import forget_tenant
from harness.agent.user_removal import UserRemoval, elsewhere, removal_of, without_snapshot
from harness.context import RuntimeContext
from harness.errors import ConfigError, FileMissing, FilesystemError, HarnessError, PersistenceError, SessionBusy
from harness.filesystem import AbstractFilesystem, check_tenant_file, disk, pool, tenant_root
from harness.filesystem.namespaces import workspace_root
from harness.filesystem.paths import Parts
from harness.filesystem.removal import Barrier, Kept, TenantFolder, walk
from harness.filesystem.treefs import TreeFilesystem
from harness.hooks.uninterrupted import uninterrupted
from harness.ids import encode_name
from harness.sessions.catalog.index import read_index
from harness.sessions.lines.skimming import entry_in, read_lines
from harness.sessions.moving.java_removal import JavaRemoval, has_java, remove_java
from harness.sessions.snapshots.asking import AskedTenant
from harness.sessions.snapshots.workspace_session import WorkspaceSession
from harness.state import Session

__all__ = ["remove_user"]

log = logging.getLogger("harness.agent")
_END = b"request_end"


async def remove_user(
    config: AgentConfig, lifecycle: Lifecycle, catalogs: Catalogs, ctx: RuntimeContext, *, whole_tenant: bool
) -> UserRemoval:
    """See `HarnessAgent.delete_user`."""
    namespace = owner_of(config, ctx)
    if not whole_tenant:
        _refuse_shared(config, ctx, namespace)
    if not await lifecycle.background.lane_ends(("memory", namespace), config.gate_timeout):
        raise SessionBusy("the memory of this user is still being written; nothing was removed: try again later")
    return await _Removal(config, catalogs, ctx, namespace).run()


class _Removal:
    """One removal. What it finds goes into the receipt."""

    def __init__(
        self, config: AgentConfig, catalogs: Catalogs, ctx: RuntimeContext, namespace: tuple[str, ...]
    ) -> None:
        self._config = config
        self._catalogs = catalogs
        self._user = ctx.user_id
        self._namespace = namespace
        self._root = tenant_root(config.workspace, namespace)
        self._folder = TenantFolder(self._root)
        self._stores = [store for store in _distinct(config.session, ctx.session) if not self._is_inside(store)]
        self._kept: list[Kept] = []
        self._numbers = dict.fromkeys(("index_rows", "snapshot_keys", "java_files", "java_bytes"), 0)
        self._unreached: list[str] = []

    async def run(self) -> UserRemoval:
        self._refuse_held()
        if await pool.run(self._is_there) or await self._is_elsewhere():
            await self._catalogs.drop_below(self._root)
            async with self._folder.barred(self._config.gate_timeout) as barrier:
                self._refuse_held()
                await uninterrupted(self._all(barrier))
        else:
            self._kept += await self._folder.finish()
        forget_tenant(self._root)
        self._unreached += await pool.run(self._other_tenants)
        made = removal_of(self._namespace, self._kept, **self._numbers)
        return replace(made, unreached=tuple(self._unreached))

    async def _all(self, barrier: Barrier) -> None:
        self._kept += await self._folder.finish()
        inside, agents = await pool.run(self._look)
        known = [encode_name(key.session) for asked in self._asked(agents) for key in await asked.keys()]
        unknown = await pool.run(lambda: [*filter(self._was_called, without_snapshot(inside, known))])
        await pool.run(self._folder.make_room)
        await barrier.begin()
        try:
            await self._outside(agents)
            await pool.run(self._folder.put_away)
        except (PersistenceError, FilesystemError) as error:
            raise PersistenceError(
                f"the removal of this user was begun and is not finished: {error}; until the user is deleted again, "
                "which finishes it, no call of this user is served"
            ) from error
        self._kept += inside
        self._unreached += [elsewhere(unknown)] if unknown else []
        try:
            await pool.run(self._folder.empty)
        except PersistenceError as error:
            raise PersistenceError(
                f"the user is gone, and some files are there still: {error}; delete it again"
            ) from error

    async def _outside(self, agents: list[str]) -> None:
        """Everything that lies outside the tenant's folder. Whatever is gone already is no error."""
        for asked in self._asked(agents):
            self._numbers["snapshot_keys"] += await asked.empty()
        self._tell_java(await pool.run(remove_java, self._config.workspace, self._namespace, agents))
        await self._clear_files()

    async def _clear_files(self) -> None:
        """Remove the tenant's files where they are kept elsewhere than in the workspace."""
        files = self._files_elsewhere()
        if isinstance(files, TreeFilesystem):
            self._kept += [Kept(node.parts, node.size) for node in await files.clear()]
        elif files is not None:
            kind = type(files).__name__
            self._unreached.append(f"the files of this user in {kind}, which cannot remove a tenant; remove them there")

    def _files_elsewhere(self) -> AbstractFilesystem | None:
        files = self._config.filesystem.for_namespace(self._namespace)
        is_here = isinstance(files, TreeFilesystem) and files.folder and workspace_root(files.folder) == self._root
        return None if is_here else files

    async def _is_elsewhere(self) -> bool:
        """Whether there may be something of a tenant that has no folder; then it gets one, for the barrier."""
        agents, files = [self._config.agent_id], self._files_elsewhere()
        for asked in self._asked(agents):
            if await asked.keys():
                return True
        if await pool.run(has_java, self._config.workspace, self._namespace, agents):
            return True
        return isinstance(files, TreeFilesystem) and bool((await files.ls()).items)

    def _tell_java(self, done: JavaRemoval) -> None:
        self._numbers["java_files"], self._numbers["java_bytes"] = done.files, done.bytes
        self._unreached += [
            f"{path} in the workspace, which may be of the Java harness and of this user; look at it"
            for path in done.left
        ]

    def _is_there(self) -> bool:
        if not self._folder.is_there():
            return False
        check_tenant_file(self._root, self._namespace)
        return True

    def _look(self) -> tuple[list[Kept], list[str]]:
        """What is in the tenant's folder, and the agents it is of."""
        inside = [*walk(self._root)]
        self._unreached += [
            f"what the link {'/'.join(each.parts)} of this user led to; the link is removed"
            for each in inside
            if each.is_link
        ]
        folders = agent_folders(self._root)
        self._numbers["index_rows"] = sum(_rows(folder / "sessions" / "sessions.json") for folder in folders)
        return inside, [*dict.fromkeys([self._config.agent_id, *filter(None, map(agent_named, folders))])]

    def _was_called(self, ledger: Parts) -> bool:
        """Whether a call has ended in this session, or nobody can tell; until then no store has a snapshot of it.

        What a fork, a handover or an import copied says `inherited`: that call ended elsewhere.
        """
        try:
            lines = read_lines(self._root.joinpath(*ledger))
            ends = (entry_in(line) for line in lines if line.raw and _END in line.raw)
            return any(entry and entry.kind == "request_end" and "inherited" not in entry.data for entry in ends)
        except (FileMissing, PersistenceError):  # a link to nothing, a damaged disk: it can be removed all the same
            return True

    def _other_tenants(self) -> list[str]:
        """Sentences about tenants that have the user for a part; a name that had to be shortened does not tell."""
        part = None if self._user is None else encode_name(self._user)
        names = [item.name for item in disk.list_folder(self._root.parent) if part in item.name.split("+")]
        sentence = "the tenant {}, whose name has this user in it too; delete the user there, too"
        return [sentence.format(name) for name in names if name != self._root.name]

    def _asked(self, agents: Iterable[str]) -> list[AskedTenant]:
        return [AskedTenant(store, self._namespace, agents) for store in self._stores]

    def _is_inside(self, store: Session) -> bool:
        return isinstance(store, WorkspaceSession) and store.workspace == self._config.workspace

    def _refuse_held(self) -> None:
        if held := process_gate().held_below(str(self._root)):
            raise SessionBusy(
                f"session {held[0].session_id!r} of this user has a call in progress; nothing was removed: let it end, "
                "or stop it, then delete the user again"
            )


def _refuse_shared(config: AgentConfig, ctx: RuntimeContext, namespace: tuple[str, ...]) -> None:
    """Raise `ConfigError` where others than this user may own what lies in the tenant."""
    user = ctx.user_id
    if user is None:
        others = "all calls without a user"
    elif user not in namespace:
        others = f"the namespace {namespace!r}, which does not name the user {user!r},"
    elif other := next((each for each in _look_alikes(user) if _place_of(config, ctx, each) == namespace), None):
        others = f"the users {user!r} and {other!r}"
    else:
        return
    raise ConfigError(
        f"{others} may be several people's, and their data cannot be told apart; nothing was removed: say that the "
        "whole tenant may go (whole_tenant=True), if it may"
    )


def _look_alikes(user: str) -> list[str]:
    """Ids of others that a namespace function might take for this one."""
    forms = (unicodedata.normalize(form, user) for form in ("NFC", "NFD", "NFKC"))
    made = [f"{user}'", user.lower(), user.upper(), user.casefold(), user.strip(), *forms]
    return [other for other in dict.fromkeys(made) if other != user]


def _place_of(config: AgentConfig, ctx: RuntimeContext, user: str) -> tuple[str, ...] | None:
    """The tenant of another user; None where the agent does not serve such a user."""
    try:
        return owner_of(config, ctx.with_changes(user_id=user))
    except HarnessError:
        return None
    except Exception as error:  # noqa: BLE001 - the function is a user's own, and may know its users only
        log.debug("the namespace function refused a user that there is not: %s", type(error).__name__)
        return None


def _distinct(*stores: Session | None) -> list[Session]:
    return [store for n, store in enumerate(stores) if store is not None and all(store is not s for s in stores[:n])]


def _rows(index: Path) -> int:
    try:
        return len(read_index(disk.read(index)) or {})
    except (FileMissing, PersistenceError):
        return 0
