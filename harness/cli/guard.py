"""What stands around every command: its event loop, its log, and errors as one line and an exit code."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import typer

from harness.cli.output import report_error
from harness.errors import (
    ConfigError,
    FileMissing,
    HarnessError,
    InvalidId,
    MissingExtra,
    ModelAuthError,
    SessionNotFound,
)
from harness.text import visible

__all__ = ["command", "exit_code"]

P = ParamSpec("P")

_MISSING = (MissingExtra, ModelAuthError, SessionNotFound, FileMissing)
_USAGE = (ConfigError, InvalidId)


def command(function: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make a typer command of a coroutine function that takes `as_json` and `debug`.

    Errors of this library become `error: …` on standard error and an exit code; with `--debug`
    they are raised instead. Other errors are faults of ours and keep their traceback.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        debug, as_json = bool(kwargs.get("debug")), bool(kwargs.get("as_json"))
        _log_to_stderr(debug=debug)
        try:
            asyncio.run(function(*args, **kwargs))
        except HarnessError as error:
            if debug:
                logging.getLogger("harness.cli").debug("the command failed", exc_info=error)
            report_error(error, as_json=as_json)
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return run


def exit_code(error: HarnessError) -> int:
    """3 where something needed is missing, 2 where the command was used wrongly, else 1."""
    if isinstance(error, _MISSING):
        return 3
    return 2 if isinstance(error, _USAGE) else 1


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
