"""The viewer over files, databases and folders of the machine it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request

from harness.viewer.app import viewer_app
from harness.viewer.safety import LOOPBACK
from harness.viewer.shelf import Shelf, listed_in, listed_usual

__all__ = ["local_viewer"]


def local_viewer(roots: Sequence[Path], *, token: str | None, zone: str = "UTC") -> Starlette:
    """Over files, databases and folders of this machine; over the usual places of all harnesses if there are none.

    Answers only under the names of the loopback address.
    """
    shelf = Shelf(partial(listed_in, tuple(roots)) if roots else listed_usual)

    async def everything(_request: Request) -> Shelf:
        return shelf

    return viewer_app(everything, hosts=LOOPBACK, token=token, zone=zone, names_places=True)
