"""The reader on the page on file formats reads every kind of ledger that this library writes."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness import CompactionConfig, HarnessAgent, RuntimeContext, WorkingSet
from harness.sessions import SessionTree
from harness.testing import ScriptedModel
from harness.transcripts import read
from harness.transcripts.importing import import_transcript

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "file-formats.md").read_text("utf-8")
READER = next(
    code for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if "def read_ledger" in code
)
ALICE = RuntimeContext(session_id="s-1", user_id="alice")


def read_as_the_page_says(folder: Path) -> dict[str, Any]:
    """What the page's code finds in `s-1`, up to its comparison with the conversation on the page."""
    names: dict[str, Any] = {"folder": folder}
    code, _, last = READER.rpartition("assert said == ")
    assert last.startswith("[prompt, answer]")
    exec("from pathlib import Path\n" + code, names)
    return names


def agent_in(workspace: Path, answers: int, **options: Any) -> HarnessAgent:
    builder = HarnessAgent.builder().name("notes").model(ScriptedModel([f"answer {n}" for n in range(answers)]))
    for name, value in options.items():
        getattr(builder, name)(value)
    return builder.without("workspace_context").workspace(workspace).build()


def folder_in(workspace: Path) -> Path:
    return workspace / "tenants" / "alice" / "agents" / "notes" / "sessions"


async def test_it_reads_a_session_that_was_taken_over_from_another_harness(tmp_path: Path) -> None:
    transcript = read(ROOT / "tests" / "data" / "transcripts" / "vak" / "vak-demo.jsonl")
    tree = SessionTree(tmp_path, "s-1", agent="notes", namespace=("alice",))
    made = await import_transcript(transcript, tree)
    names = read_as_the_page_says(tmp_path)
    assert len(names["said"]) == made.messages + made.harness_texts > 0
    assert any(message["role"] == "assistant" for message in names["said"])
    origin = names["ledger"][0]["importedFrom"]
    assert (sorted(origin), origin["format"]) == (["file", "format", "session", "sha256"], "vak")


@pytest.mark.parametrize(
    "half", [b'{"type":"message","id":"half', b"[" * 100_000, bytes(60)], ids=["cut", "deep", "zeros"]
)
async def test_it_steps_over_half_a_line_that_a_crash_left(tmp_path: Path, half: bytes) -> None:
    async with agent_in(tmp_path, 1) as agent:
        await agent.call("one", ALICE)
    with (folder_in(tmp_path) / "s-1.log.jsonl").open("ab") as file:
        file.write(half)
    other = RuntimeContext(session_id="s-1", user_id="alice")
    async with agent_in(tmp_path, 1) as agent:
        await agent.call("two", other)
    said = read_as_the_page_says(folder_in(tmp_path))["said"]
    assert [message["content"][0]["text"] for message in said] == ["one", "answer 0", "two", "answer 0"]


@pytest.mark.parametrize(
    "options",
    [{"compaction": CompactionConfig(trigger_messages=6, keep_messages=2)}, {"working_set": WorkingSet()}],
    ids=["compaction", "working_set"],
)
async def test_it_reads_what_was_said_however_it_was_shown(tmp_path: Path, options: dict[str, Any]) -> None:
    async with agent_in(tmp_path, 40, **options) as agent:
        for number in range(12):
            await agent.call(f"question {number}", ALICE)
    said = read_as_the_page_says(folder_in(tmp_path))["said"]
    assert [m["content"][0]["text"] for m in said if m["role"] == "user"] == [f"question {n}" for n in range(12)]
    assert len(said) == 24


async def test_the_context_behind_a_boundary_has_the_digest_that_the_page_describes(tmp_path: Path) -> None:
    async with agent_in(tmp_path, 40, compaction=CompactionConfig(trigger_messages=6, keep_messages=2)) as agent:
        for number in range(4):
            await agent.call(f"question {number}", ALICE)
    lines = read_as_the_page_says(folder_in(tmp_path))["ledger"]
    boundary = next(line for line in lines if line["type"] == "compaction" and line["boundary"])
    begun = next(line for line in lines if line["type"] == "request_begin" and line["seq"] > boundary["seq"])
    binding = next(line for line in lines if line["id"] == begun["binding"])
    assert begun["purpose"] == "execute"
    summary = {
        "id": boundary["id"],
        "role": "user",
        "content": [{"type": "text", "text": f"<context_summary>\n{boundary['summary']}\n</context_summary>"}],
        "meta": {"contextSummary": True},
    }
    kept = boundary["lastTurn"]
    turns = [line for line in lines if line["type"] == "message" and line["via"] in ("user", "model", "tool")]
    done = {line["requestId"] for line in lines if line["type"] == "request_end" and line["status"] == "completed"}
    after = [
        line["message"]
        for line in turns
        if line["turnId"] > kept and line["seq"] < begun["seq"] and line.get("requestId") in {None, *done}
    ]
    named = {
        "system": [{"name": part["name"], "sha256": part["sha256"]} for part in binding["system"]],
        "tools": [{"name": part["name"], "sha256": part["sha256"]} for part in binding["tools"]],
        **{key: binding[key] for key in ("model", "provider", "options")},
    }
    shown = "".join(f"{_digest(value)}\n" for value in (named, summary, *after))
    assert hashlib.sha256(shown.encode()).hexdigest() == begun["contextDigest"]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
