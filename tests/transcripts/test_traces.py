"""Real sessions read with exactly the census of their manifest, whole and turn by turn."""

import csv
from pathlib import Path

from harness.transcripts import read

# What the manifest says about a file rather than counts in it.
NOT_COUNTED = {"file", "kind", "notes", "source"}


def rows(shared: Path) -> list[dict[str, str]]:
    with open(shared / "traces" / "MANIFEST.tsv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_every_session_has_the_census_of_its_manifest(shared: Path) -> None:
    found = rows(shared)

    differences = []
    for row in found:
        name, _, session = row["file"].partition("#")
        stats = read(shared / "traces" / name, session or None).stats()
        wrong = [column for column in row.keys() - NOT_COUNTED if str(stats.get(column)) != row[column]]
        differences += [f"{row['file']}\t{column}\tread {stats.get(column)}\tcensus {row[column]}" for column in wrong]
    print("differences from the census:", *(differences or ["none"]), sep="\n")

    assert len(found) == 46
    assert differences == []


def test_the_keys_of_stats_are_the_columns_of_the_manifest_in_its_order(shared: Path) -> None:
    row = rows(shared)[0]

    stats = read(shared / "traces" / row["file"]).stats()

    assert list(stats) == [column for column in row if column not in NOT_COUNTED]


def test_a_file_with_an_image_gives_its_bytes_under_their_digest(shared: Path) -> None:
    transcript = read(shared / "traces/claude/4379d1bf-ccb1-414e-a856-9791b73f3af2.jsonl")

    prompt = next(turn for turn in transcript.turns if turn.kind == "prompt")
    media = prompt.blocks[0]["media"]

    assert media["mediaType"] == "image/png"
    assert media["data"].startswith(b"\x89PNG\r\n")
    assert media["bytes"] == len(media["data"]) == 395728


def test_a_sub_agents_rollout_says_that_it_is_one(shared: Path) -> None:
    transcript = read(shared / "traces/codex/rollout_subagent.jsonl")

    assert [(warning.kind, warning.line) for warning in transcript.warnings] == [("subagent", 1)]


def test_withheld_reasoning_is_counted_in_a_sentence(shared: Path) -> None:
    rollout = "codex/rollout-2026-05-11T11-26-55-019e1625-789d-76c0-80ab-3724b5ddb799.jsonl"

    head = read(shared / "traces" / rollout).head

    assert head.withheld == 25
    assert head.note == "25 reasoning records without readable text: the provider withheld or encrypted it."


def test_claude_sub_agents_are_linked_to_the_calls_that_started_them(shared: Path) -> None:
    traces = shared / "traces/claude"

    told = read(traces / "ccd6173e-1877-42b7-bfac-3d0baa2f4c84.jsonl").head.subagents
    sibling = read(traces / "a7da6a22-facc-4fcd-8bab-f83c87862004.jsonl").head.subagents

    assert [(agent.session_id, agent.call, agent.title) for agent in told] == [
        ("agent-a326c2fb80e596ab9", "toolu_mock_002_0", "count files")
    ]
    assert [(agent.session_id, Path(agent.source).name, agent.call is not None) for agent in sibling] == [
        ("agent-c8d9b115", "agent-c8d9b115.jsonl", True)
    ]


def test_a_branch_that_was_left_is_marked_and_not_in_the_prompts(shared: Path) -> None:
    transcript = read(shared / "traces/pi/nasty/abandoned-branch.jsonl")

    left = [turn for turn in transcript.turns if turn.aside == "abandoned"]

    assert sum(len(turn.blocks) if turn.kind == "results" else 1 for turn in left) == 54
    assert [transcript.turns[n].kind for n in transcript.head.prompts] == ["prompt", "prompt", "prompt"]
    assert transcript.head.title == "Branched session"


def test_opencode_sessions_know_their_parents_and_children(shared: Path) -> None:
    database = shared / "traces/opencode/opencode-1.18.33-small.db"

    parent = read(database, "ses_dd2617414ffe4f3HOsq4hNZCB6").head
    child = read(database, "ses_dd2616a2affe64eWLnDbPgPoVd").head

    assert [agent.session_id for agent in parent.subagents] == ["ses_dd2616a2affe64eWLnDbPgPoVd"]
    assert parent.subagents[0].call is not None
    assert child.parent == "ses_dd2617414ffe4f3HOsq4hNZCB6"


def test_arguments_that_stand_as_text_in_a_hermes_row_are_read(shared: Path) -> None:
    transcript = read(shared / "traces/hermes/state-0.19.0-small.db", "20261130_180146_2142dc")

    calls = [block for turn in transcript.turns for block in turn.of_type("toolUse")]

    assert len(calls) == 6
    assert all(call["input"] for call in calls)


def test_files_touched_are_named(shared: Path) -> None:
    rollout = "codex/rollout-2026-05-11T11-26-55-019e1625-789d-76c0-80ab-3724b5ddb799.jsonl"

    claude = read(shared / "traces/claude/tool_heavy.jsonl").head.files
    codex = read(shared / "traces" / rollout).head.files

    assert [Path(name).name for name in claude] == ["app.js"]
    assert [Path(name).name for name in codex] == [
        *("codemie-code-reasoning.test.ts", "codemie-code.plugin.ts", "opencode.plugin.ts")
    ]
