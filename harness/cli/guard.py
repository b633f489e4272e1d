"""What stands around every command: its event loop, its log, and errors as one line and an exit code."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from inspect import Parameter
from typing import Any

import typer

from harness.cli.options import Debug
from harness.cli.output import report_error
from harness.errors import (
    ConfigError,
    FileMissing,
    HarnessError,
    InvalidId,
    MissingExtra,
    MissingSetting,
    ModelAuthError,
    SessionNotFound,
)
from harness.text import visible

__all__ = ["NOBODY_READS", "command", "exit_code", "parameters_of", "with_parameters"]

_MISSING = (MissingExtra, MissingSetting, ModelAuthError, SessionNotFound, FileMissing)
_USAGE = (ConfigError, InvalidId)
_WAYS_TO_LEAVE: tuple[type[Exception], ...] = (typer.Exit, typer.Abort, typer.BadParameter.__mro__[1], BrokenPipeError)
"""What typer makes something of (it has no name for the third, all wrong usage), and a reader who has gone."""
_INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
NOBODY_READS = 141
"""Exit code where the reader of the output went away, as `head` does: a 1 would say that a check found something."""


_log = logging.getLogger("harness.cli")


def command(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a typer command of a coroutine function; it gets the option `--debug`, too.

    Errors of this library become `error: …` on standard error and an exit code; with `--debug`
    their traceback is logged. Other errors are faults of ours: theirs is shown always, for it may not come again.
    """

    @functools.wraps(function)
    def run(*, debug: bool, **given: Any) -> None:
        _log_to_stderr(debug=debug)
        try:
            code = _code_of(function(**given), as_json=bool(given.get("as_json")))
        except KeyboardInterrupt:
            code = _INTERRUPTED
        except BrokenPipeError:
            code = NOBODY_READS
        if code:
            raise typer.Exit(code)

    return with_parameters(run, [*parameters_of(function), *parameters_of(_debug)])


def _code_of(work: Coroutine[Any, Any, None], *, as_json: bool) -> int:
    """Do the work of a command, and report its error."""
    try:
        asyncio.run(work)
    except HarnessError as error:
        _log.debug("the command failed", exc_info=error)
        found = error
    except _WAYS_TO_LEAVE:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, who asked for JSON is owed a document
        _log.critical("a fault of harness", exc_info=error)
        found = HarnessError(f"{type(error).__name__}: {error}; harness has a fault: report it with the lines above")
    else:
        return 0
    report_error(found, as_json=as_json)
    return exit_code(found)


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a function, from which typer makes arguments and options."""
    return [*inspect.signature(function, eval_str=True).parameters.values()]


def with_parameters(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """The function itself, which says from now on that it takes these."""
    function.__signature__ = inspect.Signature([*parameters])  # type: ignore[attr-defined]  # typer reads it from there
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    return function


def exit_code(error: HarnessError) -> int:
    """3 where something needed is missing, 2 where the command was used wrongly, else 1."""
    if isinstance(error, _MISSING):
        return 3
    return 2 if isinstance(error, _USAGE) else 1


def _debug(debug: Debug = False) -> None:
    """What every command takes; only its signature is of use."""


class _PlainFormatter(logging.Formatter):
    """Log records carry data too: names of files, words of users."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _log_to_stderr(*, debug: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _PlainFormatter("%(levelname)s %(name)s: %(message)s" if debug else "%(levelname)s: %(message)s")
    )
    logger = logging.getLogger("harness")
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    if not debug:
        logging.getLogger("harness.filesystem.locks").setLevel(logging.INFO)  # they say what is waited for
