"""Taking secrets out of a session that is to be shared, by key and by pattern, with a report.

The rules of `sessions.redact` come first; keys and patterns of the caller are added to them. Pictures
are not looked into.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.errors import ConfigError
from harness.sessions.lines.assigned import assignments_to, without_values
from harness.sessions.lines.json_text import changed_within
from harness.sessions.lines.redact import REDACTED, default_redactor
from harness.transcripts.reader import Transcript
from harness.transcripts.stats import Counts
from harness.transcripts.turns import Turn

__all__ = ["Redaction", "RedactionReport", "redact_transcript"]

_DEFAULT = "default"
_PATTERN = "pattern:"
_HEAD = ("title", "weak_title", "cwd", "branch", "model", "parent", "forked_from", "harness")
# Who speaks must stay, and by what media find their bytes.
_NAMING = frozenset({"role", "sha256"})
# What says of what kind a thing is must stay too, where the kind is one that is known here.
_KINDS = {
    "type": frozenset(
        {
            *("text", "thinking", "toolUse", "toolResult", "event"),
            *("image", "audio", "video", "file"),
            "unreadable_image",
        }
    ),
    "mediaType": frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "text/plain"}),
}
# The fields of messages and blocks; in a block that nobody here knows, other names are those of strangers.
_FIELDS = frozenset(
    {
        *("content", "text", "input", "name", "media", "opaque", "url", "id", "provider", "model", "stop", "partial"),
        *("isError", "exitCode", "kind", "data", "bytes", "type", "mediaType", *_HEAD),
    }
)
# What we counted ourselves is nobody's secret, whatever digits it has.
_COUNTED = frozenset({"usage", "more"})


@dataclass(frozen=True, slots=True)
class Redaction:
    """What to take out of an export.

    keys      names whose values go, in arguments and records of any depth, in JSON that stands in text, and in
              `name: value` or `--name value` in any other; letter case does not count
    patterns  regular expressions whose matches go, wherever there is text: in names of members, of models, of kinds
              that nobody here knows and of the file that was read, in ids, in warnings and in the numbers of arguments
              too. An id that held one becomes another, everywhere the same.
    defaults  also what `sessions.redact.default_redactor` knows: keys and tokens of well-known forms
    """

    keys: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    defaults: bool = True

    @property
    def rules(self) -> tuple[str, ...]:
        """The names under which the report counts."""
        named = (*(f"key:{key}" for key in self.keys), *(f"{_PATTERN}{pattern}" for pattern in self.patterns))
        return (_DEFAULT, *named) if self.defaults else named


@dataclass(frozen=True, slots=True)
class RedactionReport:
    """What was taken out: hits by rule, and by the key of the turn they were in (`head` for the title and the like)."""

    rules: tuple[str, ...]
    hits: Mapping[str, int] = field(default_factory=dict)
    turns: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"rules": list(self.rules), "hits": dict(self.hits), "turns": dict(self.turns)}

    def told(self) -> dict[str, Any]:
        """The JSON form that goes along with an export: patterns by number, since one may be the secret itself."""
        patterns = [rule for rule in self.rules if rule.startswith(_PATTERN)]
        names = {rule: f"{_PATTERN}{number}" for number, rule in enumerate(patterns, 1)}
        hits = {names.get(rule, rule): count for rule, count in self.hits.items()}
        return {"rules": [names.get(rule, rule) for rule in self.rules], "hits": hits, "turns": dict(self.turns)}


def redact_transcript(transcript: Transcript, redaction: Redaction) -> tuple[Transcript, RedactionReport]:
    """The session without what the rules take out. Raises `ConfigError` for a pattern that is none."""
    worker = _Worker(redaction)
    turns = tuple(worker.turn(turn) for turn in transcript.turns)
    about = transcript.about
    shown = worker.value(
        "head", {name: text for name in _HEAD if isinstance(text := getattr(about, name), str) and text}
    )
    made = replace(
        transcript,
        session_id=worker.id(transcript.session_id),
        named=worker.value("head", {"text": transcript.file_name})["text"],
        turns=turns,
        whole=None,
        about=replace(about, **shown),
        counts=worker.counts(transcript.counts),
        warnings=tuple(replace(each, **worker.value("head", {"text": each.text})) for each in transcript.warnings),
    )
    return made, RedactionReport(redaction.rules, dict(+worker.hits), dict(worker.turns))


class _Worker:
    """One pass over one session; it exists to carry the counts."""

    def __init__(self, redaction: Redaction) -> None:
        self.hits: Counter[str] = Counter()
        self.turns: Counter[str] = Counter()
        self._defaults = redaction.defaults
        self._keys = {key.casefold(): f"key:{key}" for key in redaction.keys}
        self._patterns = [(f"{_PATTERN}{text}", _compiled(text)) for text in redaction.patterns]
        self._assigned = [(f"key:{key}", assignments_to(key)) for key in redaction.keys]
        self._ids: dict[str, str] = {}

    def turn(self, turn: Turn) -> Turn:
        made = self.value(turn.key, turn.message)
        for block, before in zip(made.get("content", ()), turn.blocks, strict=True):
            if isinstance(opaque := block.get("opaque"), dict) and opaque != before["opaque"]:
                # Of no use to its maker any more, and not to be sent.
                block["opaque"] = {**opaque, "altered": True}
        return turn._replace(message=made)

    def value(self, place: str, value: dict[str, Any]) -> dict[str, Any]:
        before = self.hits.total()
        found = value
        if self._defaults:
            found = default_redactor(value)
            self.hits[_DEFAULT] += _marks(found) - _marks(value)
        if self._keys or self._patterns:
            found = self._object(found, named=True)
        if done := self.hits.total() - before:
            self.turns[place] += done
        self.hits += Counter()  # rules that found nothing are not listed
        return found

    def _object(self, value: Mapping[str, Any], *, named: bool = False) -> dict[str, Any]:
        """`named` says that the fields are ours: a block or a message, in which no key of the caller means anything."""
        made = {}
        for key, item in value.items():
            rule = None if named else self._keys.get(key.casefold())
            if rule is not None and item not in (None, "", REDACTED):
                self.hits[rule] += 1
                made[key] = REDACTED
            elif named and (_is_kept(key, item) or not isinstance(item, str | Mapping | list)):
                made[key] = item
            elif named and key == "id" and isinstance(item, str):
                made[key] = self.id(item)
            else:
                name = key if named and key in _FIELDS else self._name(key, made)
                made[name] = self._member(item, named=named and key in ("content", "media"))
        return made

    def _member(self, item: Any, *, named: bool) -> Any:
        if isinstance(item, str):
            return self._text(item)
        if isinstance(item, dict):
            return self._object(item, named=named)
        if isinstance(item, list):
            return [self._member(member, named=named) for member in item]
        if type(item) not in (int, float):
            return item
        # A number of strangers that holds what a pattern takes out is none any more.
        return item if self._patterned(repr(item)) == repr(item) else REDACTED

    def id(self, name: str) -> str:
        """An id; one that holds what a pattern takes out is another, so that results still find their calls."""
        if name not in self._ids:
            is_clean = self._patterned(name) == name
            self._ids[name] = name if is_clean else f"redacted-{len(self._ids) + 1}"
        return self._ids[name]

    def counts(self, counts: Counts) -> Counts:
        """The census, with the names of models as they may be said."""
        models = {self._patterned(name): None for name in counts.models}
        return replace(counts, models=models, model=self._patterned(counts.model) if counts.model else counts.model)

    def _name(self, key: str, taken: Mapping[str, Any]) -> str:
        """The name of a member; two that become alike are told apart."""
        made = self._patterned(key)
        return made if made == key or made not in taken else f"{made}#{len(taken) + 1}"

    def _patterned(self, text: str) -> str:
        for rule, pattern in self._patterns:
            text, times = pattern.subn(REDACTED, text)
            self.hits[rule] += times
        return text

    def _text(self, text: str) -> str:
        text = self._patterned(changed_within(text, lambda value: self._member(value, named=False)))
        for rule, assignments in self._assigned:
            text, times = without_values(text, assignments)
            self.hits[rule] += times
        return text


def _is_kept(key: str, item: Any) -> bool:
    """Whether a field of ours stays whatever the patterns are."""
    return key in _NAMING or key in _COUNTED or (key in _KINDS and isinstance(item, str) and item in _KINDS[key])


def _compiled(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigError(f"{text!r} is no regular expression: {error}; correct it or leave it out") from None
    if pattern.match(""):
        raise ConfigError(f"{text!r} matches where nothing is; make it match at least one character")
    return pattern


def _marks(value: Any) -> int:
    """How often the sign of something taken out stands in a value."""
    if isinstance(value, str):
        return value.count(REDACTED)
    members: Iterable[Any] = ()
    if isinstance(value, Mapping):
        members = value.values()
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        members = value
    return sum(_marks(member) for member in members)
