"""One rule for the keys of `--json`: a command's own are snake_case, what is stored is shown as it is stored."""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from driver import harness, within

WHO = "--workspace ws --agent notes --user alice"
LEDGER = "ws/tenants/alice/agents/notes/sessions/monday.log.jsonl"
# Fields that hold what is stored, or what was read from a file: messages, usage, lines of a ledger.
STORED = {"messages", "usage", "abandoned_usage", "attempts", "turns", "system", "tools", "options"}
# Fields whose keys are data: names of models, of sessions, of what was left out or taken out.
NAMED = {"by_model", "by_session", "left_out", "checks", "hits"}
COMMANDS = [
    "chat --session monday --message hi", "sessions list", "sessions show monday", "sessions search rains",
    "sessions seen monday", "sessions verify monday", "sessions verify", "sessions repair monday",
    "sessions turns monday", "sessions branches monday", "sessions branch monday --turn 1",
    "sessions fork monday --to copy", "sessions labels monday", "sessions rename monday title",
    "sessions compact monday", "sessions switch-model monday offline", "sessions handoff monday",
    "sessions export monday --out new.zip", "sessions import monday.zip --as copy --take-over",
    "sessions import-java", "sessions delete monday --yes", "sessions usage --requests", "sessions show nowhere",
]  # fmt: skip
FILES = [
    "transcripts list ws", "transcripts search rains ws", f"transcripts show {LEDGER}", f"transcripts stats {LEDGER}",
    f"transcripts convert {LEDGER} --to markdown --redact", f"transcripts import {LEDGER} --as new --workspace ws",
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for message in ("It rains.", '/tool read_file {"path":"nope.txt"}'):
        within("chat", *WHO.split(), "--session", "monday", "--message", message, cwd=tmp_path)
    within("sessions", "export", "monday", "--out", "monday.zip", *WHO.split(), cwd=tmp_path)
    return tmp_path


def keys_of(value: Any) -> Iterator[str]:
    """The keys that a command made."""
    if isinstance(value, list):
        for item in value:
            yield from keys_of(item)
    elif isinstance(value, dict):
        for name, held in value.items():
            yield name
            if name in NAMED and isinstance(held, dict):
                yield from keys_of([*held.values()])
            elif name not in STORED:
                yield from keys_of(held)


def check(output: str) -> None:
    keys = {*keys_of(json.loads(output))}
    assert keys
    assert [key for key in sorted(keys) if not re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", key)] == []
    assert ":null" not in output


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_names_its_own_fields_in_snake_case(here: Path, line: str) -> None:
    check(within(*shlex.split(line), *WHO.split(), "--json", cwd=here).stdout)


@pytest.mark.parametrize("line", FILES, ids=lambda line: line.split()[1])
def test_so_does_one_about_files(here: Path, line: str) -> None:
    check(harness(*shlex.split(line), "--json", cwd=here).stdout)


def test_what_is_stored_is_shown_as_it_is_stored(here: Path) -> None:
    shown = json.loads(within("sessions", "show", "monday", *WHO.split(), "--json", cwd=here).stdout)
    [failed] = [block for message in shown["messages"] for block in message["content"] if block["type"] == "toolResult"]
    assert failed["isError"] is True
    counted = json.loads(within("sessions", "usage", "--requests", *WHO.split(), "--json", cwd=here).stdout)
    assert "cacheRead" in counted["requests"][0]["usage"]
    assert "cache_read" in counted["billed"]
