"""The `harness` command. Each module is a group of commands: parse, call one function, print.

Exit codes: 0 success, 1 a check or the work itself failed, 2 wrong usage, 3 something needed is missing.
"""

from __future__ import annotations

import sys

__all__ = ["main"]

_PACKAGES = frozenset({"typer", "rich", "prompt_toolkit"})


def main() -> None:
    """Entry point of the command. Exits with 3 and one sentence where the extra `cli` is not installed."""
    try:
        import rich  # noqa: F401  (typer falls back to another look without it; one look is enough)

        from harness.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        sys.stderr.write(
            f"error: the command line needs {error.name}, which is missing: pip install 'dualtrack-harness[cli]'\n"
        )
        sys.exit(3)
    app(prog_name="harness")
