"""The application: routes, what stands in front of them, and errors as sentences."""

from __future__ import annotations

import logging
import re
from functools import partial
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from harness.errors import FileMissing, HarnessError, PathRefused, SessionNotFound, TranscriptRefused
from harness.transcripts.times import zone_named
from harness.viewer.api import api_routes
from harness.viewer.asking import AnswerRefused
from harness.viewer.desk import Access, Desk, json_answer
from harness.viewer.files import file_routes
from harness.viewer.leaving import StopsWhenLeft
from harness.viewer.pages import page_routes
from harness.viewer.safety import HostCheck, SafeHeaders, TokenCheck, add_safe_headers, route_of
from harness.viewer.templates import Templates

__all__ = ["viewer_app"]

_log = logging.getLogger("harness.viewer")
_PAGE = re.compile(r"/(sessions/[0-9a-f]{16}(/[a-z]+(/[0-9a-z-]+)?)?)?")
_MISSING = (SessionNotFound, FileMissing, PathRefused)
_REFUSED = {
    "unknown_format": "This file is no transcript of a format that can be read here.",
    "no_transcript": "There is no conversation in this file.",
    "not_utf8": "This file is not UTF-8; convert it first.",
    "several_sessions": "This file holds several sessions; open one of them from the list.",
    "no_such_session": "That session is not in this file any more; open the list to see those there are.",
}
_STATUS = {
    400: "That address is not one of this viewer's: a part of it is missing or too long.",
    403: "These sessions are not yours to see.",
    404: "There is nothing under this address.",
    405: "Nothing here can be changed: this viewer only reads.",
    500: "The viewer failed at this; the server's log says why.",
    503: "Who may see what could not be found out in time; try again later.",
}


def viewer_app(
    access: Access,
    *,
    hosts: frozenset[str] | None = None,
    token: str | None = None,
    zone: str = "UTC",
    names_places: bool = False,
) -> Starlette:
    """An application that serves the viewer by itself, or mounted in another one below any path.

    access        gives the sessions that a request may see, or None for nobody; asked at every request
    hosts         the names by which it may be reached; None where the service around it checks them
    token         needed besides `access`, in a cookie or as a bearer; None for no token
    zone          the IANA name of the time zone of every time shown
    names_places  whether the places of files are shown; only for who owns the machine

    Raises `ConfigError` for an unknown zone.
    """
    templates = Templates(zone_named(zone), zone)
    desk = Desk(access, templates, names_places=names_places)
    middleware = [Middleware(SafeHeaders), Middleware(HostCheck, hosts=hosts)]
    if token is not None:
        middleware.append(Middleware(TokenCheck, token=token, unlock=partial(_unlock, desk)))
    middleware.append(Middleware(StopsWhenLeft))
    static = Mount("/static", StaticFiles(packages=[("harness.viewer", "static")]))
    failed, status = partial(_failed, desk), partial(_status, desk)
    return Starlette(
        routes=[*page_routes(desk), *api_routes(desk), *file_routes(desk), static],
        middleware=middleware,
        exception_handlers={
            HarnessError: failed,
            AnswerRefused: partial(_misled, desk),
            HTTPException: status,
            Exception: partial(_broke, desk),
        },
    )


async def _unlock(desk: Desk, request: Request) -> Response:
    """The door: the start page always opens it, pages of sessions too, other addresses lead nowhere."""
    route = route_of(request.scope)
    refused = (request.method, route) == ("POST", "/unlock")  # a token came, and was another
    if not _PAGE.fullmatch(route) and not refused:
        return await _said(desk, request, 404, _STATUS[404])
    answer = await desk.html(request, "unlock.html", 403 if refused else 200 if route == "/" else 401, refused=refused)
    # Else a browser would not say which page the form was sent from.
    answer.headers["referrer-policy"] = "same-origin"
    return answer


async def _failed(desk: Desk, request: Request, error: Exception) -> Response:
    """Errors of ours. Their own words name places on this machine: those go to the log only."""
    if isinstance(error, _MISSING):
        return await _said(desk, request, 404, "This session or file is not here; the list shows those there are.")
    code = getattr(error, "code", "") if isinstance(error, TranscriptRefused) else _word_for(error)
    _log.warning("%s could not be shown: %s", route_of(request.scope), error)
    message = _REFUSED.get(code, "This session cannot be read now; the server's log says why.")
    return await _said(desk, request, 422, message, code)


async def _misled(desk: Desk, request: Request, error: Exception) -> Response:
    """The service gave something else than who asks: a fault of its own, and nothing is shown."""
    _log.error("%s: %s", route_of(request.scope), error)
    return await _said(desk, request, 500, _STATUS[500])


def _word_for(error: Exception) -> str:
    """The name of its class, or of the one above it where that one is no word for others."""
    return next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))


async def _status(desk: Desk, request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    phrase = HTTPStatus(status).phrase
    detail = error.detail if isinstance(error, HTTPException) else phrase
    answer = await _said(desk, request, status, _STATUS.get(status, phrase) if detail == phrase else detail)
    if isinstance(error, HTTPException) and error.headers:
        answer.headers.update(error.headers)
    return answer


async def _broke(desk: Desk, request: Request, error: Exception) -> Response:
    """A fault of ours. The framework answers it in front of everything that adds headers, and logs it after."""
    _log.error("%s failed: %s", route_of(request.scope), type(error).__name__)
    answer = await _said(desk, request, 500, _STATUS[500])
    add_safe_headers(answer.headers)
    return answer


async def _said(desk: Desk, request: Request, status: int, message: str, code: str = "") -> Response:
    if route_of(request.scope).startswith("/api/"):
        return json_answer({"error": message, "code": code or HTTPStatus(status).phrase.lower()}, status)
    return await desk.html(request, "error.html", status, heading=HTTPStatus(status).phrase, message=message)
