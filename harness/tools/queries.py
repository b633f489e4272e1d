"""What a model asked for: checked before it is looked for, and shown again where nothing was found."""

from __future__ import annotations

from harness.errors import ConfigError, ToolError
from harness.sessions.view.query import checked_query
from harness.text import visible
from harness.tools.bounds import shortened

__all__ = ["asked", "echoed"]

_MAX_ECHO = 200


def asked(query: str) -> str:
    """The query, if it can be searched for. Raises `ToolError`."""
    if not query.strip():
        raise ToolError("Error: the query is empty; give one or more words to look for")
    try:
        return checked_query(query)
    except ConfigError as error:
        raise ToolError(f"Error: {error}") from None


def echoed(text: str) -> str:
    """What was given, on one line: no more of it than tells which it was, and nothing that steers a terminal."""
    return visible(" ".join(shortened(text, _MAX_ECHO).split()))
