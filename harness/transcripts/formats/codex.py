"""Codex rollouts, in their three generations: bare items, payload lines, numbered payload lines.

A `response_item` is what the model saw, an `event_msg` is what the screen showed of it. Items are
read; events only where a rollout has no items of that kind, for token counts, exit codes and a name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.transcripts import blocks
from harness.transcripts.assembly import Assembly
from harness.transcripts.blocks import BlockDict
from harness.transcripts.formats.base import Format, Place, Verdict, Where
from harness.transcripts.formats.codex_assembly import CodexAssembly
from harness.transcripts.formats.codex_results import exit_code, output_blocks
from harness.transcripts.lines import Record
from harness.transcripts.pieces import Reader, Subagent

__all__ = ["FORMATS", "CodexFormat", "CodexReader", "unwrap"]

_TYPES = frozenset(
    {
        *("session_meta", "turn_context", "response_item", "event_msg", "compacted"),
        *("token_usage_record", "world_state", "inter_agent_communication_metadata"),
    }
)
_CALLS = frozenset(
    {
        *("function_call", "custom_tool_call", "local_shell_call"),
        *("web_search_call", "tool_search_call", "tool_call"),
    }
)
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result"})
# Not the model's answer to the person: other agents' talk, snapshots, pictures made elsewhere.
_SILENT = frozenset({"agent_message", "ghost_snapshot", "image_generation_call"})
_ITEMS = _CALLS | _RESULTS | _SILENT | {"message", "reasoning"}
# A tag of the harness has - or _ in its name; `skill` is the one that has not.
_CONTEXT = re.compile(r"\s*(?:</?[A-Za-z0-9]*[-_]|<skill>|# AGENTS\.md instructions for)")
_STILL_RUNNING = "Process running with session ID"
_MIRRORS = {"user_message": "user", "agent_message": "assistant", "agent_reasoning": "reasoning"}
_COMPLETED = {"UserMessage": "user", "AgentMessage": "assistant"}


def unwrap(record: Record) -> tuple[str, Record]:
    """A line's type and payload; a bare item of the first generation is its own payload."""
    kind, payload = record.get("type"), record.get("payload")
    if isinstance(payload, dict):
        return str(kind), payload
    if isinstance(kind, str) and kind in _ITEMS:
        return "response_item", record
    return ("session_meta", record) if "instructions" in record else (str(kind), {})


