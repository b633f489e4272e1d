"""A tenant's files for work that nobody waits for: whether the tenant is there is asked anew for each change."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from harness.filesystem.base import AbstractFilesystem, EditResult, FileInfo, FileList, FileText, GrepResult

__all__ = ["Guard", "GuardedFiles"]

Guard: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
"""Held while something is changed; raises where nothing may be changed any more."""


class GuardedFiles(AbstractFilesystem):
    """Other files, in which a change is made under a guard. Reading is not guarded."""

    def __init__(self, files: AbstractFilesystem, guard: Guard) -> None:
        self._files = files
        self._guard = guard

    def for_namespace(self, namespace: tuple[str, ...]) -> AbstractFilesystem:
        """See `AbstractFilesystem`."""
        return GuardedFiles(self._files.for_namespace(namespace), self._guard)

    async def ls(self, path: str = "") -> FileList:
        """See `AbstractFilesystem`."""
        return await self._files.ls(path)

    async def read(self, path: str, offset: int = 0, limit: int = 0) -> FileText:
        """See `AbstractFilesystem`."""
        return await self._files.read(path, offset, limit)

    async def write(self, path: str, content: str) -> FileInfo:
        """See `AbstractFilesystem`."""
        async with self._guard():
            return await self._files.write(path, content)

    async def edit(self, path: str, old: str, new: str, replace_all: bool = False) -> EditResult:
        """See `AbstractFilesystem`."""
        async with self._guard():
            return await self._files.edit(path, old, new, replace_all)

    async def append(self, path: str, text: str) -> FileInfo:
        """See `AbstractFilesystem`."""
        async with self._guard():
            return await self._files.append(path, text)

    async def grep(self, pattern: str, path: str = "", glob: str | None = None) -> GrepResult:
        """See `AbstractFilesystem`."""
        return await self._files.grep(pattern, path, glob)

    async def glob(self, pattern: str, base: str = "") -> FileList:
        """See `AbstractFilesystem`."""
        return await self._files.glob(pattern, base)

    async def read_bytes(self, path: str) -> bytes:
        """See `AbstractFilesystem`."""
        return await self._files.read_bytes(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        """See `AbstractFilesystem`."""
        async with self._guard():
            await self._files.write_bytes(path, data)

    async def delete(self, path: str) -> bool:
        """See `AbstractFilesystem`."""
        async with self._guard():
            return await self._files.delete(path)

    async def move(self, source: str, target: str) -> None:
        """See `AbstractFilesystem`."""
        async with self._guard():
            await self._files.move(source, target)

    async def exists(self, path: str) -> bool:
        """See `AbstractFilesystem`."""
        return await self._files.exists(path)
