"""Two pictures of a session as inline SVG: what happened when, and tokens per request.

Pure functions from figures to markup; every text in it is escaped, and no style or script is inline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from harness.viewer.shown import count, first_words, visible

__all__ = ["MOST_BARS", "timeline", "tokens"]

WIDTH, LANE, LEFT = 960, 26, 92
MOST_BARS = 240
"""Bars in a picture; more requests than that share bars, each showing the largest of its own."""
_HEIGHT = 200
_LANES = ("prompt", "request", "tool", "wait", "compaction")
_PARTS = (("cached", "cacheRead"), ("input", "input"), ("output", "output"))


class _Span(NamedTuple):
    """Something in a lane of the timeline, in seconds from the first moment."""

    lane: str
    start: float
    end: float
    title: str


def timeline(moments: Sequence[Mapping[str, Any]]) -> Markup:
    """Prompts, requests, tools, waiting and compactions over time; empty without two points in time."""
    spans = list(_spans(moments))
    length = max((span.end for span in spans), default=0.0)
    if length <= 0:
        return Markup()
    height = LANE * len(_LANES) + 24
    labels = [
        f'<text x="0" y="{LANE * at + 17}">{lane}s</text>'
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH}" y1="{LANE * (at + 1)}" y2="{LANE * (at + 1)}"/>'
        for at, lane in enumerate(_LANES)
    ]
    bars = [_bar(span, length) for span in _thinned(spans, length)]
    end = f'<text x="{WIDTH}" y="{height - 6}" text-anchor="end">{escape(_duration(length))}</text>'
    return _svg("Timeline of the session", height, [*labels, *bars, end])


def tokens(requests: Sequence[Mapping[str, Any]], budget: int | None = None) -> Markup:
    """Tokens of each request: from the cache, fresh and output; a line where the context window ends."""
    figures = [_figures(request["usage"]) for request in requests if isinstance(request.get("usage"), dict)]
    bars = [_largest(group) for group in _groups(figures)]
    top = max([sum(bar) for bar in bars] + [budget or 0], default=0)
    if not bars or not top:
        return Markup()
    step = (WIDTH - LEFT) / len(bars)
    drawn = [piece for at, bar in enumerate(bars) for piece in _stack(bar, LEFT + at * step, step, top)]
    axis = (
        f'<text x="0" y="12">{count(top)}</text><text x="0" y="{_HEIGHT}">0</text>'
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>'
    )
    line = _budget(budget, top) if budget else ""
    shared = "" if len(bars) == len(figures) else f", {-(-len(figures) // len(bars))} to a bar"
    label = f'<text x="{LEFT}" y="{_HEIGHT + 18}">{count(len(figures), "request")}{shared}</text>'
    return _svg("Tokens per request", _HEIGHT + 24, [axis, *drawn, line, label])


def _spans(moments: Sequence[Mapping[str, Any]]) -> Iterator[_Span]:
    """A request is the time from what was said before to the answer; waiting, from an answer to the next prompt."""
    timed = sorted((found for found in map(_timed, moments) if found), key=lambda each: each[0])
    zero = timed[0][0] if timed else 0.0
    last: tuple[str, float] | None = None
    for at, end, moment in timed:
        kind, start = str(moment.get("kind")), at - zero
        if kind == "tool":
            yield _Span("tool", start, end - zero, f"{first_words(str(moment.get('name')))}, {_duration(end - at)}")
            last = ("tool", max(end - zero, start))
            continue
        yield from _said(kind, start, last)
        last = (kind, start)


def _said(kind: str, start: float, last: tuple[str, float] | None) -> Iterator[_Span]:
    before, since = last or (kind, start)
    since = min(since, start)
    if kind in ("prompt", "queued"):
        if before == "answer":
            yield _Span("wait", since, start, f"waited {_duration(start - since)} for the person")
        yield _Span("prompt", start, start, "prompt")
    elif kind == "answer":
        yield _Span("request", since, start, f"answer after {_duration(start - since)}")
    elif kind == "compaction":
        yield _Span("compaction", start, start, "compaction")


def _timed(moment: Mapping[str, Any]) -> tuple[float, float, Mapping[str, Any]] | None:
    try:
        at = datetime.fromisoformat(str(moment.get("at"))).timestamp()
        end = datetime.fromisoformat(str(moment.get("end", moment.get("at")))).timestamp()
    except (ValueError, OverflowError):
        return None
    return at, max(at, end), moment


def _thinned(spans: Sequence[_Span], length: float) -> Sequence[_Span]:
    """Of those that would be drawn over each other the longest: no more than a lane has places."""
    kept: dict[tuple[str, int], _Span] = {}
    for span in spans:
        place = (span.lane, int(span.start / length * (WIDTH - LEFT)))
        if place not in kept or span.end - span.start > kept[place].end - kept[place].start:
            kept[place] = span
    return list(kept.values())


def _bar(span: _Span, length: float) -> str:
    scale = (WIDTH - LEFT - 3) / length
    x, width = LEFT + span.start * scale, max(3.0, (span.end - span.start) * scale)
    y = LANE * _LANES.index(span.lane) + 5
    title = f"<title>{escape(visible(span.title))}</title>"
    return f'<rect class="a-{span.lane}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LANE - 10}">{title}</rect>'


def _figures(usage: Mapping[str, Any]) -> tuple[int, ...]:
    found = {name: usage.get(name) for name in ("cacheRead", "cacheWrite", "input", "output")}
    known = {name: value if isinstance(value, int) else 0 for name, value in found.items()}
    return (known["cacheRead"], known["input"] + known["cacheWrite"], known["output"])


def _groups(figures: Sequence[tuple[int, ...]]) -> Iterator[Sequence[tuple[int, ...]]]:
    size = -(-len(figures) // MOST_BARS) or 1
    return (figures[at : at + size] for at in range(0, len(figures), size))


def _largest(group: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return max(group, key=sum)


def _stack(bar: tuple[int, ...], x: float, step: float, top: int) -> Iterator[str]:
    y = float(_HEIGHT)
    title = ", ".join(f"{value:,} {name}" for (name, _), value in zip(_PARTS, bar, strict=True))
    for (name, _), value in zip(_PARTS, bar, strict=True):
        height = value / top * (_HEIGHT - 14)
        y -= height
        if value:
            yield (
                f'<rect class="a-{name}" x="{x:.1f}" y="{y:.1f}" width="{max(1.0, step - 1):.1f}" '
                f'height="{height:.1f}"><title>{escape(title)}</title></rect>'
            )


def _budget(budget: int, top: int) -> str:
    y = _HEIGHT - budget / top * (_HEIGHT - 14)
    return (
        f'<line class="budget" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{WIDTH}" y="{y + 12:.1f}" text-anchor="end">context window {count(budget)}</text>'
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _svg(label: str, height: int, pieces: Sequence[str]) -> Markup:
    inner = "".join(pieces)
    return Markup(  # noqa: S704 - numbers, our own words, and texts that went through escape
        f'<svg class="picture-of" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">{inner}</svg>'
    )
