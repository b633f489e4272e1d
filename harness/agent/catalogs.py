"""The session lists of the tenants that an agent serves, one object each, so that changes meet."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from harness.sessions.catalog.session_catalog import SessionCatalog

__all__ = ["Catalogs"]

_MOST = 1024


class Catalogs:
    """Catalogs by folder, those used last. One that is dropped writes what it has noted by itself."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._lock = threading.Lock()
        self._catalogs: OrderedDict[Path, SessionCatalog] = OrderedDict()

    def of(self, folder: Path, namespace: tuple[str, ...]) -> SessionCatalog:
        """The catalog of a sessions folder."""
        with self._lock:
            catalog = self._catalogs.get(folder) or SessionCatalog(folder, self._agent_id, namespace)
            self._catalogs[folder] = catalog
            self._catalogs.move_to_end(folder)
            while len(self._catalogs) > _MOST:
                self._catalogs.popitem(last=False)
            return catalog

    async def drop_below(self, root: Path) -> None:
        """Forget the catalogs of a tenant that is removed, once they have written what is noted."""
        with self._lock:
            gone = [folder for folder in self._catalogs if folder.is_relative_to(root)]
            catalogs = [self._catalogs.pop(folder) for folder in gone]
        for catalog in catalogs:
            await catalog.aclose()

    async def aclose(self) -> None:
        """Write everything that is noted; what cannot be written is logged."""
        with self._lock:
            catalogs = [*self._catalogs.values()]
            self._catalogs.clear()
        for catalog in catalogs:
            await catalog.aclose()
