"""Tables of strangers, as long as they have no more cells than their text is worth.

A table fills short lines up to the width of its head. So a few thousand characters can stand for millions of cells:
such a table is left as the text it was written in.
"""

from __future__ import annotations

from markdown_it.rules_block import StateBlock, table

__all__ = ["MAX_CELLS", "limited_tables"]

MAX_CELLS = 5_000
"""Cells of all tables of one text; what comes after them stays plain."""
_FREE, _A_MARK = 100, 2
"""Cells that any table may have, and how many more for each `|` that is in the text."""


def limited_tables(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The parser's rule for tables, for those that are not too large."""
    if start + 2 > end or "-" not in _line(state, start + 1) or state.env.get("tables") == "full":
        return False
    left = state.env.get("cells")
    if left is None:
        left = state.env["cells"] = min(MAX_CELLS, _FREE + _A_MARK * state.src.count("|"))
    columns = _line(state, start).count("|") + 1
    if columns * _rows(state, start, end, left // columns + 1) > left:
        state.env["tables"] = "full"
        return False
    if not table(state, start, end, silent):
        return False
    if not silent:
        state.env["cells"] = left - columns * (state.line - start)
    return True


def _rows(state: StateBlock, start: int, end: int, most: int) -> int:
    """Lines up to the next blank one, and no more of them than matter."""
    last = min(end, start + most + 1)
    return next((line - start for line in range(start, last) if state.isEmpty(line)), last - start)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
