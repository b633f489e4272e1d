"""`recall`: what was said earlier in this conversation and is shown shortened, or no longer shown, read back whole.

It knows no other conversation than that of the call. Its answers begin with one line that says what
they are; behind that line stands the text itself, byte for byte, so that pieces can be joined.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from harness.context import CallScope
from harness.errors import HarnessError, PersistenceError, SessionError, ToolError
from harness.filesystem import pool
from harness.messages import MessageDict
from harness.models.base import Model
from harness.models.tokens import estimate_tokens
from harness.sessions.selection.recalling import (
    Found,
    Recalled,
    RecalledTurn,
    find_said,
    recall_call,
    recall_result,
    recall_turn,
)
from harness.sessions.tree.session_tree import SessionTree
from harness.sessions.view.metering import window_of
from harness.text import dumps
from harness.tools.bounds import shortened
from harness.tools.function import tool
from harness.tools.injection import Inject
from harness.tools.queries import asked, echoed

__all__ = ["recall"]

_TIMEOUT = 60.0
_MAX_CHARS = 28_000
"""Characters of the conversation in one answer; with what stands around them it stays under 29 000."""
_MAX_LIMIT = 20
_MAX_NAME = 100
_SHARE_OF_WINDOW = 5
"""An answer takes at most this part of the model's window, so that nobody need cut it once more."""
_EVIDENCE = re.compile(r"\[?(?:evidence:)?(\d{1,9})\.(\d{1,9})\]?")
_RANGE = re.compile(r"(\d{1,12})\s*(?:(-)\s*(\d{1,12})?)?")

log = logging.getLogger("harness.tools")

Tree = Annotated[SessionTree, Inject]


