"""`harness view`: sessions as web pages, on this machine only."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.guard import command
from harness.cli.options import AsJson
from harness.cli.output import say, say_json
from harness.errors import FileMissing, MissingExtra
from harness.transcripts import in_worker
from harness.transcripts.times import ZONE

__all__ = ["run"]

Places = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATH]…", help="Files, databases or folders. Without one: the usual places of all harnesses."
    ),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")]
Zone = Annotated[str, typer.Option("--zone", envvar=ZONE, help="Time zone of every time shown.")]
OpenBrowser = Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")]


@command
async def run(
    places: Places = None,
    port: Port = 0,
    zone: Zone = "UTC",
    open_browser: OpenBrowser = False,
    as_json: AsJson = False,
) -> None:
    """Read sessions of any harness in a browser. Nothing is changed; only this machine can connect.

    Example: harness view workspace --open
    """
    try:
        from harness.viewer import found_in, local_viewer, new_token, serve
    except MissingExtra as error:
        raise MissingExtra("harness view", "viewer") from error
    for place in places or ():
        if not place.exists():
            raise FileMissing(f"there is nothing at {place}; name a session file, a database or a folder")
    if places:
        await in_worker(found_in, tuple(places))  # what is no session is said before a browser is opened
    token = new_token()
    app = local_viewer(places or (), token=token, zone=zone)

    def started(bound: int) -> None:
        url = f"http://127.0.0.1:{bound}/#token={token}"
        if as_json:
            say_json({"url": url, "host": "127.0.0.1", "port": bound, "token": token})
        else:
            say(f"Open {url}\nCtrl-C stops it.")
        if open_browser:
            webbrowser.open(url)

    await serve(app, port=port, started=started)
