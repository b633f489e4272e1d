"""Bytes in places: tenants' files, the file primitives of the session store, locks, namespaces."""

from harness.filesystem.base import (
    AbstractFilesystem,
    EditResult,
    FileInfo,
    FileList,
    FileText,
    GrepMatch,
    GrepResult,
)
from harness.filesystem.fsspec_fs import FsspecFilesystem
from harness.filesystem.local import LocalFilesystem
from harness.filesystem.locks import FileLock
from harness.filesystem.namespaces import (
    NamespaceFactory,
    agent_root,
    check_tenant_file,
    tenant_root,
    user_namespace,
    write_tenant_file,
)

__all__ = [
    "AbstractFilesystem",
    "EditResult",
    "FileInfo",
    "FileList",
    "FileLock",
    "FileText",
    "FsspecFilesystem",
    "GrepMatch",
    "GrepResult",
    "LocalFilesystem",
    "NamespaceFactory",
    "agent_root",
    "check_tenant_file",
    "tenant_root",
    "user_namespace",
    "write_tenant_file",
]
