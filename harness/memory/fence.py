"""Showing a model text of unknown origin, marked as such.

Memory is written by models out of what strangers said, so it may hold text that pretends to be the
end of its section, a new section, or a heading of the prompt.
"""

from __future__ import annotations

import re

from harness.errors import ConfigError
from harness.text import clean_text, without_tags

__all__ = ["RESERVED_TAGS", "fence", "tag_name"]

RESERVED_TAGS = frozenset(
    {
        "agents_context",
        "context_summary",
        "conversation",
        "domain_knowledge_context",
        "loaded_context",
        "memory",
        "memory_context",
        "notes",
        "session_context",
        "today",
        "turns",
    }
)
"""Tags of this library's prompts. No fenced text can open or close one, whichever its own tag is."""

_TAG = re.compile(r"[a-z][a-z0-9_]{0,99}")


def fence(tag: str, text: str) -> str:
    """`text` in lines of its own, indented by two spaces, between `<tag>` and `</tag>`; blank text as `<tag></tag>`.

    Whatever in the text could be read as that tag or as one of `RESERVED_TAGS` gets its opening
    bracket replaced by `&lt;`, also when disguised by capitals, spaces, invisible or look-alike
    characters. Indented, no line of it can pose as a heading of the prompt. Whatever ends a line in
    any script becomes a line feed; the rest stays as it is. Raises `ConfigError` for a tag that is
    none (see `tag_name`).
    """
    if not _TAG.fullmatch(tag):
        raise ConfigError(f"{tag[:100]!r} is no tag; use lower-case letters, digits and _, as tag_name makes them")
    lines = clean_text(text).splitlines()
    if not any(line.strip() for line in lines):
        return f"<{tag}></{tag}>"
    # Joined first: a tag may be broken over two lines.
    inner = "\n".join(f"  {line}" if line.strip() else "" for line in lines)
    return f"<{tag}>\n{without_tags(inner, {tag, *RESERVED_TAGS})}\n</{tag}>"


def tag_name(path: str) -> str:
    """The tag for the text of a file: `notes/Style.md` gives `notes_style_md`."""
    name = re.sub(r"[^a-z0-9]", "_", path.lower())[:90]
    return name if _TAG.fullmatch(name) else f"file_{name}"
