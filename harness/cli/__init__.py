"""The `harness` command. Each module is a group of commands: parse, call one function, print.

Exit codes: 0 success, 1 a check or the work itself failed, 2 wrong usage, 3 something needed is missing, 130 after
Ctrl-C, 141 where the reader of the output went away.
"""

from __future__ import annotations

import sys

from harness.cli.streams import open_streams

__all__ = ["main"]

_PACKAGES = frozenset({"typer", "rich", "prompt_toolkit"})
_INTERRUPTED = 130


def main() -> None:
    """Entry point of the command. Exits with 3 and one sentence where the extra `cli` is not installed."""
    open_streams()
    try:
        sys.exit(_run())
    except KeyboardInterrupt:  # while it was still being loaded; a command catches its own
        sys.exit(_INTERRUPTED)


def _run() -> int:
    try:
        import rich  # noqa: F401  (typer falls back to another look without it; one look is enough)

        from harness.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        sys.stderr.write(
            f"error: the command line needs {error.name}, which is missing: pip install 'dualtrack-harness[cli]'\n"
        )
        return 3
    return run(sys.argv[1:])
