"""`harness quickstart`: the main job, offline, with its files left to look at."""

from __future__ import annotations

import sys
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.guard import command
from harness.cli.options import AsJson
from harness.cli.output import one_line, say, say_json
from harness.cli.story import ContextView, Story, fresh_folder, tell

__all__ = ["run"]

Folder = Annotated[
    Path | None, typer.Option("--dir", help="Where to work: a new or empty folder. Default: a temporary one.")
]

_COLUMN = 58


@command
async def run(folder: Folder = None, as_json: AsJson = False) -> None:
    """Two users, two turns each in processes of their own; then search, compaction, and the files.

    Example: harness quickstart --dir tour
    """
    place = await fresh_folder(folder)
    if not as_json:
        say(f"Two users talk to one agent on the offline model, each turn in a process of its own.\nFolder: {place}\n")
    story = await tell(place)
    if as_json:
        say_json(story.to_dict())
    else:
        _print(story)
    if not story.ok:
        raise typer.Exit(1)


def _print(story: Story) -> None:
    for said in story.turns:
        say(f"  {said.user:>5} (process {said.process}): {said.message}")
        say(f"        → {one_line(said.reply)}")
    say("\nSearching alice's conversations for “code word”:")
    for hit in story.hits:
        say(f"  {hit['session_id']}, {hit['role']}: {one_line(hit['snippet'], 80)}")
    _print_context(story.context)
    say("\nThe files:")
    for name, size in story.files:
        say(f"  {size:>7}  {name}")
    say("\nChecked:")
    for name, passed in story.checks.items():
        say(f"  {'ok  ' if passed else 'FAIL'}  {name}")
    say(f"\nGo on: {_program()} chat --workspace {story.folder} --agent notes --user alice --session monday")


def _print_context(view: ContextView) -> None:
    say("\nAlice talks on until her conversation is compacted. The ledger, and beside it what the model is shown:")
    for logged, shown in zip_longest(view.logged, view.shown, fillvalue=""):
        say(f"  {one_line(logged, _COLUMN):<{_COLUMN}} | {one_line(shown, _COLUMN)}".rstrip())
    say(f"  alice: {view.question}\n        → {one_line(view.reply)}")


def _program() -> str:
    """The command as it was called here."""
    return "python -m harness" if sys.argv[0].endswith("__main__.py") else sys.argv[0]
