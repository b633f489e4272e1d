"""What stands in front of every page: who may ask, from where, and what a browser may do with the answer.

A local server is reachable from every web page that its user opens. So the name in `Host` must be
one of ours (a page can point its own name at the loopback address), nothing grants another origin
access, and who does not bring the token sees no session.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = [
    "LOOPBACK",
    "MEDIA_POLICY",
    "PAGE_POLICY",
    "HostCheck",
    "SafeHeaders",
    "TokenCheck",
    "add_safe_headers",
    "new_token",
    "route_of",
]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
MEDIA_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"
_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?")
_MAX_TOKEN = 400
_FORM = "application/x-www-form-urlencoded"

Unlock = Callable[[Request], Awaitable[Response]]


def new_token() -> str:
    """A token that cannot be guessed, for one run of the server."""
    return secrets.token_urlsafe(24)


def _typed(form: bytes) -> str:
    """What a person typed into the door's form: the token, or the address that it is the end of."""
    typed = parse_qs(form.decode("utf-8", "replace")).get("token", [""])[0].strip()
    return typed.rpartition("token=")[2]


def route_of(scope: Scope) -> str:
    """The path below the place where the viewer is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root)


def add_safe_headers(headers: MutableHeaders) -> None:
    """Add what keeps an answer where it belongs; what is set already stays."""
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)


class SafeHeaders:
    """Gives every answer the headers that keep it where it belongs; those already set stay."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve with the headers added."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                add_safe_headers(MutableHeaders(scope=message))
            await send(message)

        await self._app(scope, receive, send_safely)


class HostCheck:
    """Refuses what is not for us, before any route runs.

    `hosts` are the names that `Host` may have, ports aside; None where the service around the viewer
    checks it. A request that could change something must come from a page of the same origin.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, or refuse with a sentence that holds nothing of the request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(str(scope["method"]), Headers(scope=scope))
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        if len(headers.getlist("host")) > 1:
            return PlainTextResponse("A request names one host.\n", 400)
        host = headers.get("host", "")
        if self._hosts is not None and not self._is_ours(host):
            return PlainTextResponse("This server does not answer under that name.\n", 421)
        if method in ("GET", "HEAD"):
            return None
        # Browsers name the origin with every such request; who leaves it out is no page of ours.
        if headers.get("origin", "").lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return PlainTextResponse("Only pages of this server may send that.\n", 403)
        return None

    def _is_ours(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        return found is not None and self._hosts is not None and found["name"].lower() in self._hosts


class TokenCheck:
    """Lets in who brings the token: in a cookie that only this server's pages send, or as a bearer.

    The address that a person opens carries it behind `#`, which browsers never send and no log
    sees; the page `unlock` shows then trades it for the cookie.
    """

    def __init__(self, app: ASGIApp, token: str, unlock: Unlock) -> None:
        self._app = app
        self._token = token
        self._unlock = unlock
        # Cookies know no ports: two viewers on one machine must not overwrite each other's.
        self.cookie = f"harness_{hashlib.sha256(token.encode()).hexdigest()[:12]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, trade the token, or show the door."""
        route = route_of(scope)
        if scope["type"] != "http" or route.startswith("/static/"):
            await self._app(scope, receive, send)
        elif route == "/unlock" and scope["method"] == "POST":
            await (await self._trade(Request(scope, receive)))(scope, receive, send)
        elif self._is_known(Headers(scope=scope)):
            await self._app(scope, receive, send)
        else:
            await (await self._closed(route, Request(scope, receive)))(scope, receive, send)

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._fits(bearer.strip()):
            return True
        return any(self._fits(value) for line in headers.getlist("cookie") for value in self._cookies(line))

    def _cookies(self, line: str) -> Iterator[str]:
        """The values of our own cookie. Other programs on this machine send theirs along, in whatever form."""
        for part in line.split(";"):
            name, _, value = part.partition("=")
            if name.strip() == self.cookie:
                yield value.strip().strip('"')

    def _fits(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    async def _trade(self, request: Request) -> Response:
        """A cookie for the token: for the door's script, or, from its form, with the way to the start page."""
        given = b""
        async for chunk in request.stream():
            given += chunk
            if len(given) > _MAX_TOKEN:
                break
        is_form = request.headers.get("content-type", "").startswith(_FORM)
        if not self._fits(_typed(given) if is_form else given.decode("utf-8", "replace")):
            refusal = PlainTextResponse("That is not the token of this server.\n", 403)
            return await self._unlock(request) if is_form else refusal
        path = f"{request.scope.get('root_path', '')}/"
        answer = RedirectResponse(path, 303) if is_form else Response(status_code=204)
        answer.set_cookie(self.cookie, self._token, path=path, httponly=True, samesite="strict")
        return answer

    async def _closed(self, route: str, request: Request) -> Response:
        if route.startswith("/api/"):
            return JSONResponse({"error": "the token is missing", "code": "token"}, 401)
        return await self._unlock(request)