class CodexReader(Reader):
    """Reads the lines of one rollout."""

    def record(self, record: Record) -> None:
        """See `Reader`."""
        kind, payload = record.get("type"), record.get("payload")
        if type(payload) is not dict:
            kind, payload = unwrap(record)
        at = self.saw_time(record.get("timestamp"))
        if kind == "response_item":
            self._item(at, payload)
        elif kind == "event_msg":
            self._event(at, payload)
        elif kind == "turn_context":
            self._context(at, payload)
        elif kind == "compacted":
            self.counts.compactions += 1
            self.piece("compaction", [blocks.text(blocks.text_of(payload.get("message")))], at)
        elif kind == "session_meta":
            self._meta(at, payload)
        elif str(kind) not in _TYPES and "record_type" not in record:
            self.warn("unknown_record", f"type {str(kind)[:80]!r} is not known")

    def _context(self, at: str | None, payload: Record) -> None:
        self.counts.saw_model(payload.get("model"))
        self.about.cwd = blocks.word(payload.get("cwd")) or self.about.cwd
        self.note("state", {"model": blocks.word(payload.get("model"))}, at)

    def _meta(self, at: str | None, payload: Record) -> None:
        source = payload.get("source")
        spawned = source.get("subagent") if isinstance(source, dict) else None
        if payload.get("thread_source") == "subagent" or spawned is not None:
            self.warn("subagent", "the rollout of a sub-agent, not of a conversation with a person")
        found = blocks.word(payload.get("id"))
        forked = blocks.word(payload.get("forked_from_id"))
        self.note("meta", {"provider": blocks.word(payload.get("model_provider")), "forked": forked is not None}, at)
        if self.about.session_id is not None or found is None:
            return
        self.about.session_id = found
        self.about.cwd = blocks.word(payload.get("cwd")) or self.about.cwd
        self.about.forked_from = forked
        self.about.parent = blocks.word(payload.get("parent_thread_id")) or _spawner(spawned)
        git = payload.get("git")
        self.about.branch = blocks.word(git.get("branch")) if isinstance(git, dict) else None

    def _event(self, at: str | None, payload: Record) -> None:
        kind = blocks.text_of(payload.get("type"))
        if kind == "token_count":
            self.note("usage", payload.get("info"), at)
        elif kind == "exec_command_end":
            self.note("exit", (payload.get("call_id"), payload.get("exit_code")), at)
        elif kind == "task_started":
            self.note("task", None, at)
        elif kind == "thread_name_updated":
            self.about.title = blocks.word(payload.get("thread_name")) or self.about.title
        elif kind == "web_search_end":
            self._mirror("web_search", [_search(self.place(), payload)], at)
        elif kind in _MIRRORS:
            shown = blocks.text_of(payload.get("text" if kind == "agent_reasoning" else "message"))
            self._mirror(_MIRRORS[kind], [blocks.text(shown)], at)
        elif kind == "item_completed":
            self._completed(payload.get("item"), at)
        elif kind == "collab_agent_spawn_end" and (child := blocks.word(payload.get("new_thread_id"))):
            self.about.subagents.append(Subagent(child, call=blocks.word(payload.get("call_id"))))

    def _completed(self, item: object, at: str | None) -> None:
        role = _COMPLETED.get(str(item.get("type"))) if isinstance(item, dict) else None
        if role is not None and isinstance(item, dict):
            self._mirror(role, [blocks.text(_text_of(item))], at)

    def _mirror(self, role: str, content: list[BlockDict], at: str | None) -> None:
        """What the screen showed; only used where no item says it."""
        if content[0]["type"] != "text" or content[0]["text"].strip():
            self.note(f"mirror:{role}", None, at, content)

    def _item(self, at: str | None, item: Record) -> None:
        kind = blocks.text_of(item.get("type"))
        if kind == "message":
            self._message(at, item)
        elif kind == "reasoning":
            parts = [*blocks.items(item.get("summary")), *blocks.items(item.get("content"))]
            shown = "\n\n".join(blocks.text_of(part.get("text")) for part in parts if isinstance(part, dict))
            block = {"type": "thinking", "text": shown, "opaque": {"data": self.settled(item)}}
            self.piece("answer", [block], at, note="reasoning")
        elif kind in _CALLS:
            self.piece("answer", [self._call(item)], at, note="web_search" if kind == "web_search_call" else "call")
        elif kind in _RESULTS:
            self._result(at, item)
        elif kind not in _SILENT:
            self.warn("unknown_record", f"item of type {kind[:80]!r} is not known")

    def _message(self, at: str | None, item: Record) -> None:
        role = item.get("role")
        said = [self._said(part) for part in blocks.items(item.get("content")) if isinstance(part, dict)]
        if role == "assistant":
            self.counts.assistant_msgs += 1
            self.piece("answer", said, at, note="assistant")
            return
        is_context = bool(_CONTEXT.match(_text_of(item)))
        is_typed = role == "user" and not is_context
        note = "context" if is_context else str(role)
        self.piece("prompt" if is_typed else "context", said, at, note=note)
        self.counts.prompts_lt += role == "user" and not _text_of(item).lstrip().startswith("<")

    def _said(self, part: BlockDict) -> BlockDict:
        if part.get("type") == "input_image":
            return self.image(blocks.image_from_url(part.get("image_url"), whole=self.cap is None))
        found = part.get("text")
        return blocks.text(found) if isinstance(found, str) else self.unknown(part)

    def _call(self, item: Record) -> BlockDict:
        key = blocks.word(item.get("call_id")) or blocks.word(item.get("id")) or self.place()
        name = blocks.word(item.get("name")) or str(item["type"]).removesuffix("_call")
        given: object = item.get("arguments")
        for field in ("input", "action"):
            given = item.get(field) if given is None else given
        return blocks.call_block(key, name, self.settled(given) if isinstance(given, dict) else given)

    def _result(self, at: str | None, item: Record) -> None:
        key = blocks.word(item.get("call_id")) or blocks.text_of(item.get("id"))
        output = item.get("output", item.get("tools"))
        content = output_blocks(output, whole=self.cap is None)
        code = exit_code(output)
        failed = bool(code) or (isinstance(output, dict) and output.get("success") is False)
        # Where the output has no word of its own, the event's counts, unless the command still runs.
        is_unknown = code is None and not failed and _STILL_RUNNING not in blocks.text_of(output)
        block = blocks.result_block(key, content, failed=failed, exit_code=code)
        self.piece("results", [block], at, data="unknown" if is_unknown else None)


class CodexFormat(Format):
    """See the module."""

    name = "codex"
    title = "Codex"
    assembly: type[Assembly] = CodexAssembly

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        kind = record.get("type")
        if not isinstance(kind, str):
            if "record_type" in record:
                return Verdict.CERTAIN
            return Verdict.LIKELY if {"id", "timestamp", "instructions"} <= record.keys() else Verdict.NO
        if isinstance(record.get("payload"), dict):
            if kind in ("response_item", "turn_context", "compacted"):
                return Verdict.CERTAIN
            return Verdict.LIKELY if kind in _TYPES and kind != "session_meta" else _meta_verdict(kind, record)
        if kind == "message":
            return Verdict.LIKELY if "role" in record and "content" in record else Verdict.NO
        return Verdict.CERTAIN if kind in _ITEMS else Verdict.NO

    def suits(self, path: Path) -> bool:
        """See `Format`."""
        return path.name.startswith("rollout")

    def reader(self, cap: int | None) -> CodexReader:
        """See `Format`."""
        return CodexReader(cap)

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        root = where.folder("CODEX_HOME", ".codex")
        pattern = "rollout-*.jsonl"
        return [Place(root / "sessions", f"*/*/*/{pattern}"), Place(root / "archived_sessions", pattern)]


FORMATS = (CodexFormat(),)


def _meta_verdict(kind: str, record: Record) -> Verdict:
    payload = record["payload"]
    if kind != "session_meta" or ("session_id" in payload and "system_prompt" in payload):
        return Verdict.NO
    return Verdict.LIKELY


def _spawner(spawned: object) -> str | None:
    found = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    return blocks.word(found.get("parent_thread_id")) if isinstance(found, dict) else None


def _text_of(item: Record) -> str:
    parts = blocks.items(item.get("content"))
    return "\n".join(blocks.text_of(part.get("text")) for part in parts if isinstance(part, dict))


def _search(key: str, payload: Record) -> BlockDict:
    found = blocks.word(payload.get("call_id")) or key
    return blocks.call_block(found, "web_search", {"query": blocks.text_of(payload.get("query"))})