@tool(timeout=_TIMEOUT)
async def recall(
    tree: Tree,
    scope: CallScope,
    query: str = "",
    limit: int = 8,
    turn: int = 0,
    id: str = "",  # noqa: A002  # the word that the evidence tags use
    lines: str = "",
    chars: str = "",
) -> str:
    """Read back what was said earlier in this conversation: nothing of it is lost, also where only a summary, a line
    or a part is shown. Give exactly one of query, turn and id.

    Args:
        query: words to look for in all earlier turns
        limit: with query, how many places at most, 1 to 20
        turn: the number of a turn, as in #12, to read it whole
        id: an evidence id such as 12.3, or a tool call's id, to read that result whole
        lines: with turn or id, only these lines, as in 1-200
        chars: with turn or id, only these characters, as in 0-20000, the end not included
    """
    _check_target(query, turn, id)
    try:
        if query:
            found = await pool.run_alone(
                scope.namespace, find_said, tree.files, asked(query), min(max(limit, 1), _MAX_LIMIT)
            )
            return _places(query, found, _room(scope, tree, "\n".join(each.snippet for each in found)))
        text = await _turn_text(scope, tree, turn) if turn else await _result_text(scope, tree, id)
    except (SessionError, PersistenceError) as error:
        raise _unreadable(error) from error
    return _piece(text, lines, chars, _room(scope, tree, text.text))


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to read in pieces: what it is, and the argument by which it is asked for."""

    what: str
    target: str
    text: str


def _check_target(query: str, turn: int, wanted: str) -> None:
    given = [name for name, value in (("query", query), ("turn", turn), ("id", wanted)) if value]
    if len(given) != 1:
        found = f"{' and '.join(given)} were given" if given else "none was given"
        raise ToolError(f"Error: give exactly one of query, turn and id; {found}")


async def _turn_text(scope: CallScope, tree: SessionTree, number: int) -> _Text:
    found = await pool.run_alone(scope.namespace, recall_turn, tree.files, number)
    if isinstance(found, int):
        raise ToolError(f"Error: there is no turn #{number}; this conversation has the turns #1 to #{found}")
    return _Text(f"turn #{number} of {found.turns}", f"turn={number}", _said(found))


async def _result_text(scope: CallScope, tree: SessionTree, wanted: str) -> _Text:
    found = await _result(scope, tree, wanted.strip())
    if found is None:
        raise ToolError(
            f'Error: there is no result "{echoed(wanted)}" in this conversation; '
            "give an evidence id such as 12.3, or the id of a tool call, or look for it with query"
        )
    besides = f", besides: {', '.join(found.media)}" if found.media else ""
    what = f"{'error' if found.is_error else 'result'} {found.evidence} of {shortened(found.tool, _MAX_NAME)}{besides}"
    return _Text(f"{what}{_lost(found)}", f'id="{found.evidence}"', found.text)


def _lost(found: Recalled) -> str:
    return f", whose file of {found.lost} characters is lost: only what was shown of it is left" if found.lost else ""


async def _result(scope: CallScope, tree: SessionTree, wanted: str) -> Recalled | None:
    evidence = _EVIDENCE.fullmatch(wanted)
    numbers = (int(evidence[1]), int(evidence[2])) if evidence else None
    found = await pool.run_alone(scope.namespace, recall_result, tree.files, *numbers) if numbers else None
    return found or await pool.run_alone(scope.namespace, recall_call, tree.files, wanted)


def _said(found: RecalledTurn) -> str:
    """A turn as text: who said what, and each result under its evidence id."""
    results = iter(found.results)
    return "\n\n".join(part for message in found.turn.messages for part in _message_parts(message, results))


def _message_parts(message: MessageDict, results: Iterator[Recalled]) -> list[str]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    role = str(message.get("role")).upper()
    shown = [_block(block, role, results) for block in blocks if isinstance(block, dict)]
    return [part for part in shown if part]


def _block(block: dict[str, Any], role: str, results: Iterator[Recalled]) -> str:
    match block.get("type"):
        case "text":
            return f"[{role}]: {block.get('text', '')}"
        case "thinking":
            return ""
        case "toolUse":
            return f"[CALL {block.get('id')} of {block.get('name')}]: {dumps(block.get('input', {})).decode()}"
        case "toolResult":
            result = next(results)
            besides = f" (besides: {', '.join(result.media)})" if result.media else ""
            kind = "ERROR" if result.is_error else "RESULT"
            return f"[{kind} {result.evidence} of {result.tool}]{besides}{_lost(result)}: {result.text}"
        case other:
            return f"[{role}]: ({other})"


def _piece(text: _Text, lines: str, chars: str, room: int) -> str:
    """A part of a text behind a line that says which part it is and how to go on."""
    start, end = _span(text.text, lines, chars)
    stop = min(end, start + room)
    size = len(text.text)
    where = f"{size} characters" if (start, stop) == (0, size) else f"characters {start}-{stop} of {size}"
    more = f'; go on with recall({text.target}, chars="{stop}-{end}")' if stop < end else ""
    return f"[from earlier in this conversation: {text.what}, {where}{more}]\n{text.text[start:stop]}"


def _span(text: str, lines: str, chars: str) -> tuple[int, int]:
    """The characters asked for, from and up to, within the text."""
    if lines and chars:
        raise ToolError("Error: give lines or chars, not both")
    if lines:
        first, last = _range("lines", lines)
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        after = len(starts) if last is None else max(last, first)
        begin = starts[max(first, 1) - 1] if max(first, 1) <= len(starts) else len(text)
        return begin, starts[after] if after < len(starts) else len(text)
    first, last = _range("chars", chars) if chars else (0, None)
    begin = min(first, len(text))
    return begin, len(text) if last is None else min(max(last, begin), len(text))


def _range(name: str, value: str) -> tuple[int, int | None]:
    """`a-b` as two numbers; None for an end that is left out, and `a` alone is just that one."""
    found = _RANGE.fullmatch(value.strip())
    if found is None:
        example = "1-200" if name == "lines" else "0-20000"
        raise ToolError(f'Error: {name} is "{echoed(value)}"; give a range such as {example}')
    first = int(found[1])
    if not found[2]:
        return first, first if name == "lines" else first + 1
    return first, int(found[3]) if found[3] else None


def _places(query: str, found: Sequence[Found], room: int) -> str:
    if not found:
        return f"Nothing said earlier in this conversation holds any word of: {echoed(query)}"
    head = "[from earlier in this conversation; read on with turn=<number> or id=<evidence id>]"
    shown: list[str] = []
    for each in found:
        shown.append(_place(each))
        if sum(len(line) + 1 for line in shown) > room and len(shown) > 1:
            shown[-1] = "[more places do not fit; ask with a smaller limit or more words]"
            break
    return "\n".join([head, *shown])


def _place(found: Found) -> str:
    source = f"[evidence:{found.evidence}] {found.tool}" if found.evidence else f"[{found.role.upper()}]"
    return f"#{found.number} {source}: {found.snippet}"


def _room(scope: CallScope, tree: SessionTree, text: str) -> int:
    """Characters of this text that one answer may have, with the model at work."""
    model = scope.find(Model)  # type: ignore[type-abstract]  # looked up by its protocol
    window = window_of(tree.path(), model.provider, model.name, model.context_window) if model else None
    if window is None:
        return _MAX_CHARS
    share = len(text) * (window // _SHARE_OF_WINDOW) // max(estimate_tokens(text), 1)
    return min(_MAX_CHARS, max(share, 400))


def _unreadable(error: HarnessError) -> ToolError:
    """The errors of sessions name places of the host: they are for the log, not for a model."""
    log.warning("recall could not read: %s", error)
    return ToolError("Error: the conversation cannot be read at the moment; go on without it")
