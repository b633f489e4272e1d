"""Bytes on demand: the pictures of a session, and its raw file. Neither is ever shown as a page."""

from __future__ import annotations

import re
from contextlib import ExitStack

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.errors import ConfigError
from harness.filesystem import pool
from harness.filesystem.confined import inside
from harness.filesystem.reading import ReadFile
from harness.transcripts import media
from harness.viewer.desk import Desk
from harness.viewer.raw import RawFile
from harness.viewer.safety import MEDIA_POLICY
from harness.viewer.shelf import Item

__all__ = ["MAX_MEDIA", "file_routes", "is_database", "picture_type"]

MAX_MEDIA = 20 * 1024 * 1024
"""Bytes of a picture that is sent."""
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
    with inside(item.folder, ReadFile, item.source) as file:
        return _is_database(file)


class _Files:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def media(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        ref = request.query_params.get("ref", "")
        if not ref or len(ref) > _MAX_REF:
            raise HTTPException(400)
        try:
            data, _claimed = await self._desk.fetch(opened, media, ref, max_bytes=MAX_MEDIA)
        except ConfigError as error:
            raise HTTPException(404, "There is no such picture here, or it is too large to be shown.") from error
        kind = picture_type(data)
        headers = {"content-security-policy": MEDIA_POLICY}
        if kind is None:
            headers["content-disposition"] = 'attachment; filename="media.bin"'
        return Response(data, headers=headers, media_type=kind or "application/octet-stream")

    async def raw(self, request: Request) -> Response:
        item = (await self._desk.opened(request)).item
        answer = await pool.run(_raw, item)
        if answer is None:
            raise HTTPException(404)
        return answer


def file_routes(desk: Desk) -> list[Route]:
    """The routes that answer with bytes of a session."""
    files = _Files(desk)
    return [Route("/sessions/{key}/media", files.media), Route("/sessions/{key}/raw", files.raw)]


def _raw(item: Item) -> RawFile | None:
    """The file of a session, opened; None for a database."""
    with ExitStack() as given_up:
        file: ReadFile = given_up.enter_context(inside(item.folder, ReadFile, item.source))
        if _is_database(file):
            return None
        answer = RawFile(file, item.source)
        given_up.pop_all()  # the answer closes it
        return answer


def _is_database(file: ReadFile) -> bool:
    return file.read(0, len(_DATABASE)) == _DATABASE
