"""Real conversations through the real loop: nothing a person, a model or a tool said is lost.

Every session of Claude Code and Codex with prompts is said again, prompt by prompt. Then its ledger
is counted by itself, as JSON, and compared with the manifest; and a new process continues it twice,
with one of the two tracks gone each time.
"""

import asyncio
import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from harness import HarnessAgent, RuntimeContext
from harness.testing import Adaptations, ReplayModel
from harness.tools import Toolkit
from harness.transcripts import read

SHARED = Path(os.environ.get("HARNESS_SHARED") or Path(__file__).resolve().parents[2] / "shared")
MANIFEST = SHARED / "traces" / "MANIFEST.tsv"

# What a loop cannot repeat as it was, file by file; everything else must be equal.
ADAPTED = {
    "claude/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl": Adaptations(joined=1),
    "claude/a7da6a22-facc-4fcd-8bab-f83c87862004.jsonl": Adaptations(closings=1),
    "claude/all-line-types.jsonl": Adaptations(closings=5, open_calls=1, sidechain=5),
    "claude/edge_cases.jsonl": Adaptations(closings=3, open_calls=2),
    "claude/session-3fe1b6bc.jsonl": Adaptations(joined=1),
    "claude/short.jsonl": Adaptations(closings=1),
    "claude/tool_heavy.jsonl": Adaptations(closings=2),
    "claude/nasty/torn-last-line.jsonl": Adaptations(closings=2),
    "claude/nasty/html-injection.jsonl": Adaptations(closings=1),
    "claude/nasty/parallel-out-of-order.jsonl": Adaptations(open_calls=1, orphans=1),
    "codex/all-line-types.jsonl": Adaptations(joined=1, closings=1, open_calls=1),
    "codex/rollout-2026-05-11T11-26-55-019e1625-789d-76c0-80ab-3724b5ddb799.jsonl": Adaptations(open_calls=3),
    "codex/rollout-2026-11-30T17-53-01-01a22d96-b617-7dd0-90f7-4a4b3757b3ae.jsonl": Adaptations(joined=1),
    "codex/nasty/rollout-torn-last.jsonl": Adaptations(joined=1),
}
# Answers with text that were joined into another answer with text.
JOINED_TEXTS = {
    "claude/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl": 1,
    "claude/session-3fe1b6bc.jsonl": 1,
    "codex/rollout-2026-11-30T17-53-01-01a22d96-b617-7dd0-90f7-4a4b3757b3ae.jsonl": 1,
    "codex/nasty/rollout-torn-last.jsonl": 1,
}
# What only sub-agents' lines inside the file hold: in the row, but not in the person's conversation.
SIDECHAIN = {
    "claude/all-line-types.jsonl": {"prompts": 1, "texts": 3, "calls": 1, "open": 1, "orphans": 1, "answers": 3}
}

CONTINUE = """
import asyncio, json, sys
from harness import HarnessAgent, RuntimeContext
from harness.testing import ScriptedModel

async def pictures(request):
    blocks = [block for message in request.messages for block in message.blocks if block.type == "image"]
    return [len(await request.load_media(block.media.sha256)) for block in blocks]

async def go_on(workspace, gone, sessions):
    agent = HarnessAgent.builder().name("replay").model(ScriptedModel()).workspace(workspace)
    agent = agent.without("workspace_context").build()
    seen = {}
    for session, (provider, name) in sessions.items():
        model = ScriptedModel(["Still here."], provider=provider, name=name)
        reply = await agent.call("Go on.", RuntimeContext(session_id=session, user_id="alice"), model=model)
        messages = [message.to_dict() for message in model.requests[0].messages]
        # The bytes of pictures lie beside the ledger, and are gone with it.
        sizes = [] if gone == "sessions" else await pictures(model.requests[0])
        seen[session] = {"reply": reply.text, "messages": messages, "pictures": sizes}
    await agent.aclose()
    return seen

print(json.dumps(asyncio.run(go_on(*sys.argv[1:], json.load(sys.stdin)))))
"""


def rows() -> list[dict[str, str]]:
    if not MANIFEST.is_file():
        return []
    with open(MANIFEST, encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file, delimiter="\t"))
    return [row for row in found if row["format"] in ("claude", "codex") and row["prompts"] != "0"]


NO_TRACES = f"no transcripts at {SHARED}; HARNESS_SHARED names another place"
ROWS = {row["file"]: row for row in rows()}
every_trace = pytest.mark.parametrize(
    "name",
    list(ROWS) or [pytest.param("", marks=pytest.mark.skip(reason=NO_TRACES))],
)


