"""What may be searched for: bounded here, for every search, so that it costs what the text costs that is searched."""

from __future__ import annotations

import unicodedata

from harness.errors import ConfigError

__all__ = ["MAX_QUERY", "MAX_WORDS", "checked_query", "fold"]

MAX_QUERY = 2_048
"""Characters of a query."""
MAX_WORDS = 64
"""Different words of a query: each is looked for in the whole text."""


def checked_query(query: str) -> str:
    """The query. Raises `ConfigError` where it is too long, or has too many different words."""
    if len(query) > MAX_QUERY:
        raise ConfigError(f"the query has {len(query)} characters; give at most {MAX_QUERY}")
    words = len({*fold(query).split()})
    if words > MAX_WORDS:
        raise ConfigError(f"the query has {words} different words; give at most {MAX_WORDS}, those that tell most")
    return query


def fold(text: str) -> str:
    """A text so that neither case nor width of its letters matters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
