"""Claude Code JSONL: a session that Claude Code, and every tool that reads its files, can open.

Each message is one line, whatever number of blocks it has, so that nobody counts its tokens twice.
Reasoning that another provider sealed is written without its seal, which would mean nothing there.
"""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from harness.transcripts.blocks import BlockDict
from harness.transcripts.export.base import (
    Rendered,
    Target,
    UniqueNames,
    json_lines,
    media_of,
    nothing_said,
    spoken,
    text_of,
)
from harness.transcripts.export.redacting import RedactionReport
from harness.transcripts.formats.claude import PROVIDER, ClaudeFormat, is_harness_text
from harness.transcripts.reader import Transcript
from harness.transcripts.turns import Turn

__all__ = ["TARGET", "render"]

_SPACE = uuid.UUID("8c6b1f0e-6f0b-5d43-9a52-0c8f6a0e6f11")
_VERSION = "2.0.0"
_STOPS = {"stop": "end_turn", "length": "max_tokens"}
_OWN_BLOCKS = frozenset({"thinking", "redacted_thinking"})


def render(transcript: Transcript, _redaction: RedactionReport | None) -> Rendered:
    """See the module."""
    writer = _Writer(transcript)
    made = json_lines(writer.lines())
    return Rendered({"": made}, dict(+writer.left_out), says_nothing=writer.count == 0)


_HOLDS = frozenset(
    {"queued marks", "compaction marks", "harness marks", "stop reasons", "message usage", "sealed reasoning"}
    | {"title", "branch", "sidechain"}
)
TARGET = Target("claude", "Claude Code JSONL", ".jsonl", render, _HOLDS)


