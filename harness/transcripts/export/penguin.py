"""penguin-harness traces: envelopes, one file (shard) for each context, or all of them in one stream.

A compaction ends a shard; the next one begins with its summary. Times that are not known are left
out. What a provider sealed is left out too: the format has no place that says whose it is.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from harness.filesystem import disk
from harness.text import dumps
from harness.transcripts.blocks import BlockDict
from harness.transcripts.export.base import (
    Rendered,
    Target,
    conversation,
    json_lines,
    media_of,
    nothing_said,
    safe_name,
    spoken,
    text_of,
)
from harness.transcripts.export.redacting import RedactionReport
from harness.transcripts.formats.penguin import id_in_file
from harness.transcripts.reader import Transcript
from harness.transcripts.turns import Turn

__all__ = ["ENVELOPES_TARGET", "TARGET", "render", "render_envelopes"]

_OWN = frozenset({"thinking", "inline_thinking"})
_NO_OUTPUT = "[no output]"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TAGS = re.compile(r"[\[<]/?context_summary[\]>]")
Envelope = dict[str, Any]


def render(transcript: Transcript, _redaction: RedactionReport | None) -> Rendered:
    """The shards, in a folder of the day on which the session began."""
    writer = _Writer(transcript)
    name = safe_name(transcript.session_id)
    day = f"{transcript.head.first_ts[:10]}/" if transcript.head.first_ts else ""
    shards = list(writer.shards())
    says_nothing = [len(shard) for shard in shards] == [1]
    files = {f"{day}{name}_{number:03d}.jsonl": json_lines(shard) for number, shard in enumerate(shards, 1)}
    return Rendered(files, dict(+writer.left_out), says_nothing)


def render_envelopes(transcript: Transcript, _redaction: RedactionReport | None) -> Rendered:
    """All contexts in one file, one behind the other."""
    writer = _Writer(transcript)
    lines = [line for shard in writer.shards() for line in shard]
    return Rendered({"": json_lines(lines)}, dict(+writer.left_out), says_nothing=len(lines) == 1)


def _earlier(place: Path, rendered: Rendered) -> Iterator[str]:
    """The shards of this session, of whatever day: where there were more of them, those would go on as its end."""
    session = PurePosixPath(next(iter(rendered.files))).name.rpartition("_")[0]
    shard = re.compile(rf"{re.escape(session)}_\d{{3,}}\.jsonl")
    days = [f"{item.name}/" for item in disk.list_folder(place) if item.is_dir and _DAY.fullmatch(item.name)]
    for day in ["", *days]:
        yield from (f"{day}{item.name}" for item in disk.list_folder(place / day) if shard.fullmatch(item.name))


_HOLDS = frozenset({"queued marks", "compaction marks", "message usage", "sealed reasoning"})
TARGET = Target("penguin", "penguin-harness shards", ".traces", render, _HOLDS, is_folder=True, earlier=_earlier)
ENVELOPES_TARGET = Target(
    "penguin-envelopes", "penguin-harness envelopes", ".envelopes.jsonl", render_envelopes, _HOLDS
)


class _Writer:
    """One pass over one session; it exists to carry the totals and what was left out."""

    def __init__(self, transcript: Transcript) -> None:
        self.left_out: Counter[str] = Counter()
        self._transcript = transcript
        self._media = media_of(transcript)
        self._total = dict.fromkeys(("cache_read", "cache_write", "output", "total"), 0)
        self._in_context = 0

    def shards(self) -> Iterator[list[Envelope]]:
        """The contexts, each with its own first line."""
        told = conversation(self._transcript.turns, self.left_out)
        runs = [(is_cut, list(run)) for is_cut, run in groupby(told, key=lambda turn: turn.kind == "compaction")]
        shard = [self._meta(self._transcript.head.first_ts or None)]
        for number, (is_cut, run) in enumerate(runs, 1):
            if not is_cut:
                shard += [line for turn in run for line in self._turn(turn)]
                continue
            summary, is_last = self._summary(run), number == len(runs)
            shard += self._bracket(run[0].at, summary if is_last else "")
            if is_last:  # no shard is begun before something follows
                break
            yield shard
            shard = [
                self._meta(run[-1].at),
                _message(run[-1].at, type="text", role="user", text=summary, sender="harness"),
            ]
            self._in_context = 0
        yield shard

    def _summary(self, run: list[Turn]) -> str:
        """What stood for older messages, each text once."""
        texts = [_TAGS.sub("", text_of(turn.blocks, self.left_out)).strip() for turn in run]
        joined = "\n\n".join(dict.fromkeys(text for text in texts if text))
        return f"[context_summary]\n{joined}\n[/context_summary]"

    def _bracket(self, at: str | None, summary: str) -> Iterator[Envelope]:
        why = {"reason": "context", "mode": "summarize"}
        yield _event(at, "compaction_begin", **why, context=self._in_context, turns=1)
        if summary:
            yield _message(at, type="text", role="assistant", text=summary)
        yield _event(at, "compaction_end", **why, status="completed")

    def _meta(self, at: str | None) -> Envelope:
        head = self._transcript.head
        named = [turn.message for turn in self._transcript.turns if turn.message.get("model")]
        payload = {
            "session_id": safe_name(self._transcript.session_id),
            "provider": str(named[-1].get("provider", "unknown")) if named else "unknown",
            "model_id": head.model or "unknown",
            "model_context_window": "unknown",
            "system_prompt": "",
            "agent_state": "",
            "workspace": head.cwd,
        }
        return _envelope(at, "session_meta", payload)

    def _turn(self, turn: Turn) -> Iterator[Envelope]:
        if turn.kind == "answer":
            yield from self._request(turn)
        elif turn.kind in ("results", "orphan"):
            yield from (self._output(turn.at, block) for block in turn.of_type("toolResult"))
        elif turn.kind in ("prompt", "queued"):
            yield from self._prompt(turn)
        elif text := text_of(turn.blocks, self.left_out):
            yield _message(turn.at, type="text", role="user", text=text, sender="harness")
        else:
            self.left_out["empty"] += 1

    def _prompt(self, turn: Turn) -> Iterator[Envelope]:
        """A picture is a message of its own there."""
        said = spoken(turn.blocks, self.left_out)
        text = text_of((block for block in said if block["type"] != "image"), self.left_out)
        pictures = [self._picture(block) for block in turn.of_type("image")]
        if text and turn.kind == "queued":
            text = f"[user_steering]{text}[/user_steering]"
        if text:
            yield _message(turn.at, type="text", role="user", text=text, sender="user")
        else:
            self.left_out["queued marks"] += turn.kind == "queued"
        yield from (_message(turn.at, role="user", **picture) for picture in pictures)

    def _request(self, turn: Turn) -> Iterator[Envelope]:
        """One request and what came of it; an answer that was logged is one that came to its end."""
        said = spoken(turn.blocks, self.left_out)
        if not said:
            nothing_said(turn, self.left_out)
            return
        model = turn.message.get("model")
        self.left_out["other models"] += model is not None and model != self._transcript.head.model
        yield _event(turn.at, "request_begin")
        yield from (_message(turn.at, role="assistant", **self._block(block)) for block in said)
        yield _event(turn.at, "request_end", status="completed")
        if usage := turn.message.get("usage"):
            request = {"cache_read": usage.get("cacheRead", 0), "cache_write": usage.get("cacheWrite", 0)}
            request["output"] = usage.get("output", 0)
            request["total"] = sum(request.values()) + usage.get("input", 0)
            self._in_context = request["total"]
            self._total = {name: self._total[name] + request[name] for name in self._total}
            yield _event(turn.at, "token_usage", session=self._total, request=request)

    def _block(self, block: BlockDict) -> dict[str, Any]:
        kind = block["type"]
        if kind == "thinking":
            return self._thinking(block)
        if kind == "toolUse":
            given = dumps(block["input"]).decode()
            return {
                "type": "tool_call",
                "name": block["name"],
                "arguments": given,
                "tool_call_id": self._call_id(block),
            }
        if kind == "image":
            return self._picture(block)
        return {"type": "text", "text": text_of([block], self.left_out)}

    def _call_id(self, block: BlockDict) -> str:
        return id_in_file(block["id"]) if self._transcript.format == "penguin" else str(block["id"])

    def _thinking(self, block: BlockDict) -> dict[str, Any]:
        opaque = block.get("opaque")
        data = opaque.get("data") if isinstance(opaque, dict) and not opaque.get("altered") else None
        is_ours = self._transcript.format == "penguin" and isinstance(data, dict) and data.get("type") in _OWN
        if is_ours and isinstance(data, dict):
            return {name: value for name, value in data.items() if name != "role"}
        self.left_out["sealed reasoning"] += isinstance(opaque, dict)
        return {"type": "thinking", "thinking": block["text"]}

    def _output(self, at: str | None, block: BlockDict) -> Envelope:
        found = block.get("content")
        content = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        text = text_of((item for item in content if item.get("type") != "image" or not self._url(item)), self.left_out)
        self.left_out["empty results"] += not text
        urls = [url for item in content if item.get("type") == "image" and (url := self._url(item))]
        payload = {
            "type": "tool_call_output",
            "role": "user",
            "output": text or _NO_OUTPUT,
            "tool_call_id": self._call_id(block),
            "stop_reason": "failed" if block.get("isError") is True else "completed",
        }
        return _message(at, **payload, **({"images": urls} if urls else {}))

    def _picture(self, block: BlockDict) -> dict[str, Any]:
        url = self._url(block)
        if url:
            return {"type": "image_url", "image_url": url}
        return {"type": "text", "text": text_of([block], self.left_out)}

    def _url(self, block: BlockDict) -> str | None:
        """A picture's own bytes as an address, or the address it was named by."""
        media = block.get("media")
        if isinstance(media, dict) and (data := self._media.get(str(media.get("sha256")))) is not None:
            return f"data:{media['mediaType']};base64,{base64.b64encode(data).decode()}"
        url = block.get("url")
        return url if isinstance(url, str) else None


def _event(at: str | None, kind: str, **fields: Any) -> Envelope:
    return _envelope(at, "event_msg", {"type": kind, **fields})


def _message(at: str | None, **payload: Any) -> Envelope:
    return _envelope(at, "model_msg", payload)


def _envelope(at: str | None, kind: str, payload: dict[str, Any]) -> Envelope:
    return {**({"timestamp": at} if at else {}), "type": kind, "payload": payload}
