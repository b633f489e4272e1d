"""Where a window may begin and end, so that no turn and no call and its result are torn apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.transcripts.assembly import Span

__all__ = ["cut_after", "cut_before", "cut_from", "unsettled_from"]

_PEOPLE = frozenset({"prompt", "queued"})
_STARTS = frozenset({"prompt", "queued", "answer", "compaction"})


def cut_before(spans: Sequence[Span]) -> int | None:
    """Where a window that reaches back to the first of `spans` should begin; None if only further back.

    Results without a call, and the first answer, may belong to lines in front. At a prompt if there is one.
    """
    clean = _independent(spans)
    prompts = [span.offset for span in clean if span.kind in _PEOPLE]
    if prompts:
        return prompts[0]
    first = _first(spans)
    return next((span.offset for span in clean if first is not None and span.offset > first), None)


def cut_after(spans: Sequence[Span]) -> int | None:
    """Where a window that goes on to the last of `spans` should end; None if only further on."""
    settled = list(_swept(_closed(spans)))
    clean = [span for span, is_clean in settled if is_clean and span.offset > spans[0].offset]
    prompts = [span.offset for span in clean if span.kind in _PEOPLE]
    if prompts:
        return prompts[-1]
    return clean[-1].offset if clean else None


def cut_from(spans: Sequence[Span], wanted: int) -> int | None:
    """Where to begin so that what stands at `wanted`, and all behind it, is there whole; None if only further back."""
    first = _first(spans)
    clean = [span.offset for span in _independent(spans) if first is not None and first < span.offset <= wanted]
    return clean[-1] if clean else None


def unsettled_from(spans: Sequence[Span], end: int) -> int:
    """From where on a growing file may still change what it says: calls without a result, the last turn."""
    if not spans:
        return end
    last = max(span.offset for span in spans)
    clean = [span.offset for span, is_clean in _swept(_closed(spans)) if is_clean and span.offset <= last]
    return clean[-1] if clean else spans[0].offset


def _first(spans: Sequence[Span]) -> int | None:
    """Where the first turn stands that may have begun in front."""
    return next((span.offset for span in spans if span.kind in _STARTS), None)


def _independent(spans: Sequence[Span]) -> list[Span]:
    """Those that no span in front reaches into, behind all that belongs to lines in front of the first."""
    dangling = max((span.until for span in spans if span.kind == "orphan"), default=-1)
    return [span for span, is_clean in _swept(spans) if is_clean and span.offset > dangling]


def _closed(spans: Sequence[Span]) -> list[Span]:
    """Calls without a result reach on, unless a person has spoken since: those are hardly ever answered.

    What a person typed while the model worked closes nothing: the results are still to come.
    """
    last = max((span.offset for span in spans if span.kind == "prompt"), default=-1)
    end = max((span.until for span in spans), default=0) + 1
    return [
        Span(span.kind, span.offset, end, is_open=True) if span.is_open and span.offset > last else span
        for span in spans
    ]


def _swept(spans: Sequence[Span]) -> Iterator[tuple[Span, bool]]:
    """The spans in order, each with whether none of those in front reaches into it."""
    reached = -1
    for span in sorted(spans, key=lambda span: (span.offset, span.is_tie)):
        yield span, span.offset > reached
        reached = max(reached, span.until)
