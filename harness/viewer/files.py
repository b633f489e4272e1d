"""Bytes on demand: the pictures of a session, and its raw file. Neither is ever shown as a page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from harness.errors import ConfigError
from harness.filesystem import disk, pool
from harness.filesystem.confined import inside
from harness.transcripts import in_worker, media
from harness.viewer.desk import Desk
from harness.viewer.safety import MEDIA_POLICY
from harness.viewer.shelf import Item

__all__ = ["MAX_MEDIA", "file_routes", "is_database", "picture_type"]

MAX_MEDIA = 20 * 1024 * 1024
"""Bytes of a picture that is sent."""
_CHUNK = 256 * 1024
_MAX_REF = 500
_SIGNATURES = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
)
_DATABASE = b"SQLite format 3\x00"


def picture_type(data: bytes) -> str | None:
    """The type of a picture by its first bytes; what the transcript says of it decides nothing."""
    return next((name for name, signature in _SIGNATURES if signature.match(data)), None)


def is_database(item: Item) -> bool:
    """Whether a session is one of those in a database, which holds others too, and credentials. Blocks."""
    return bool(inside(item.folder, disk.read, item.source, 0, len(_DATABASE)) == _DATABASE)


class _Files:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def media(self, request: Request) -> Response:
        item = (await self._desk.opened(request)).item
        ref = request.query_params.get("ref", "")
        if not ref or len(ref) > _MAX_REF:
            raise HTTPException(400)
        try:
            data, _claimed = await in_worker(
                inside, item.folder, media, item.source, item.session_id, ref, max_bytes=MAX_MEDIA
            )
        except ConfigError as error:
            raise HTTPException(404, "There is no such picture here, or it is too large to be shown.") from error
        kind = picture_type(data)
        headers = {"content-security-policy": MEDIA_POLICY}
        if kind is None:
            headers["content-disposition"] = 'attachment; filename="media.bin"'
        return Response(data, headers=headers, media_type=kind or "application/octet-stream")

    async def raw(self, request: Request) -> Response:
        item = (await self._desk.opened(request)).item
        if await pool.run(is_database, item):
            raise HTTPException(404)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", item.source.name) or "session"
        headers = {
            "content-security-policy": MEDIA_POLICY,
            "content-disposition": f'attachment; filename="{name}"',
        }
        return StreamingResponse(_chunks(item), headers=headers, media_type="application/octet-stream")


def file_routes(desk: Desk) -> list[Route]:
    """The routes that answer with bytes of a session."""
    files = _Files(desk)
    return [Route("/sessions/{key}/media", files.media), Route("/sessions/{key}/raw", files.raw)]


async def _chunks(item: Item) -> AsyncIterator[bytes]:
    start = 0
    while data := await pool.run(inside, item.folder, disk.read, item.source, start, _CHUNK):
        yield data
        start += len(data)
