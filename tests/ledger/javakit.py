"""Writes workspaces as the Java harness does: its file names, its key order, its repetitions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def text(number: int, role: str, words: str, name: str | None = None) -> Message:
    return message(number, role, [{"type": "text", "text": words}], name)


def message(number: int, role: str, content: list[dict[str, Any]], name: str | None = None) -> Message:
    return {
        "id": f"m-{number}", "name": name, "role": role, "content": content, "metadata": {},
        "timestamp": f"2026-01-02 03:04:{number:02}.678",
    }  # fmt: skip


def tool_call(number: int, call: str, name: str, arguments: dict[str, Any], words: str = "") -> Message:
    use = {"type": "tool_use", "id": call, "name": name, "input": arguments, "content": json.dumps(arguments), "metadata": {}}  # fmt: skip
    first = [{"type": "text", "text": words}] if words else []
    return message(number, "ASSISTANT", [{"type": "thinking", "thinking": "hm", "metadata": None}, *first, use], "bot")


def tool_result(number: int, call: str, name: str, words: str) -> Message:
    output = [{"type": "text", "text": words}]
    return message(number, "TOOL", [{"type": "tool_result", "id": call, "name": name, "output": output, "metadata": {}}], "bot")  # fmt: skip


def summary(number: int, words: str) -> Message:
    said = f"The conversation so far was compacted.\n<summary>\n{words}\n</summary>"
    return text(number, "USER", said, "__compaction_summary__")


class Java:
    """One agent of a Java workspace; a user's transcripts go to the user's folder, memory never does."""

    def __init__(self, workspace: Path, agent: str = "notes", user: str | None = None) -> None:
        self.workspace = workspace
        self.context = workspace / "agents" / agent / "context"
        self.sessions = (workspace / user if user else workspace) / "agents" / agent / "sessions"
        self._ids = 0

    def remember(self, session: str, messages: Sequence[Message], folder: Path | None = None) -> None:
        place = (folder or self.context) / session
        place.mkdir(parents=True, exist_ok=True)
        (place / "memory_messages.jsonl").write_bytes(lines(messages))
        (place / "memory_messages.hash").write_text("459a6186")
        (place / "agent_meta.json").write_text('{\n  "id" : "6f",\n  "name" : "bot",\n  "systemPrompt" : null\n}')

    def offload(self, session: str, messages: Sequence[Message]) -> None:
        """What the Java harness does after every call: the whole memory once more, under new ids."""
        self.sessions.mkdir(parents=True, exist_ok=True)
        raw = lines(self._entries(session, messages), precise=True)
        for suffix in (".log.jsonl", ".jsonl"):
            with (self.sessions / (session + suffix)).open("ab") as file:
                file.write(raw)

    def add_line(self, session: str, raw: bytes) -> None:
        for suffix in (".log.jsonl", ".jsonl"):
            with (self.sessions / (session + suffix)).open("ab") as file:
                file.write(raw)

    def state(self, session: str, name: str, value: dict[str, Any]) -> None:
        (self.context / session / f"{name}.json").write_text(json.dumps(value, indent=2))

    def _entries(self, session: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for each in messages:
            self._ids += 1
            entry = {"type": "message", "id": f"e-{session}-{self._ids}"}
            entry |= {"parentId": entries[-1]["id"]} if entries else {}
            entry |= {"timestamp": 1767323045.5 + self._ids, "role": each["role"], "content": rendered(each)}
            calls = [block["id"] for block in each["content"] if block["type"] in ("tool_use", "tool_result")]
            entry |= {"toolCallId": calls[0]} if calls else {}
            entries.append(entry)
        return entries


def rendered(each: Message) -> str:
    return "\n".join(words for block in each["content"] if (words := _block(block)))


def _block(block: dict[str, Any]) -> str:
    if block["type"] == "text":
        return block["text"]
    if block["type"] == "tool_use":
        arguments = json.dumps(block["input"], separators=(",", ":"), ensure_ascii=False)
        return f"[tool_call: {block['name']}({arguments[:500] + '...' if len(arguments) > 500 else arguments})]"
    if block["type"] == "tool_result":
        words = block["output"][0]["text"]
        return f"[tool_result: {block['name']}] {words[:1000] + '...(truncated)' if len(words) > 1000 else words}"
    return ""


def lines(values: Sequence[dict[str, Any]], *, precise: bool = False) -> bytes:
    raw = "".join(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values)
    return (raw.replace(".5,", ".500000000,") if precise else raw).encode()


def tree_bytes(folder: Path) -> dict[str, bytes]:
    """Every file but ours."""
    ours = folder / "tenants"
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_relative_to(ours)}