@dataclass(frozen=True)
class Ledger:
    """The census of a ledger, counted from its lines and nothing else."""

    entries: list[dict[str, Any]]

    @classmethod
    def load(cls, path: Path) -> "Ledger":
        return cls([json.loads(line) for line in path.read_bytes().split(b"\n") if line])

    @cached_property
    def messages(self) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["type"] == "message"]

    def blocks(self, role: str, kind: str) -> list[dict[str, Any]]:
        """The blocks of a type in a role's messages."""
        said = [entry["message"] for entry in self.messages if entry["message"]["role"] == role]
        return [block for message in said for block in message["content"] if block["type"] == kind]

    def results(self, *, synthetic: bool) -> list[str]:
        return [block["id"] for block in self.blocks("tool", "toolResult") if ("synthetic" in block) is synthetic]

    @property
    def prompts(self) -> int:
        return sum(entry["via"] == "user" for entry in self.messages)

    @property
    def texts(self) -> list[str]:
        return [block["text"] for block in self.blocks("assistant", "text") if block["text"].strip()]

    @property
    def with_text(self) -> int:
        said = [entry["message"] for entry in self.messages if entry["message"]["role"] == "assistant"]
        return sum(any(block["type"] == "text" and block["text"].strip() for block in m["content"]) for m in said)


@dataclass(frozen=True)
class Replayed:
    """One session said again."""

    row: dict[str, str]
    session: str
    model: ReplayModel
    folder: Path

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger.load(self.folder / f"{self.session}.log.jsonl")

    def count(self, column: str) -> int:
        return int(self.row[column])

    @property
    def file(self) -> Path:
        return SHARED / "traces" / self.row["file"]

    def records(self) -> Iterator[dict[str, Any]]:
        """The file's records, damage left out, sub-agents' lines too where the file is not theirs."""
        for line in self.file.read_bytes().split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and (record.get("isSidechain") is not True or self.is_sub_agents_own):
                yield record

    @property
    def is_sub_agents_own(self) -> bool:
        return self.row["sidechain_lines"] == self.row["lines"]


async def say_again(workspace: Path, session: str, row: dict[str, str]) -> Replayed:
    model = ReplayModel(read(SHARED / "traces" / row["file"]))
    agent = (
        HarnessAgent.builder()
        .name("replay")
        .model(model)
        .workspace(workspace)
        .toolkit(Toolkit(*model.tools()))
        .without("workspace_context", "file_tools", "session_tools", "memory_tools")
        .max_steps(1000)
        .build()
    )
    await model.replay(agent, RuntimeContext(session_id=session, user_id="alice"))
    await agent.aclose()
    return Replayed(row, session, model, workspace / "tenants/alice/agents/replay/sessions")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replay") / "workspace"


@pytest.fixture(scope="module")
def replays(workspace: Path) -> dict[str, Replayed]:
    if not ROWS:
        pytest.skip(NO_TRACES)

    async def all_of_them() -> dict[str, Replayed]:
        return {
            name: await say_again(workspace, f"trace-{number:02}", row)
            for number, (name, row) in enumerate(ROWS.items(), start=1)
        }

    return asyncio.run(all_of_them())


@pytest.fixture(scope="module", params=["context", "sessions"], ids=lambda track: f"without-{track}")
def continued(request: pytest.FixtureRequest, replays: dict[str, Replayed], workspace: Path) -> dict[str, Any]:
    """What a new process shows the model of each session, with one track gone."""
    copy = workspace.with_name(f"without-{request.param}")
    shutil.copytree(workspace, copy)
    shutil.rmtree(copy / "tenants/alice/agents/replay" / request.param)
    models = {replay.session: (replay.model.provider, replay.model.name) for replay in replays.values()}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CONTINUE, str(copy), request.param],
        input=json.dumps(models).encode(),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return {"track": request.param, **json.loads(done.stdout)}


def texts(messages: Iterable[dict[str, Any]], role: str) -> list[str]:
    said = [block for message in messages if message["role"] == role for block in message["content"]]
    return [block["text"] for block in said if block["type"] == "text" and block["text"].strip()]


def ids(messages: Iterable[dict[str, Any]], kind: str) -> list[str]:
    return [block["id"] for message in messages for block in message["content"] if block["type"] == kind]


def ids_of_pictures(messages: Iterable[dict[str, Any]]) -> list[str]:
    blocks = [block for message in messages for block in message["content"] if block["type"] == "image"]
    return [block["media"]["sha256"] for block in blocks]


def reasoning(messages: Iterable[dict[str, Any]]) -> list[str]:
    blocks = [block for message in messages for block in message["content"] if block["type"] == "thinking"]
    return sorted(json.dumps(block["opaque"]["data"]) for block in blocks)


