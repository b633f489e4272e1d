"""What a session is about, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.transcripts.blocks import says
from harness.transcripts.pieces import About, Subagent
from harness.transcripts.stats import Counts, Tokens
from harness.transcripts.touched import files_touched
from harness.transcripts.turns import Turn
from harness.transcripts.wrappers import said_by_person

__all__ = ["Head", "first_words", "head_of", "merged_subagents", "title_of"]

_TITLE = 120


@dataclass(frozen=True, slots=True)
class Head:
    """A session at a glance. Times are RFC 3339 in UTC, empty where unknown; usage None where unknown.

    prompts   where in `turns` a person speaks
    withheld  reasoning the provider kept to itself; `note` says so in a sentence
    files     what the tools read or changed, in the order of the first touch
    parent    the session that started this one, for a sub-agent
    verified  what its own chain of hashes says, for a ledger
    """

    harness: str
    title: str
    model: str
    models: tuple[str, ...]
    cwd: str
    branch: str
    first_ts: str
    last_ts: str
    usage: dict[str, int] | None
    prompts: tuple[int, ...]
    withheld: int
    files: tuple[str, ...]
    subagents: tuple[Subagent, ...]
    abandoned: int = 0
    parent: str | None = None
    forked_from: str | None = None
    verified: str | None = None

    @property
    def note(self) -> str | None:
        """A sentence about reasoning that cannot be read; None where there is none."""
        if not self.withheld:
            return None
        many = "s" if self.withheld > 1 else ""
        return f"{self.withheld} reasoning record{many} without readable text: the provider withheld or encrypted it."

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: camelCase, absent for what is not known."""
        named = {
            "harness": self.harness,
            "title": self.title,
            "model": self.model,
            "models": list(self.models),
            "cwd": self.cwd,
            "branch": self.branch,
            "firstTs": self.first_ts,
            "lastTs": self.last_ts,
            "usage": self.usage,
            "prompts": list(self.prompts),
            "withheld": self.withheld,
            "note": self.note,
            "files": list(self.files),
            "subagents": [agent.to_dict() for agent in self.subagents],
            "abandoned": self.abandoned,
            "parent": self.parent,
            "forkedFrom": self.forked_from,
            "verified": self.verified,
        }
        return {name: value for name, value in named.items() if value not in (None, "")}


def head_of(
    harness: str,
    about: About,
    counts: Counts,
    turns: Sequence[Turn],
    tokens: Tokens,
    agents: Sequence[Subagent],
) -> Head:
    """The head of a session that was read as a whole."""
    prompts = [n for n, turn in enumerate(turns) if turn.kind in ("prompt", "queued") and turn.aside is None]
    reasoning = [block for turn in turns if turn.kind == "answer" for block in turn.of_type("thinking")]
    calls = [block for turn in turns if turn.kind == "answer" for block in turn.of_type("toolUse")]
    usage = about.usage or (dict(tokens.usage) if tokens.is_known else None)
    return Head(
        harness=harness,
        title=title_of(about, (turns[n].text for n in prompts)),
        model=about.model or counts.model or "",
        models=tuple(counts.models),
        cwd=about.cwd or "",
        branch=about.branch or "",
        first_ts=counts.first,
        last_ts=counts.last,
        usage=usage,
        prompts=tuple(prompts),
        withheld=sum(not says(block) for block in reasoning),
        files=tuple(dict.fromkeys(name for block in calls for name in files_touched(block))),
        subagents=merged_subagents([*about.subagents, *agents]),
        abandoned=sum(turn.aside == "abandoned" for turn in turns),
        parent=about.parent,
        forked_from=about.forked_from,
        verified=about.verified,
    )


def title_of(about: About, prompts: Any) -> str:
    """The name somebody gave the session, else one the harness gave, else the first words of a person."""
    named = about.title or about.weak_title
    if named:
        return named.strip()[:_TITLE]
    return next((words for text in prompts if (words := first_words(text))), "")


def first_words(text: str) -> str:
    """The beginning of what a person said, on one line."""
    words = " ".join(said_by_person(text)[: _TITLE * 4].split())
    return words if len(words) <= _TITLE else words[: _TITLE - 1] + "…"


def merged_subagents(found: Sequence[Subagent]) -> tuple[Subagent, ...]:
    """One entry a session: what the calls tell and what the files tell, together."""
    known: dict[str, Subagent] = {}
    for agent in found:
        other = known.get(agent.session_id)
        known[agent.session_id] = (
            agent
            if other is None
            else Subagent(
                agent.session_id, agent.source or other.source, agent.call or other.call, agent.title or other.title
            )
        )
    return tuple(known.values())
