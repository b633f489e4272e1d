"""The file tools: a tenant's files, as far as a model may reach them.

They work on the `AbstractFilesystem` of the call, which is bound to the tenant and refuses whatever
leads out of its root or into `agents/`. There is no shell among them.
"""

from __future__ import annotations

from harness.errors import ToolError
from harness.filesystem.base import AbstractFilesystem, FileInfo, FileText
from harness.tools.base import Function
from harness.tools.bounds import bounded_list, whole_lines
from harness.tools.function import tool

__all__ = ["FILE_TOOLS", "edit_file", "glob_files", "grep_files", "list_files", "read_file", "write_file"]

_TIMEOUT = 60.0
_MAX_LINE = 20_000
_EVERY_FILE = ("", "*", "**", "**/*")


@tool(timeout=_TIMEOUT)
async def read_file(
    files: AbstractFilesystem, path: str, offset: int = 0, limit: int = 0, column: int = 0, width: int = 0
) -> str:
    """Read a text file.

    Args:
        path: the file, relative to the root
        offset: how many lines to pass over at the beginning
        limit: how many lines to read at most; 0 for as many as fit into one answer
        column: how many characters of the first line to pass over, where a line is very long
        width: how many characters of a very long line to read at most; 0 for as many as fit into one answer
    """
    found = await files.read(path, max(offset, 0), max(limit, 0))
    if not found.text:
        return f"[{path} is empty]" if found.total_lines == 0 else f"[no lines from {found.offset} on]"
    first = found.text.partition("\n")[0]
    if column > 0 or width > 0 or len(first) > _MAX_LINE:
        return _part_of_line(found, first, max(column, 0), min(width or _MAX_LINE, _MAX_LINE))
    return _page(found)


def _part_of_line(found: FileText, line: str, column: int, width: int) -> str:
    if column > len(line):
        raise ToolError(
            f"Error: line {found.offset + 1} of {found.path} has {len(line)} characters; give a smaller column"
        )
    end = min(column + max(width, 1), len(line))
    if end == len(line):
        more = f"; go on with offset={found.offset + 1}" if found.offset + 1 < found.total_lines else ""
    else:
        more = f"; go on with offset={found.offset}, column={end}"
    place = f"characters {column + 1} to {end} of {len(line)} in line {found.offset + 1} of {found.total_lines}"
    return f"{line[column:end]}\n\n[{place}{more}]"


def _page(found: FileText) -> str:
    text, lines = whole_lines(found.text)
    after = found.offset + lines
    if after >= found.total_lines:
        return text
    gap = "" if text.endswith("\n") else "\n"
    return f"{text}{gap}\n[lines {found.offset + 1} to {after} of {found.total_lines}; go on with offset={after}]"


@tool(timeout=_TIMEOUT)
async def write_file(files: AbstractFilesystem, path: str, content: str) -> str:
    """Make a new file, and the folders it is in. A file that exists is not overwritten.

    Args:
        path: the file, relative to the root
        content: the whole text
    """
    written = await files.write(path, content)
    return f"Written to {written.path}"


@tool(timeout=_TIMEOUT)
async def edit_file(
    files: AbstractFilesystem, path: str, old_string: str, new_string: str, replace_all: bool = False
) -> str:
    """Replace a text in a file.

    Args:
        path: the file, relative to the root
        old_string: the text to replace; it must occur once
        new_string: what to put in its place
        replace_all: replace it wherever it occurs, however often
    """
    edited = await files.edit(path, old_string, new_string, replace_all)
    return f"Edited {edited.path} ({edited.replacements} replacement(s))"


@tool(timeout=_TIMEOUT)
async def grep_files(files: AbstractFilesystem, pattern: str, path: str = "", glob: str = "*") -> str:
    """Find lines that contain a text, as path:line:text.

    Args:
        pattern: the text, taken literally
        path: a file or folder to search in; the root by default
        glob: which files, as in *.md or docs/**
    """
    found = await files.grep(pattern, path, None if glob in _EVERY_FILE else glob)
    if not found.matches and not found.truncated:
        return "No matches found"
    lines = (f"{match.path}:{match.line}:{match.text}" for match in found.matches)
    return bounded_list(lines, "there may be more; name a path or a glob, or a longer text", truncated=found.truncated)


@tool(timeout=_TIMEOUT)
async def glob_files(files: AbstractFilesystem, pattern: str, path: str = "") -> str:
    """Find files by their name.

    Args:
        pattern: what the path must match, as in *.md or docs/**
        path: a folder to search in; the root by default
    """
    found = await files.glob(pattern, path)
    if not found.items and not found.truncated:
        return "No matching files found"
    lines = (f"{item.path} ({item.size} bytes)" for item in found.items)
    return bounded_list(lines, "there are more; name a path or a narrower pattern", truncated=found.truncated)


@tool(timeout=_TIMEOUT)
async def list_files(files: AbstractFilesystem, path: str = "") -> str:
    """List what is in a folder.

    Args:
        path: the folder; the root by default
    """
    found = await files.ls(path)
    if not found.items:
        return f"Empty or not a directory: {path or '.'}"
    return bounded_list(map(_entry, found.items), "there are more; use glob_files", truncated=found.truncated)


def _entry(item: FileInfo) -> str:
    return f"[DIR]  {item.path}" if item.is_dir else f"[FILE] {item.path} ({item.size} bytes)"


FILE_TOOLS: tuple[Function, ...] = (
    read_file,
    write_file,
    edit_file,
    grep_files,
    glob_files,
    list_files,
)
"""Reading, writing, changing and finding files of the tenant."""
