"""The help: a line of truth and an example for each command, and examples that can be typed."""

import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

sys.path.insert(0, str(Path(__file__).parent))
from driver import ROOT, harness

from harness.cli.app import app


def commands(group: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
        else:
            yield (*names, name), command


ALL = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_every_command_has_an_example_that_it_understands(names: tuple[str, ...]) -> None:
    text = inspect.cleandoc(ALL[names].help)
    first, _, example = text.partition("\n\nExample: ")
    assert first.endswith(".")
    program, *words = shlex.split(example)
    assert (program, tuple(words[: len(names)])) == ("harness", names)
    ALL[names].make_context(" ".join(names), words[len(names) :])  # raises for an option that there is not


@pytest.mark.parametrize("names", [names for names in ALL if names[0] == "sessions"], ids=" ".join)
def test_the_page_about_sessions_names_every_command(names: tuple[str, ...]) -> None:
    assert re.search(rf"`{names[1]}[ `]", (ROOT / "docs/sessions.md").read_text("utf-8"))


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_one_option_has_one_name_everywhere(names: tuple[str, ...]) -> None:
    options = {option for each in ALL[names].params for option in each.opts}
    assert {"--json", "--debug"} <= options
    assert not options & {"--output", "--force-yes", "--id", "--tenant", "--num", "-n", "--verbose"}
    if names[0] == "sessions":
        assert {"--workspace", "-w", "--agent", "--user", "-u"} <= options


def test_help_fits_a_narrow_terminal_and_has_no_colour_where_none_is_wanted(tmp_path: Path) -> None:
    done = harness("sessions", "--help", cwd=tmp_path, COLUMNS="50", TERMINAL_WIDTH="50", FORCE_COLOR="")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 50
