"""Text of a file: taking lines from it, and replacing a part of it."""

from __future__ import annotations

from harness.errors import FilesystemError
from harness.filesystem.base import FileText

__all__ = ["cut_lines", "decode", "encode", "replace_text"]


def decode(path: str, data: bytes) -> str:
    """The text of a file. Raises `FilesystemError` if it is none."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FilesystemError(f"{path} is no UTF-8 text (byte {error.start}); it cannot be read as text") from error


def encode(path: str, text: str) -> bytes:
    """The bytes of a text. Raises `FilesystemError` for half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FilesystemError(f"the text for {path} holds half a surrogate pair; leave that character out") from error


def cut_lines(path: str, text: str, offset: int, limit: int) -> FileText:
    """The lines asked for; only a line feed ends a line. Raises `FilesystemError` beyond the end."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if offset < 0 or (offset and offset >= len(lines)):
        raise FilesystemError(f"{path} has {len(lines)} lines; give an offset from 0 to {max(len(lines) - 1, 0)}")
    end = offset + limit if limit > 0 else len(lines)
    chosen = lines[offset:end]
    ended = end < len(lines) or text.endswith("\n")
    cut = "\n".join(chosen) + ("\n" if chosen and ended else "")
    return FileText(path, cut, offset, len(chosen), len(lines))


def replace_text(path: str, text: str, old: str, new: str, every: bool, max_size: int) -> tuple[str, int]:
    """The changed text and the number of places; the rules of `AbstractFilesystem.edit`."""
    if not old or old == new:
        raise FilesystemError(f"nothing to change in {path}: give the text to replace and a different one for it")
    old, new = _with_line_ends_of(text, old, new)
    count = text.count(old)
    if count == 0:
        raise FilesystemError(f"{path} does not contain the text to replace; read it and copy the text exactly")
    if count > 1 and not every:
        raise FilesystemError(f"{path} contains the text {count} times; give more of it, or ask to replace all")
    # Counted first: many places and a long text would not fit into memory.
    if len(text) + count * (len(new) - len(old)) > max_size:
        raise FilesystemError(f"{path} would grow over {max_size} bytes; write a smaller text")
    return text.replace(old, new), count


def _with_line_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """`old` and `new` with the line ends of the file, where `old` is not in it as it is.

    A place that is found as it is decides nothing for `new`: it takes those of the file as well, if
    the file has only one kind.
    """
    plain_old, plain_new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    crlf = text.count("\r\n")
    if crlf == 0:
        return (old, new) if old in text else (plain_old, plain_new)
    windows_old, windows_new = plain_old.replace("\n", "\r\n"), plain_new.replace("\n", "\r\n")
    if crlf == text.count("\n"):
        return windows_old, windows_new
    return (old, new) if old in text else (windows_old, windows_new)
