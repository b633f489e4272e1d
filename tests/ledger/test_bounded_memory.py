"""Large sessions, and lines that are too large to be any, take little memory, whatever is asked of them (B47)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import exists

from harness.sessions import SessionTree

pytestmark = pytest.mark.skipif(not exists(Path("/proc/self/status")), reason="Linux tells the peak of a process")

MOST = 200
"""MB that a process may take; 40 are Python and the library. The list may be counting behind what is asked for."""
TURNS, LINE, OUTPUT = 60, 900_000, 8_000_000


def sessions_of(workspace: Path) -> Path:
    return workspace / "tenants/alice/agents/notes/sessions"


def add_turn(tree: SessionTree, number: int, text: str) -> None:
    blocks = [{"type": "text", "text": text[place : place + 200_000]} for place in range(0, len(text), 200_000)]
    tree.add_message({"id": f"u{number}", "role": "user", "content": blocks}, via="user")
    binding = tree.bind([{"name": "prompt", "text": "Be brief."}], [], "m", "test", {})
    request = tree.begin_request("execute", 1, binding, [], tree.turn, "compaction")
    answer = [{"type": "text", "text": f"answer {number}"}]
    tree.add_message({"id": f"a{number}", "role": "assistant", "content": answer}, via="model", request=request)
    tree.end_request(request, "completed")


async def make_large(folder: Path) -> None:
    """54 MB of lines that are as large as lines may be, and 48 MB beside them; the model sees the last turns."""
    tree = SessionTree(folder, "large", agent="notes", namespace=("alice",), durability="none")
    async with tree.writing():
        for number in range(TURNS):
            add_turn(tree, number, f"{number} needle " * (LINE // 10))
            if number % 10 == 9:
                output = {"type": "text", "text": f"{number} output " * (OUTPUT // 10)}
                tree.add_message({"id": f"o{number}", "role": "user", "content": [output]}, via="user")
                turns = tree.view().turns
                tree.append_compaction("They talked.", turns[0].id, turns[-1].id, "m", 1000)
            await tree.commit(sync=False)
        add_turn(tree, TURNS, "the last needle")


async def make_damaged(folder: Path) -> None:
    """A few turns, with 40 MB in one line between them and 40 MB of a line that was never finished behind them."""
    tree = SessionTree(folder, "damaged", agent="notes", namespace=("alice",), durability="none")
    async with tree.writing():
        for number in range(5):
            add_turn(tree, number, f"needle {number}")
    ledger = folder / "damaged.log.jsonl"
    lines = ledger.read_bytes().split(b"\n")
    said = {"id": "m", "role": "user", "content": [{"type": "text", "text": "needle " * 6_000_000}]}
    huge = json.dumps({"type": "message", "id": "x", "seq": 9, "prevHash": "0" * 64, "message": said, "via": "user"})
    ledger.write_bytes(
        b"\n".join([*lines[:8], huge.encode(), *lines[8:]]) + b'{"type":"message","x":"' + b"y" * 40_000_000
    )


def asked(workspace: Path, session: str, root: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("bounded.py")
    done = subprocess.run(
        [sys.executable, str(script), str(workspace), session],
        env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
async def test_a_session_of_a_hundred_megabytes_is_never_held_at_once(workspace: Path, root: Path) -> None:
    folder = sessions_of(workspace)
    folder.mkdir(parents=True)
    await make_large(folder)
    assert (folder / "large.log.jsonl").stat().st_size > 50_000_000
    found = asked(workspace, "large", root)
    assert found.pop("peak") < MOST
    assert found == {
        "list": ["large"], "call": "done", "verify": [], "history": ["on", "done"], "read": 130, "search": 5,
        "branches": 1, "labels": {}, "usage": 62, "export": "large", "repair": True, "fork": "copy",
        "taken over": "large", "show": 0,
    }  # fmt: skip


@pytest.mark.slow
async def test_a_line_of_40_megabytes_is_stepped_over_and_named(workspace: Path, root: Path) -> None:
    folder = sessions_of(workspace)
    folder.mkdir(parents=True)
    await make_damaged(folder)
    found = asked(workspace, "damaged", root)
    assert found.pop("peak") < MOST
    assert found == {
        "list": ["damaged"], "call": "done", "verify": ["foreign"], "history": ["on", "done"], "read": 12, "search": 5,
        "branches": 1, "labels": {}, "usage": 6, "export": "damaged", "repair": False, "show": 0,
    }  # fmt: skip