def recorded_reasoning(replayed: Replayed) -> list[str]:
    """The reasoning records of the file as they stand there."""
    found = []
    for record in replayed.records():
        payload = record.get("payload")
        if isinstance(payload, dict):
            found += [payload] if record["type"] == "response_item" and payload.get("type") == "reasoning" else []
        elif record.get("type") == "assistant":
            found += [block for block in record["message"]["content"] if block["type"] == "thinking"]
    return sorted(json.dumps(item) for item in found)


def answers_with_text(replayed: Replayed) -> int:
    """Distinct messages of the model with text to read, counted in the file."""
    if replayed.row["format"] == "codex":
        return replayed.count("assistant_msgs")
    found = set()
    for record in replayed.records():
        if record.get("type") == "assistant":
            blocks = record["message"]["content"]
            if any(block["type"] == "text" and block["text"].strip() for block in blocks):
                found.add(record["message"].get("id") or record["uuid"])
    return len(found)


@every_trace
def test_the_ledger_has_the_census_of_the_manifest(name: str, replays: dict[str, Replayed]) -> None:
    replayed = replays[name]
    ledger, adapted = replayed.ledger, replayed.model.adaptations
    aside = SIDECHAIN.get(name, dict.fromkeys(["prompts", "texts", "calls", "open", "orphans", "answers"], 0))
    calls = [block["id"] for block in ledger.blocks("assistant", "toolUse")]
    results = ledger.results(synthetic=False)

    assert adapted == ADAPTED.get(name, Adaptations())
    assert ledger.prompts == replayed.count("prompts") - aside["prompts"]
    assert len(ledger.texts) == replayed.count("text_blocks") - aside["texts"]
    assert ledger.with_text == answers_with_text(replayed) - JOINED_TEXTS.get(name, 0)
    assert len(calls) == len(set(calls)) == replayed.count("tool_calls") - aside["calls"]
    assert len(results) == replayed.count("tool_results") - replayed.count("results_orphan")
    assert len(set(results) & set(calls)) == len(results) == replayed.count("results_matched")
    assert adapted.orphans == replayed.count("results_orphan") - aside["orphans"]
    assert sorted(ledger.results(synthetic=True)) == sorted(set(calls) - set(results))
    assert len(ledger.results(synthetic=True)) == replayed.count("calls_open") - aside["open"] == adapted.open_calls


@every_trace
def test_what_tools_answered_keeps_its_error_mark(name: str, replays: dict[str, Replayed]) -> None:
    recorded = [block for block in replays[name].ledger.blocks("tool", "toolResult") if "synthetic" not in block]

    assert sum(block.get("isError", False) for block in recorded) == replays[name].count("failed_results")


@every_trace
def test_reasoning_is_kept_byte_for_byte(name: str, replays: dict[str, Replayed]) -> None:
    replayed = replays[name]

    kept = reasoning(entry["message"] for entry in replayed.ledger.messages)

    assert kept == recorded_reasoning(replayed)


@every_trace
def test_pictures_are_stored_by_their_content(name: str, replays: dict[str, Replayed]) -> None:
    replayed = replays[name]
    unreadable = sum(warning.kind == "unreadable_image" for warning in read(replayed.file).warnings)

    media = [block["media"] for role in ("user", "assistant") for block in replayed.ledger.blocks(role, "image")]

    assert len(media) == replayed.count("images") - unreadable
    for picture in media:
        stored = replayed.folder / "files" / picture["sha256"][:2] / picture["sha256"]
        assert stored.stat().st_size == picture["bytes"]


@every_trace
def test_a_new_process_goes_on_from_either_track(
    name: str, replays: dict[str, Replayed], continued: dict[str, Any]
) -> None:
    replayed = replays[name]
    said = [entry["message"] for entry in replayed.ledger.messages]
    shown = continued[replayed.session]["messages"]

    assert continued[replayed.session]["reply"] == "Still here."
    assert texts(shown, "user") == [*texts(said, "user"), "Go on."]
    assert texts(shown, "assistant") == texts(said, "assistant")
    assert ids(shown, "toolUse") == ids(said, "toolUse")
    assert sorted(ids(shown, "toolResult")) == sorted(ids(said, "toolResult"))


def test_pictures_are_there_for_the_model_in_a_new_process(
    replays: dict[str, Replayed], continued: dict[str, Any]
) -> None:
    shown = continued[replays["claude/4379d1bf-ccb1-414e-a856-9791b73f3af2.jsonl"].session]

    assert len(ids_of_pictures(shown["messages"])) == 1
    assert shown["pictures"] == ([] if continued["track"] == "sessions" else [395728])


def test_signed_reasoning_goes_back_to_the_model_that_made_it(
    replays: dict[str, Replayed], continued: dict[str, Any]
) -> None:
    replayed = replays["claude/session-3fe1b6bc.jsonl"]

    shown = reasoning(continued[replayed.session]["messages"])

    assert len(shown) == 65
    assert shown == recorded_reasoning(replayed)
