"""Tool results that were too large to be shown: kept whole beside the ledger, and read back as files.

An `eviction` event names each of them: `{path, call, tool, chars, media{sha256,mediaType,bytes}}`.
The name of a file is made from its content, so a result that comes twice is kept once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.filesystem import disk
from harness.filesystem.paths import Parts
from harness.filesystem.trees import Node, in_the_way, loadable, missing
from harness.ids import encode_name
from harness.sessions.lines.blobs import read_blob
from harness.sessions.lines.entries import EntryDict, parse_line
from harness.sessions.tree.session_tree import SessionTree

__all__ = ["RESULTS", "KeptResults", "keep_result"]

RESULTS = "results"
"""The folder in which a session's tools see what was evicted from it."""
_KIND = "eviction"
_NAME_CHARS = 60
_PATH = re.compile(rb'"path":"results/([^"\\/]+)"')


def keep_result(tree: SessionTree, call_id: str, tool: str, text: str, *, request: str | None = None) -> str:
    """Keep a text beside the ledger, log so, and return the path under which tools read it."""
    data = text.encode()
    sha256 = tree.keep(data)
    short = re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:_NAME_CHARS].strip("_-") or "result"
    path = f"{RESULTS}/{encode_name(short.lower(), 'call id')}-{sha256[:12]}.txt"
    media = {"sha256": sha256, "mediaType": "text/plain", "bytes": len(data)}
    details = {"path": path, "call": call_id, "tool": tool, "chars": len(text), "media": media}
    tree.add("event", {"kind": _KIND, "data": details}, request=request)
    return path


class KeptResults:
    """A read-only tree with the results of one session, to be laid over its tenant's files as `results`.

    A folder shows those that were kept since the boundary; older ones are found by their path.
    """

    def __init__(self, tree: SessionTree) -> None:
        self._tree = tree
        self._older: dict[str, Node | None] = {}
        self._sums: dict[str, str] = {}

    def stat(self, parts: Parts) -> Node | None:
        """See `ReadableTree`."""
        if len(parts) == 1:
            return Node(parts, is_dir=True, size=0, modified="") if any(self._recent()) else None
        return self._find(parts[1]) if len(parts) == 2 else None

    def children(self, parts: Parts) -> list[Node]:
        """See `ReadableTree`."""
        if len(parts) > 1:
            raise in_the_way(parts, is_dir=False) if self.stat(parts) else missing(parts)
        return [*{node.parts: node for node in self._recent()}.values()]

    def load(self, parts: Parts, limit: int) -> bytes:
        """See `ReadableTree`."""
        loadable(self.stat(parts), parts, limit)
        return read_blob(self._tree.files.blobs, self._sums[parts[-1]])

    def _find(self, name: str) -> Node | None:
        for node in self._recent():
            if node.parts[-1] == name:
                return node
        if name not in self._older:
            self._older[name] = self._look_back(name)
        return self._older[name]

    def _recent(self) -> Iterator[Node]:
        for entry in [*self._tree.path()]:
            if entry.kind == "event" and entry.data.get("kind") == _KIND and (node := self._node(entry.data)):
                yield node

    def _look_back(self, name: str) -> Node | None:
        """The result of that name from the whole ledger; only a model that recalls an old path asks for it."""
        if disk.mark(self._tree.files.ledger) is None:
            return None
        for raw in _lines(disk.read_blocks(self._tree.files.ledger)):
            found = _PATH.search(raw)
            if found and found[1].decode(errors="replace") == name:
                data = parse_line(raw)
                if data and data["type"] == "event" and data.get("kind") == _KIND and (node := self._node(data)):
                    return node
        return None

    def _node(self, data: EntryDict) -> Node | None:
        details = data.get("data")
        if not isinstance(details, dict) or not isinstance(details.get("media"), dict):
            return None
        name = str(details.get("path")).removeprefix(f"{RESULTS}/")
        media: Mapping[str, Any] = details["media"]
        self._sums[name] = str(media.get("sha256"))
        return Node((RESULTS, name), is_dir=False, size=int(media.get("bytes", 0)), modified=str(data.get("timestamp")))


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
    if rest:
        yield rest
