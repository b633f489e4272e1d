"""Priority 10: a long conversation is summarised, whole turns at a time.

The summary replaces nothing until it is complete and logged. What it stands for stays in the ledger
and can be searched and read back. An open turn that alone is too large gives up its finished steps.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from harness.errors import ModelError
from harness.hooks.compaction_config import SUMMARY_PROMPT, CompactionConfig
from harness.hooks.compaction_plan import (
    Plan,
    held_back,
    last_to_truncate,
    make_plan,
    token_limit,
    trigger,
    truncation_due,
)
from harness.hooks.events import PreReasoning, PreSummary
from harness.hooks.record import record_of, split_record, with_record
from harness.hooks.side import Notices, SideModel
from harness.hooks.summarising import Summary, plain_summary, summarise
from harness.ids import new_id
from harness.memory import within_budget
from harness.messages import MessageDict
from harness.models.base import Model, ModelRequest
from harness.models.tokens import estimate_request, estimate_tokens
from harness.sessions import SessionTree
from harness.sessions.view.metering import (
    CAPACITY,
    Capacity,
    ContextSize,
    answered_size,
    capacities,
    capacity_events,
    context_size,
    widened,
    window_of,
)
from harness.sessions.view.truncating import ARGUMENTS_CUT
from harness.sessions.view.turns import PASSING
from harness.text import error_text

__all__ = ["SUMMARY_PROMPT", "CompactionConfig", "CompactionHook", "Compactor"]

log = logging.getLogger("harness.hooks")

_SURE = 0.95
"""The share of a window up to which a request is sure to fit, for sizes are estimates."""


class CompactionHook:
    """Compacts before a request, when the conversation has reached one of the limits of its configuration."""

    priority = 10
    events = (PreReasoning, PreSummary)

    def __init__(self, config: CompactionConfig | None = None) -> None:
        self.config = config or CompactionConfig()

    async def on_event(self, event: PreReasoning | PreSummary) -> None:
        """Compact if it is time. A summary that does not come changes nothing and is logged."""
        scope = event.scope
        tools = event.tools if isinstance(event, PreReasoning) else ()
        around = estimate_request(ModelRequest((), "\n\n".join(part.text for part in event.system), tools))
        compactor = Compactor(
            tree=scope.get(SessionTree),
            side=scope.get(SideModel),  # type: ignore[type-abstract]  # looked up by its protocol
            notices=scope.get(Notices),  # type: ignore[type-abstract]  # the same
            config=self.config,
            target=scope.find(Model),  # type: ignore[type-abstract]  # the same
            around=around,
        )
        try:
            await compactor.run_if_due(event.turn_id, within_turn=event.step > 1)
        except ModelError as error:
            log.warning("session %r was not compacted, it goes on whole: %s", scope.session_id, error_text(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Compacts one session, which is held for writing.

    target  the model that is to see the result; None where it is not known
    around  the estimate of system text and tools
    """

    tree: SessionTree
    side: SideModel
    notices: Notices
    config: CompactionConfig
    target: Model | None = None
    around: int = 0

    async def run_if_due(self, turn: str | None, *, within_turn: bool) -> bool:
        """Compact if a limit is reached; whether it was done. Raises `ModelError` when no usable summary came."""
        self._truncate_arguments()
        await self._note_answered()
        view, size = self.tree.view(), self.size()
        reason = trigger(self.config, size, view, self.limit)
        window = self._window(self.target)
        fits = window is None or size.tokens <= window * _SURE
        if reason is None or (fits and held_back(self.tree.path(), size, turn)):
            return False
        if self.config.mode == "discard" and within_turn and fits:
            return False  # put off until the turn has ended
        return await self.run(reason, must=not fits)

    async def _note_answered(self) -> None:
        """Note it where a request was answered that is larger than what was taken for the model's window."""
        if (model := self.target) is None:
            return
        path, place = self.tree.path(), (model.provider, model.name)
        known = capacities(path).get(place, Capacity())
        if known.window is None:
            return
        found = widened(known, answered_size(path, self.tree.view().messages, self.around, *place))
        if found is not None:
            await self.notices.notice(CAPACITY, {"provider": place[0], "model": place[1], **found.to_dict()})

    def _truncate_arguments(self) -> None:
        """Cut long arguments in old turns, where that was asked for and there is something to gain."""
        rule, view = self.config.truncate_args, self.tree.view()
        if rule is None or not truncation_due(rule, self.size()):
            return
        turn = last_to_truncate(rule, view)
        if turn is not None:
            details = {"lastTurn": turn, "maxArgLength": rule.max_arg_length, "truncationText": rule.truncation_text}
            # It is noted with the turn it is about: whoever keeps that turn in mind must look at it again.
            self.tree.add("event", {"kind": ARGUMENTS_CUT, "data": details}, turn=turn)

    async def run(self, reason: str, *, limit: int | None = None, must: bool = False) -> bool:
        """Summarise the oldest turns, for this reason; False if none can go, or nothing would be gained.

        With `must` the context shrinks even if no summary comes: then a list of the turns stands for
        it. Without, that raises `ModelError`, and nothing has changed but the log of the attempt.
        """
        size, limit = self.size(), limit or self.limit
        pressed = must or reason == "tokens"
        plan = make_plan(self.tree.view(), self.config, size, limit, pressed=pressed)
        if plan is None:
            return False
        mode = self.config.mode
        before = {"tokens": size.tokens, "messages": size.messages}
        gone = {"turns": len(plan.turns), **({"steps": True} if plan.steps_of else {})}
        await self.notices.notice("compaction_begin", {"reason": reason, "mode": mode, **gone, **before})
        try:
            summary = await self._summary(plan, size, limit, must=must)
        except ModelError as error:
            await self.notices.notice("compaction_end", {"status": "failed", "error": error_text(error), **before})
            raise
        if summary is None:
            await self.notices.notice("compaction_end", {"status": "useless", **before})
            return False
        await self._replace(plan, summary, size)
        after = self.size()
        done = {"status": "completed", **gone, **before, "tokensAfter": after.tokens, "messagesAfter": after.messages}
        await self.notices.notice("compaction_end", done)
        return True

    def size(self) -> ContextSize:
        """How large the next request would be, as far as can be told."""
        provider, name = (self.target.provider, self.target.name) if self.target else ("", "")
        return context_size(self.tree.path(), self.tree.view().messages, self.around, provider, name)

    @property
    def limit(self) -> int | None:
        """Tokens at which it is time to compact."""
        return token_limit(self.config, self._window(self.target))

    def _window(self, model: Model | None) -> int | None:
        return window_of(self.tree.path(), model.provider, model.name, model.context_window) if model else None

    # ---- the summary

    async def _summary(self, plan: Plan, size: ContextSize, limit: int | None, *, must: bool) -> Summary | None:
        """What stands for the plan's turns; None where that would be no gain."""
        view = self.tree.view()
        said, record = split_record(view.summary or "")
        record.add(record_of(plan.gone))
        if self.config.mode == "discard" and plan.steps_of is None:
            return Summary(with_record(_discarded(said, len(plan.turns)), record))
        most = self._most(limit)
        try:
            made = await self._made(plan, said, size, most)
        except ModelError as error:
            if not must:
                raise
            log.warning("no summary came (%s); a list of the turns stands for them", error_text(error))
            made = plain_summary(said, plan.gone, most)
        text = with_record(within_budget(made.text, most, "the session's history"), record)
        if self._gains(plan, text) or not (must or (limit and size.tokens >= limit)):
            return Summary(text, made.model)
        short = plain_summary(said, plan.gone, most // 4) if must else None
        return short if short and self._gains(plan, short.text) else None

    async def _made(self, plan: Plan, said: str, size: ContextSize, most: int) -> Summary:
        """A model's summary; where turns are discarded, no model is asked for the steps of an open one either."""
        if self.config.mode == "discard":
            return plain_summary(said, plan.gone, most)
        previous = self.tree.view().summary_message
        return await summarise(self.side, self.config, previous, plan.messages, self._room(size))

    def _most(self, limit: int | None) -> int:
        """Estimated tokens that a summary may have."""
        most = self.config.max_summary_tokens
        return max(min(most, limit // 4), 50) if limit else most

    def _room(self, size: ContextSize) -> int | None:
        """Estimated tokens of material that one request of the summariser may show; None for any number."""
        window = self._window(self.config.model or self.target)
        if window is None:
            return None
        answer = min(self.config.max_summary_tokens, window // 4)
        return max(int((window - answer) * 0.9 / max(size.ratio, 1.0)) - self.around - 300, 0)

    def _gains(self, plan: Plan, summary: str) -> bool:
        """Whether the summary is smaller than what it stands for."""
        view = self.tree.view()
        before = sum(map(estimate_tokens, plan.messages)) + _cost(view.summary_message)
        kept = plan.steps_of.messages[0] if plan.steps_of else None
        return estimate_tokens(f"<context_summary>\n{summary}\n</context_summary>") + 4 + _cost(kept) < before

    # ---- the boundary

    async def _replace(self, plan: Plan, summary: Summary, size: ContextSize) -> None:
        tree = self.tree
        known = _with_ratio(capacities(tree.path()), self.target, size)
        passing = _passing_of(tree) if plan.steps_of else []
        await tree.look_for_media(message for _, message in passing)
        first = plan.gone[0].id
        tree.append_compaction(
            summary=summary.text,
            first_turn=first,
            last_turn=plan.turns[-1].id if plan.turns else "",
            model=summary.model,
            tokens_before=size.tokens,
            keeps_open_turn=plan.steps_of is not None,
        )
        for data in capacity_events(known):
            tree.add("event", {"kind": CAPACITY, "data": data})
        for via, message in passing:
            tree.add_message({**message, "id": new_id()}, via=via, turn=plan.steps_of.id if plan.steps_of else None)
        await tree.commit(sync=True)


def _with_ratio(
    known: dict[tuple[str, str], Capacity], target: Model | None, size: ContextSize
) -> dict[tuple[str, str], Capacity]:
    """What is known, with the measure found by the newest request: behind the boundary nothing else tells it."""
    if target is None or size.ratio == 1.0:
        return known
    place = (target.provider, target.name)
    return {**known, place: Capacity(known.get(place, Capacity()).window, size.ratio)}


def _passing_of(tree: SessionTree) -> list[tuple[str, MessageDict]]:
    """What hooks and people put into the open turn that its remaining steps still need, with its `via`.

    That is the context behind the directive, everything a person said meanwhile, and what was put
    behind the last step.
    """
    lines = tree.path()
    opening = max(index for index, entry in enumerate(lines) if entry.id == tree.turn)
    cuts = [i for i, entry in enumerate(lines) if entry.kind == "compaction" and entry.data.get("keepsOpenTurn")]
    found = [entry for entry in lines[max([opening, *cuts]) + 1 :] if entry.kind == "message"]
    steps = [index for index, entry in enumerate(found) if entry.data.get("via") not in (*PASSING, "summary")]
    first, last = (steps[0], steps[-1]) if steps else (len(found), -1)
    kept = [
        entry
        for index, entry in enumerate(found)
        if entry.data.get("via") == "steer" or (entry.data.get("via") == "hook" and not first < index < last)
    ]
    return [(str(entry.data["via"]), entry.data["message"]) for entry in kept]


def _discarded(said: str, turns: int) -> str:
    note = f"[{turns} earlier turns are not shown any more; recall finds them]"
    older = [line for line in said.splitlines() if line.startswith("[") and "not shown any more" in line]
    return "\n".join([*older[-3:], note])


def _cost(message: MessageDict | None) -> int:
    return estimate_tokens(message) if message else 0
