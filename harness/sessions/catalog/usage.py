"""What conversations cost, from their ledgers alone: every request that went out, on whatever branch.

A request that reported no usage is counted as unknown, never as zero. What a fork copied, or an import
took over, is counted in the session where it was spent, and nowhere once that one is deleted. Prices are
looked up when somebody asks, where the package `genai-prices` is installed; what it cannot price is said
to be uncosted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

from harness.errors import FileMissing, HarnessError
from harness.sessions.catalog.prices import find_price
from harness.sessions.lines.entries import EntryDict
from harness.sessions.lines.headers import require_owner
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.skimming import read_entries

__all__ = ["Pricer", "RequestUsage", "UsageReport", "UsageTotal", "read_usage", "report_of", "requests_in"]

Pricer: TypeAlias = Callable[[str, str, Mapping[str, int]], Decimal | None]
"""US dollars for tokens of a provider's model; None where nobody knows."""

_log = logging.getLogger("harness.sessions")
_TOKENS = ("input", "cacheRead", "cacheWrite", "output", "reasoning")


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """One request to a model.

    status     completed, failed, aborted, timeout, malformed, auth, or unfinished: no end was logged
    active     whether it is on the branch on which the conversation goes on
    inherited  whether a fork or an import copied it; then it was counted in the session it was copied from
    tokens     of the answer, as the provider reported them; None where it did not
    attempts   every try: {reason, settlement, domain?, latencyMs, usage?}
    cost       of the answer in US dollars; None where there is no price, or no tokens to price
    abandoned  tokens of the tries that were not the answer, as far as they were reported; and what they cost
    """

    session: str
    request: str
    turn: str | None
    purpose: str
    provider: str
    model: str
    status: str
    started: str
    active: bool
    inherited: bool
    tokens: Mapping[str, int] | None
    attempts: tuple[EntryDict, ...]
    cost: Decimal | None
    abandoned: Mapping[str, int] | None = None
    abandoned_cost: Decimal | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        fields = {
            "session": self.session, "request": self.request, "turn": self.turn, "purpose": self.purpose,
            "provider": self.provider, "model": self.model, "status": self.status, "started": self.started,
            "active": self.active, "inherited": self.inherited, "usage": self.tokens and dict(self.tokens),
            "attempts": list(self.attempts), "cost": None if self.cost is None else str(self.cost),
            "abandonedUsage": self.abandoned and dict(self.abandoned),
            "abandonedCost": None if self.abandoned_cost is None else str(self.abandoned_cost),
        }  # fmt: skip
        return {key: value for key, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """A sum over requests.

    unknown    requests whose usage nobody reported
    abandoned  tries that were not the answer: failed, cut off, or given up for another model
    input      fresh tokens; those read from and written to a provider's cache stand beside them
    cost       US dollars of all that has a price; None where nothing has
    uncosted   requests with tokens but without a price
    """

    requests: int = 0
    completed: int = 0
    unknown: int = 0
    abandoned: int = 0
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cost: Decimal | None = None
    uncosted: int = 0

    def plus(self, row: RequestUsage, *, tries: bool = True) -> UsageTotal:
        """With one more request; `tries` says whether the tokens of tries that were not its answer count."""
        counted = [(row.tokens, row.cost), *([(row.abandoned, row.abandoned_cost)] if tries else [])]
        tokens = _sum(part for part, _ in counted)
        costs = [cost for cost in (self.cost, *(cost for _, cost in counted)) if cost is not None]
        return UsageTotal(
            requests=self.requests + 1,
            completed=self.completed + (row.status == "completed"),
            unknown=self.unknown + (row.tokens is None and row.abandoned is None),
            abandoned=self.abandoned
            + sum(row.status != "completed" or each.get("settlement") != "ok" for each in row.attempts),
            input=self.input + tokens.get("input", 0),
            cache_read=self.cache_read + tokens.get("cacheRead", 0),
            cache_write=self.cache_write + tokens.get("cacheWrite", 0),
            output=self.output + tokens.get("output", 0),
            reasoning=self.reasoning + tokens.get("reasoning", 0),
            cost=sum(costs, Decimal(0)) if costs else None,
            uncosted=self.uncosted + any(part is not None and cost is None for part, cost in counted),
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON; the cost is text, so that no digit is lost."""
        fields = {
            "requests": self.requests, "completed": self.completed, "unknown": self.unknown,
            "abandoned": self.abandoned, "input": self.input, "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write, "output": self.output, "reasoning": self.reasoning,
            "cost": None if self.cost is None else str(self.cost), "uncosted": self.uncosted,
        }  # fmt: skip
        return {key: value for key, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Requests and their sums. All sums but `inherited` leave out what a fork copied.

    billed      everything that was asked of a model: abandoned branches, failed requests, abandoned tries too
    active      of that, the answers on the branches on which the conversations go on
    inherited   what forks copied; it is part of the sessions where it was spent
    by_model    billed, by `provider:model`
    by_session  billed, by session id
    """

    rows: tuple[RequestUsage, ...] = ()
    billed: UsageTotal = UsageTotal()
    active: UsageTotal = UsageTotal()
    inherited: UsageTotal = UsageTotal()
    by_model: Mapping[str, UsageTotal] = field(default_factory=dict)
    by_session: Mapping[str, UsageTotal] = field(default_factory=dict)

    def to_dict(self, *, rows: bool = False) -> dict[str, Any]:
        """As JSON; `rows` adds every single request."""
        found: dict[str, Any] = {
            "billed": self.billed.to_dict(),
            "active": self.active.to_dict(),
            "inherited": self.inherited.to_dict(),
            "byModel": {name: total.to_dict() for name, total in self.by_model.items()},
            "bySession": {name: total.to_dict() for name, total in self.by_session.items()},
        }
        return found | ({"requests": [row.to_dict() for row in self.rows]} if rows else {})


def read_usage(places: Sequence[tuple[SessionFiles, Owner]], price: Pricer | None = None) -> UsageReport:
    """The report over these sessions, in a worker; each ledger is read whole, one after the other.

    Damage is stepped over; a session that was deleted meanwhile is left out, and so is one that cannot be read, or is
    another owner's, if there are others; of one alone it raises why.
    """
    rows: list[RequestUsage] = []
    for files, owner in places:
        try:
            require_owner(files, owner)
            lines = (entry.data for entry in read_entries(files.ledger))
            rows.extend(requests_in(owner.session, lines, price or find_price))
        except FileMissing:
            continue
        except HarnessError as error:  # its cost is not known; that of the others is
            if len(places) == 1:
                raise
            _log.warning("session %r was left out of the usage: %s", owner.session, error)
    return report_of(rows)


def requests_in(session_id: str, entries: Iterable[EntryDict], price: Pricer) -> list[RequestUsage]:
    """The requests among the lines of one ledger, in the order in which they went out."""
    parents: dict[str, str | None] = {}
    bindings: dict[str, EntryDict] = {}
    begun: dict[str, EntryDict] = {}
    ended: dict[str, EntryDict] = {}
    leaf: str | None = None
    for entry in entries:
        leaf = entry["id"]
        parents[leaf] = entry.get("parentId")
        match entry["type"]:
            case "binding":
                bindings[leaf] = entry
            case "request_begin":
                begun[leaf] = entry
            case "request_end":
                ended[str(entry.get("requestId"))] = entry
    active = set(_chain(parents, leaf))
    return [
        _row(session_id, begin, ended.get(request, {}), bindings.get(str(begin.get("binding")), {}), active, price)
        for request, begin in begun.items()
    ]


def report_of(rows: Iterable[RequestUsage]) -> UsageReport:
    """The sums over these requests."""
    given = tuple(rows)
    own = [row for row in given if not row.inherited]
    return UsageReport(
        rows=given,
        billed=_total(own),
        active=_total((row for row in own if row.active), tries=False),
        inherited=_total(row for row in given if row.inherited),
        by_model=_grouped(own, lambda row: f"{row.provider}:{row.model}"),
        by_session=_grouped(own, lambda row: row.session),
    )


def _total(rows: Iterable[RequestUsage], *, tries: bool = True) -> UsageTotal:
    total = UsageTotal()
    for row in rows:
        total = total.plus(row, tries=tries)
    return total


def _grouped(rows: Iterable[RequestUsage], key: Callable[[RequestUsage], str]) -> dict[str, UsageTotal]:
    totals: dict[str, UsageTotal] = {}
    for row in rows:
        totals[key(row)] = totals.get(key(row), UsageTotal()).plus(row)
    return totals


def _chain(parents: Mapping[str, str | None], leaf: str | None) -> Iterator[str]:
    """The lines from the newest back to the root; a circle, which only damage can make, ends it."""
    seen: set[str] = set()
    while leaf is not None and leaf not in seen:
        seen.add(leaf)
        yield leaf
        leaf = parents.get(leaf)


def _row(
    session_id: str, begin: EntryDict, end: EntryDict, binding: EntryDict, active: set[str], price: Pricer
) -> RequestUsage:
    provider, model = str(binding.get("provider", "")), str(binding.get("model", ""))
    tokens = _tokens(end.get("usage"))
    found = end.get("attempts")
    attempts = tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
    abandoned = _sum(_tokens(each.get("usage")) for each in attempts)
    turn = begin.get("turnId")
    return RequestUsage(
        session=session_id,
        request=str(begin["id"]),
        turn=turn if isinstance(turn, str) else None,
        purpose=str(begin.get("purpose", "")),
        provider=provider,
        model=model,
        status=str(end.get("status", "unfinished")),
        started=str(begin.get("timestamp", "")),
        active=begin["id"] in active,
        inherited=begin.get("inherited") is True,
        tokens=tokens,
        attempts=attempts,
        cost=price(provider, model, tokens) if tokens else None,
        abandoned=abandoned or None,
        abandoned_cost=price(provider, model, abandoned) if abandoned else None,
    )


def _sum(counts: Iterable[Mapping[str, int] | None]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, number in (each or {}).items():
            total[name] = total.get(name, 0) + number
    return total


def _tokens(usage: Any) -> dict[str, int] | None:
    if not isinstance(usage, dict):
        return None
    counts = {name: usage[name] for name in _TOKENS if type(usage.get(name)) is int and usage[name] >= 0}
    return counts or None
