"""Counting a transcript: the same columns for every format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any

from harness.transcripts.blocks import says
from harness.transcripts.turns import Turn

__all__ = ["Counts", "Tokens", "count_turns"]

_COLUMNS = {"tok_in": "input", "tok_cache_write": "cacheWrite", "tok_cache_read": "cacheRead", "tok_out": "output"}
# What 64 bits hold.
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a session cost: `usage` each message once; `first` and `naive` what two common mistakes give.

    `first` takes the first line of a message for its figure, `naive` adds up the lines of a message.
    """

    usage: Mapping[str, int] = field(default_factory=dict)
    first: int = 0
    naive: int = 0
    is_known: bool = False

    @classmethod
    def of(cls, usages: Sequence[Mapping[str, int]], gained: int, more: int) -> Tokens:
        """From each message's usage; how much outputs grew behind first lines, and what was put out behind them."""
        total = _sums(usages)
        first = total.get("output", 0) - gained
        kept = {name: min(value, _MOST) for name, value in total.items()}
        return cls(kept, min(first, _MOST), min(first + more, _MOST), is_known=bool(total))

    @classmethod
    def total(cls, usage: Mapping[str, int]) -> Tokens:
        """From one total, where the mistakes do not apply."""
        return cls(usage, usage.get("output", 0), usage.get("output", 0), is_known=True)

    def columns(self) -> dict[str, int]:
        """The totals under the names of the census."""
        found = {column: self.usage.get(name, 0) for column, name in _COLUMNS.items()}
        return {**found, "tok_out_first": self.first, "tok_out_naive": self.naive}


def _sums(usages: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The total of each name, in the order in which they are first named."""
    if len(set(map(len, usages))) == 1:
        try:
            return {name: sum(map(itemgetter(name), usages)) for name in usages[0]}
        except KeyError:
            pass  # nearly all have the same names, but not these
    names = dict.fromkeys(chain.from_iterable(usages))
    return {name: sum(usage.get(name, 0) for usage in usages) for name in names}


@dataclass(slots=True)
class Counts:
    """What only the reader of a format can count, while it reads.

    extra_texts  texts that a census counts although the normal form shows them as something else
    """

    lines: int = 0
    bad_lines: int = 0
    prompts_lt: int = 0
    meta_lines: int = 0
    assistant_msgs: int = 0
    images: int = 0
    compactions: int = 0
    sidechain_lines: int = 0
    extra_texts: int = 0
    models: dict[str, None] = field(default_factory=dict)
    model: str | None = None
    first: str = ""
    last: str = ""

    def saw_model(self, name: object) -> None:
        """Note a model that answered; names in brackets are the harness's own, not models."""
        if name == self.model:
            return
        if isinstance(name, str) and name and name[0] not in "<[":
            self.models[name] = None
            self.model = name

    def saw_time(self, at: str) -> None:
        """Note when a record was written, in the form of `times.stamp`."""
        if at > self.last:
            self.last = at
            if self.first:
                return
        if not self.first or at < self.first:
            self.first = at


def count_turns(turns: Iterable[Turn], counts: Counts, tokens: Tokens) -> dict[str, Any]:
    """The census: every column with its value; times are empty where the file has none."""
    found = list(turns)
    said = _said(found)
    said["text_blocks"] += counts.extra_texts
    return {
        "lines": counts.lines,
        "bad_lines": counts.bad_lines,
        "prompts": sum(turn.kind == "prompt" for turn in found),
        "prompts_lt": counts.prompts_lt,
        "context_blocks": sum(turn.kind == "context" for turn in found),
        "meta_lines": counts.meta_lines,
        "assistant_msgs": counts.assistant_msgs,
        **said,
        **_tools(found),
        "images": counts.images,
        "compactions": counts.compactions,
        "sidechain_lines": counts.sidechain_lines,
        **tokens.columns(),
        "models": ",".join(sorted(counts.models)),
        "first_ts": counts.first,
        "last_ts": counts.last,
    }


def _said(turns: list[Turn]) -> dict[str, int]:
    answers = [turn for turn in turns if turn.kind == "answer"]
    texts = sum(says(block) for turn in answers for block in turn.of_type("text"))
    reasoning = [says(block) for turn in answers for block in turn.of_type("thinking")]
    return {
        "text_blocks": texts,
        "thinking_blocks": sum(reasoning),
        "encrypted_reasoning": len(reasoning) - sum(reasoning),
    }


def _tools(turns: list[Turn]) -> dict[str, int]:
    calls = sum(1 for turn in turns for _ in turn.of_type("toolUse"))
    results = [(turn.kind, block) for turn in turns for block in turn.of_type("toolResult")]
    matched = sum(kind == "results" for kind, _ in results)
    return {
        "tool_calls": calls,
        "tool_results": len(results),
        "results_matched": matched,
        "results_orphan": len(results) - matched,
        "calls_open": calls - matched,
        "failed_results": sum(block.get("isError") is True for _, block in results),
    }
