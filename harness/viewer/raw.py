"""A session's file as it is, sent piece by piece: all of one state of it, or an answer that is seen to be cut off."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from harness.filesystem import pool
from harness.filesystem.reading import ReadFile, only_grew
from harness.viewer.safety import MEDIA_POLICY

__all__ = ["RawFile"]

_CHUNK = 256 * 1024
_log = logging.getLogger("harness.viewer")


class RawFile(StreamingResponse):
    """The bytes that an open file has now. Made where one may block; closes the file.

    Of one that is cut or written anew meanwhile fewer bytes are sent than the head of the answer says: the server
    then ends the connection, and whoever downloads it is told that it failed.
    """

    def __init__(self, file: ReadFile, path: Path) -> None:
        self._file = file
        self._opened = file.mark()
        self._path = path
        self._is_head = False
        name = re.sub(r"[^A-Za-z0-9._-]", "_", path.name) or "session"
        headers = {
            "content-security-policy": MEDIA_POLICY,
            "content-disposition": f'attachment; filename="{name}"',
            "content-length": str(self._opened.size),
            "accept-ranges": "none",
        }
        super().__init__((), headers=headers, media_type="application/octet-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, unless the visitor leaves."""
        self._is_head = scope["method"] == "HEAD"
        try:
            await super().__call__(scope, receive, send)
        finally:
            await pool.run(self._file.close)

    async def stream_response(self, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if self._is_head or await self._sent(send):
            await send({"type": "http.response.body", "body": b""})

    async def _sent(self, send: Send) -> bool:
        """Whether all of it was sent."""
        start = 0
        while start < self._opened.size:
            piece = await pool.run(self._piece, start)
            if not piece:
                _log.warning("%s was written anew while it was sent; the answer was cut off", self._path)
                return False
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            start += len(piece)
        return True

    def _piece(self, start: int) -> bytes:
        """The next bytes; none where they are gone, or are not those of the file that was opened."""
        piece = self._file.read(start, min(_CHUNK, self._opened.size - start))
        return piece if only_grew(self._opened, self._file.mark()) else b""
