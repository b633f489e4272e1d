"""Sessions as web pages: fast, safe to open, and changed by nothing that is done there.

Needs the extra `viewer`. `local_viewer` opens places of this machine, `agent_viewer` mounts in a
service and shows each user their own sessions, `viewer_app` is what both are made of.

The names are loaded at first use: worker processes import modules of this room, and need no web server.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from harness.errors import MissingExtra

if TYPE_CHECKING:
    from harness.viewer.app import viewer_app
    from harness.viewer.desk import Access
    from harness.viewer.local import local_viewer
    from harness.viewer.safety import LOOPBACK, new_token
    from harness.viewer.service import Authorise, agent_viewer
    from harness.viewer.serving import serve
    from harness.viewer.shelf import Item, Shelf, found_in, found_usual

__all__ = [
    "LOOPBACK",
    "Access",
    "Authorise",
    "Item",
    "Shelf",
    "agent_viewer",
    "found_in",
    "found_usual",
    "local_viewer",
    "new_token",
    "serve",
    "viewer_app",
]

_PACKAGES = frozenset({"jinja2", "markdown_it", "markupsafe", "nh3", "pygments", "starlette", "uvicorn"})
"""What the extra `viewer` brings, by the names they are imported by."""

_HOMES = {
    "LOOPBACK": "safety",
    "Access": "desk",
    "Authorise": "service",
    "Item": "shelf",
    "Shelf": "shelf",
    "agent_viewer": "service",
    "found_in": "shelf",
    "found_usual": "shelf",
    "local_viewer": "local",
    "new_token": "safety",
    "serve": "serving",
    "viewer_app": "app",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise MissingExtra(f"harness.viewer.{name}", "viewer") from error


def __dir__() -> list[str]:
    return sorted(__all__)
