"""What each form keeps of a session, and that it tells all it does not keep: a table."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import PICTURE

from harness.transcripts import Transcript, read
from harness.transcripts.export import TARGETS, Redaction, export
from harness.transcripts.export.losses import FEATURES

DIGEST = "73e1fa0c3a11e1a6dd1b4bb1c1ef2a3e0e6a6c3ab0b7b5a1f5c1a53a7b0d5e11"
SEAL = {"provider": "elsewhere", "data": {"type": "sealed", "data": "c2VhbGVk"}}
USE = {"type": "toolUse", "id": "c1", "name": "look", "input": {"at": "shop"}}


def turn(kind: str, *content: dict[str, Any], number: int = 5, aside: str | None = None, **fields: Any) -> Any:
    roles = {"prompt": "user", "queued": "user", "answer": "assistant", "results": "tool", "orphan": "tool"}
    message = {"id": f"b{number}", "role": roles.get(kind, "system"), "content": list(content), **fields}
    named = {"aside": aside} if aside else {}
    return {"type": "turn", "kind": kind, "at": f"2026-03-01T10:00:{number:02}.000Z", "message": message, **named}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "toolResult", "id": "c1", "name": "look", "content": [text("seen")], **fields}


def made(folder: Path, *turns: Any, damage: bytes = b"", **header: Any) -> Transcript:
    """A session in the normal form: anything that can be told in it."""
    head = {"type": "transcript", "version": 1, "format": "other", "harness": "Other", "sessionId": "s1", **header}
    lines = [head, turn("prompt", text("begin"), number=1), *turns, turn("answer", text("end"), number=9, model="m-1")]
    (folder / "source").mkdir()
    path = folder / "source" / "transcript.jsonl"
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + damage)
    return read(path)


USAGE = {"input": 5, "output": 7, "cacheRead": 0, "cacheWrite": 0}
SAID: dict[str, tuple[Any, ...]] = {
    "queued marks": (turn("queued", text("hurry")),),
    "compaction marks": (turn("compaction", text("they talked")),),
    "harness marks": (turn("meta", text("a notice")),),
    "interrupted marks": (turn("answer", text("half"), partial=True),),
    "stop reasons": (turn("answer", text("too long"), stop="length"),),
    "message usage": (turn("answer", text("dear"), usage=USAGE),),
    "sealed reasoning": (turn("answer", {"type": "thinking", "text": "hm", "opaque": SEAL}, text("so")),),
    "exit codes": (turn("answer", USE), turn("results", result(exitCode=3), number=6)),
    "media": (turn("prompt", {"type": "image", "media": {"sha256": DIGEST, "mediaType": "image/png", "bytes": 8}}),),
    "foreign blocks": (turn("answer", {"type": "provider.error", "code": 500}, text("so")),),
    "other models": (turn("answer", text("first"), model="m-0"),),
    "sidechain": (turn("answer", text("hidden"), aside="sidechain"),),
    "abandoned": (turn("answer", text("dropped"), aside="abandoned"),),
    "prompts in a tag": (turn("prompt", text("<my-tag>go</my-tag>")),),
    "empty": (turn("meta"),),
}
HEADED: dict[str, dict[str, Any]] = {
    "session usage": {"tokens": {"usage": {"output": 99}, "first": 99, "naive": 99}},
    "title": {"title": "A walk"},
    "branch": {"branch": "trunk"},
    "parent session": {"parent": "p-1"},
    "sub-agents": {"subagents": [{"sessionId": "child"}]},
}
ALL_BUT = {"html", "markdown", "huggingface", "huggingface-row", "bundle", "claude", "penguin", "penguin-envelopes"}
PAGES = {"html", "markdown"}
HUB = {"huggingface", "huggingface-row"}
PENGUIN = {"penguin", "penguin-envelopes"}
TELL: dict[str, set[str]] = {
    "queued marks": HUB,
    "compaction marks": HUB,
    "harness marks": HUB | PENGUIN,
    "interrupted marks": ALL_BUT - {"bundle"},
    "stop reasons": ALL_BUT - {"bundle", "claude"},
    "message usage": PAGES | HUB,
    "sealed reasoning": ALL_BUT - {"bundle"},
    "exit codes": ALL_BUT - {"bundle"},
    "media": ALL_BUT,
    "foreign blocks": HUB | PENGUIN | {"claude", "markdown"},
    "other models": PENGUIN,
    "sidechain": HUB | PENGUIN,
    "abandoned": HUB | PENGUIN | {"claude"},
    "prompts in a tag": {"claude"},
    "session usage": PENGUIN | {"claude"},
    "title": PENGUIN,
    "branch": PENGUIN,
    "parent session": ALL_BUT - {"bundle"},
    "sub-agents": ALL_BUT - {"bundle"},
    "findings": HUB | PENGUIN | {"claude"},
}
"""Which targets say that they leave a thing out; all others keep it."""


def with_one(folder: Path, feature: str) -> Transcript:
    if feature == "findings":
        return made(folder, damage=b"{torn\n")
    return made(folder, *SAID.get(feature, ()), **HEADED.get(feature, {}))


@pytest.mark.parametrize("feature", list(TELL))
def test_each_target_tells_what_it_does_not_keep_and_nothing_else(tmp_path: Path, feature: str) -> None:
    before = with_one(tmp_path, feature)
    told = {target: dict(export(before, target, tmp_path / target).left_out) for target in TARGETS}
    assert {target for target, left in told.items() if feature in left} == TELL[feature]
    assert {name for left in told.values() for name in left} == {feature}


@pytest.mark.parametrize("target", sorted(HUB | PENGUIN | {"claude"}))
def test_an_answer_of_which_nothing_has_a_place_is_told_as_empty(tmp_path: Path, target: str) -> None:
    before = made(tmp_path, turn("answer", {"type": "provider.error", "code": 500}))
    assert export(before, target, tmp_path / "out").left_out == {"foreign blocks": 1, "empty": 1}


def test_the_table_has_all_that_is_looked_for() -> None:
    assert set(TELL) >= FEATURES


KEPT: dict[str, Callable[[Transcript], object]] = {
    "queued marks": lambda found: [turn.text for turn in found.turns if turn.kind == "queued"],
    "compaction marks": lambda found: sum(turn.kind == "compaction" for turn in found.turns),
    "harness marks": lambda found: [turn.text for turn in found.turns if turn.kind == "meta"],
    "interrupted marks": lambda found: [turn.message.get("partial") for turn in found.turns],
    "stop reasons": lambda found: {turn.message.get("stop") for turn in found.turns},
    "message usage": lambda found: [turn.message["usage"]["output"] for turn in found.turns if "usage" in turn.message],
    "sealed reasoning": lambda found: [
        block.get("opaque") for turn in found.turns for block in turn.of_type("thinking")
    ],
    "exit codes": lambda found: [b.get("exitCode") for turn in found.turns for b in turn.of_type("toolResult")],
    "foreign blocks": lambda found: [b["type"] for turn in found.turns for b in turn.blocks],
    "other models": lambda found: [turn.message.get("model") for turn in found.turns if turn.kind == "answer"],
    "sidechain": lambda found: [turn.text for turn in found.turns if turn.aside == "sidechain"],
    "abandoned": lambda found: [turn.text for turn in found.turns if turn.aside == "abandoned"],
    "prompts in a tag": lambda found: [turn.text for turn in found.turns if turn.kind == "prompt"],
    "session usage": lambda found: (found.head.usage or {}).get("output"),
    "title": lambda found: found.head.title,
    "branch": lambda found: found.head.branch,
    "parent session": lambda found: found.head.parent,
    "sub-agents": lambda found: [agent.session_id for agent in found.head.subagents],
}
READ_BACK = sorted(
    (feature, target)
    for feature in KEPT
    for target in ("bundle", "claude", "huggingface", "penguin", "penguin-envelopes")
    if target not in TELL[feature]
)


@pytest.mark.parametrize(("feature", "target"), READ_BACK)
def test_what_is_not_told_is_there_when_it_is_read_back(tmp_path: Path, feature: str, target: str) -> None:
    before = with_one(tmp_path, feature)
    made_ = export(before, target, tmp_path / target)
    back = read(made_.files[0].path if target == "penguin" else made_.out)
    assert KEPT[feature](back) == KEPT[feature](before)


ON_PAGES = {
    "queued marks": b"while the model worked",
    "compaction marks": b"Compaction",
    "harness marks": b"Harness",
    "other models": b"m-0",
    "sidechain": b"sidechain",
    "abandoned": b"abandoned",
    "session usage": b"99 output",
    "title": b"A walk",
    "branch": b"trunk",
    "findings": b"1 finding while the file was read, the first in line 4.",
}


@pytest.mark.parametrize("target", sorted(PAGES))
@pytest.mark.parametrize("feature", list(ON_PAGES))
def test_what_is_not_told_is_on_the_page(tmp_path: Path, feature: str, target: str) -> None:
    found = export(with_one(tmp_path, feature), target, tmp_path / "page").out.read_bytes()
    assert ON_PAGES[feature] in found


def test_a_redacted_bundle_tells_that_it_names_no_sub_agents(tmp_path: Path) -> None:
    before = with_one(tmp_path, "sub-agents")
    assert export(before, "bundle", tmp_path / "out", redaction=Redaction()).left_out == {"sub-agents": 1}


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_medium_whose_bytes_are_there_is_kept_where_it_can_be(tmp_path: Path, target: str) -> None:
    found = {"sha256": DIGEST, "mediaType": "image/png", "bytes": len(PICTURE), "data": PICTURE}
    before = with_one(tmp_path, "media")
    before.turns[1].blocks[0]["media"] = found
    left = export(before, target, tmp_path / "out").left_out
    assert left == ({"media": 1} if target in {"markdown", *HUB} else {})
