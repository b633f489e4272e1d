"""Visitors who leave before they are answered: what was begun for them is stopped.

A search through a long session may take a minute. Who closes the page, or types on, must not leave it running.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["StopsWhenLeft"]


class StopsWhenLeft:
    """Cancels the handler of a request whose connection ends before its answer begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, until the answer begins or the visitor has gone. Nothing that is served here has a body to be read."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        gone = asyncio.ensure_future(_disconnected(receive))

        async def answer(message: Message) -> None:
            gone.cancel()  # from here on the answer itself listens
            await send(message)

        work = asyncio.ensure_future(_whole(self._app, scope, receive, answer))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not gone.cancelled():
                work.cancel()
            await asyncio.wait((work,))
        finally:
            gone.cancel()
            work.cancel()
            await asyncio.wait((work,))  # who stops the server must find nothing that still runs
        if not work.cancelled():
            work.result()


async def _whole(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