class _Writer:
    """One pass over one session; it exists to carry the chain of the lines."""

    def __init__(self, transcript: Transcript) -> None:
        self.left_out: Counter[str] = Counter()
        self._transcript = transcript
        self._media = media_of(transcript)
        self._names = UniqueNames()
        self._is_native = transcript.head.harness == ClaudeFormat.title
        self.count = 0
        self._last: str | None = None
        self._session = _uuid(transcript.session_id)
        about = transcript.about
        self._common = {
            "userType": "external",
            "cwd": about.cwd or "",
            "sessionId": self._session,
            "version": _VERSION,
            "gitBranch": about.branch or "",
        }

    def lines(self) -> Iterator[dict[str, Any]]:
        about = self._transcript.about
        for kind, name, title in (("custom", "customTitle", about.title), ("ai", "aiTitle", about.weak_title)):
            if title:
                yield {"type": f"{kind}-title", name: title, "sessionId": self._session}
        told = [turn for turn in self._transcript.turns if turn.aside != "abandoned"]
        self.left_out["abandoned"] += len(self._transcript.turns) - len(told)
        for is_compaction, found in groupby(told, key=lambda turn: turn.kind == "compaction"):
            run = list(found)
            yield from self._compaction(run) if is_compaction else self._turns(run)

    def _turns(self, turns: Iterable[Turn]) -> Iterator[dict[str, Any]]:
        for turn in turns:
            if turn.kind == "answer":
                yield from self._answer(turn)
            elif turn.kind in ("results", "orphan"):
                yield from (self._user(turn, [self._result(block)]) for block in turn.of_type("toolResult"))
            elif turn.kind == "queued":
                self._taken_for_harness(turn)
                prompt = self._content(self._said(turn))
                found = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
                yield self._line("attachment", turn, attachment=found)
            elif turn.kind == "prompt":
                self._taken_for_harness(turn)
                yield self._user(turn, self._content(self._said(turn)))
            else:
                yield from self._harness_text(turn)

    def _taken_for_harness(self, turn: Turn) -> None:
        """A person's text that looks like one of Claude Code's own would be read as that, there as here."""
        self.left_out["prompts in a tag"] += any(is_harness_text(block["text"]) for block in turn.of_type("text"))

    def _harness_text(self, turn: Turn) -> Iterator[dict[str, Any]]:
        """What a harness said stands in one of its tags where it is shown to the model, else in a system line."""
        text = text_of(turn.blocks, self.left_out)
        if not text.strip():
            self.left_out["empty"] += 1
        elif turn.kind == "meta":
            yield self._line("system", turn, subtype="informational", content=text, isMeta=False, level="info")
        else:
            tagged = text if is_harness_text(text) else f"<system-reminder>\n{text}\n</system-reminder>"
            yield self._user(turn, tagged)

    def _compaction(self, run: list[Turn]) -> Iterator[dict[str, Any]]:
        """A boundary, and what stood for older messages behind it."""
        first, rest = (run[0], run[1:]) if len(run) > 1 else (None, run)
        boundary = {"subtype": "compact_boundary", "isMeta": False, "level": "info"}
        said = text_of(first.blocks, self.left_out) if first is not None else ""
        details = {"compactMetadata": {"trigger": "auto"}, "logicalParentUuid": self._last}
        self._last = None
        yield self._line("system", first or run[0], **boundary, content=said, **details)
        for turn in rest:
            marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
            yield self._user(turn, self._content(turn.blocks), **marks)

    def _said(self, turn: Turn) -> list[BlockDict]:
        """A block that Claude Code itself wrote goes back as it was; any other would be refused there."""
        return turn.blocks if self._is_native else spoken(turn.blocks, self.left_out)

    def _answer(self, turn: Turn) -> Iterator[dict[str, Any]]:
        stored, said = turn.message, self._said(turn)
        if not said:
            nothing_said(turn, self.left_out)
            return
        message: dict[str, Any] = {
            "id": self._names.of(str(stored["id"])),
            "type": "message",
            "role": "assistant",
            "model": stored.get("model") or "<synthetic>",
            "content": [self._block(block) for block in said],
            "stop_reason": _STOPS.get(str(stored.get("stop")), stored.get("stop")),
        }
        if usage := stored.get("usage"):
            message["usage"] = {
                "input_tokens": usage.get("input", 0),
                "cache_creation_input_tokens": usage.get("cacheWrite", 0),
                "cache_read_input_tokens": usage.get("cacheRead", 0),
                "output_tokens": usage.get("output", 0),
            }
        yield self._line("assistant", turn, message=message)

    def _user(self, turn: Turn, content: object, **marks: bool) -> dict[str, Any]:
        return self._line("user", turn, message={"role": "user", "content": content}, **marks)

    def _line(self, kind: str, turn: Turn, **fields: Any) -> dict[str, Any]:
        self.count += 1
        own = str(uuid.uuid5(_SPACE, f"{self._session}/{self.count}"))
        chain = {"parentUuid": self._last, "isSidechain": turn.sidechain}
        self._last = own
        when = {"timestamp": turn.at} if turn.at else {}
        return {**chain, **self._common, "type": kind, **fields, "uuid": own, **when}

    def _content(self, content: list[BlockDict]) -> object:
        """One plain text as it is, anything else as blocks."""
        if len(content) == 1 and content[0].get("type") == "text":
            return content[0]["text"]
        return [self._block(block) for block in content]

    def _result(self, block: BlockDict) -> dict[str, Any]:
        found = block.get("content")
        content = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        failed = {"is_error": True} if block.get("isError") is True else {}
        return {"type": "tool_result", "tool_use_id": block["id"], "content": self._content(content), **failed}

    def _block(self, block: BlockDict) -> dict[str, Any]:
        kind = block["type"]
        if kind == "text":
            return {"type": "text", "text": block["text"]}
        if kind == "thinking":
            return self._thinking(block)
        if kind == "toolUse":
            return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["input"]}
        if kind in ("image", "unreadable_image"):
            return self._image(block)
        return self._foreign(block)

    def _foreign(self, block: BlockDict) -> dict[str, Any]:
        if self._is_native:
            return {**block, "type": block["type"].removeprefix("foreign.")}
        return {"type": "text", "text": text_of([block], self.left_out)}

    def _thinking(self, block: BlockDict) -> dict[str, Any]:
        found = block.get("opaque")
        opaque = found if isinstance(found, dict) else {}
        data = opaque.get("data") if opaque.get("provider") == PROVIDER and not opaque.get("altered") else None
        if isinstance(data, dict) and data.get("type") in _OWN_BLOCKS:
            return data
        self.left_out["sealed reasoning"] += bool(opaque)
        return {"type": "thinking", "thinking": block["text"], "signature": ""}

    def _image(self, block: BlockDict) -> dict[str, Any]:
        media = block.get("media")
        data = self._media.get(str(media.get("sha256"))) if isinstance(media, dict) else None
        if isinstance(media, dict) and data is not None:
            encoded = base64.b64encode(data).decode()
            return {"type": "image", "source": {"type": "base64", "media_type": media["mediaType"], "data": encoded}}
        if isinstance(block.get("url"), str):
            return {"type": "image", "source": {"type": "url", "url": block["url"]}}
        self.left_out["media"] += 1
        return {"type": "image", "source": {}}


def _uuid(session_id: str) -> str:
    """The session's id where it is the kind Claude Code uses, else one made from it, the same each time."""
    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        return str(uuid.uuid5(_SPACE, session_id))
