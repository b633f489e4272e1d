"""A session is loaded with Python's garbage collector off, and no longer than that."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SessionDamaged
from harness.sessions import SessionTree
from harness.sessions.ledger import loading
from harness.sessions.lines.layout import Owner

ROOT = Path(__file__).parents[2]
FORKED = """
import gc, os, sys
from pathlib import Path
from harness.sessions.ledger import loading
from harness.sessions.lines.layout import Owner, SessionFiles

real = loading.read_session

def forked(*args):
    if child := os.fork():
        os.waitpid(child, 0)
        print("parent", gc.isenabled())
        return real(*args)
    print("child", gc.isenabled(), flush=True)
    os._exit(0)

loading.read_session = forked
loading.load_session(SessionFiles.of(Path(sys.argv[1]), "s1"), Owner("s1", "floor", ("ann",)))
print("afterwards", gc.isenabled())
"""
ANN, BOB = Owner("s1", "floor", ("ann",)), Owner("s1", "floor", ("bob",))


@pytest.fixture
async def tree(tmp_path: Path) -> SessionTree:
    tree = SessionTree(tmp_path, "s1", agent="floor", namespace=("ann",), durability="none")
    async with tree.writing():
        tree.add_message({"id": "m1", "role": "user", "content": [{"type": "text", "text": "hi"}]}, via="user")
    return tree


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the collector was on, each time a session was read."""
    found: list[bool] = []
    real = loading.read_session

    def noted(*args: Any) -> Any:
        found.append(gc.isenabled())
        return real(*args)

    monkeypatch.setattr(loading, "read_session", noted)
    return found


@pytest.fixture
def collector_off() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_the_collector_is_off_while_a_session_is_read_and_on_afterwards(tree: SessionTree, seen: list[bool]) -> None:
    _, conversation = loading.load_session(tree.files, ANN)

    assert (seen, gc.isenabled()) == ([False], True)
    assert [message["id"] for message in conversation.view().messages] == ["m1"]


def test_it_is_on_after_a_session_that_cannot_be_read(tree: SessionTree) -> None:
    with pytest.raises(SessionDamaged):
        loading.load_session(tree.files, BOB)

    assert gc.isenabled()


@pytest.mark.usefixtures("collector_off")
def test_it_stays_off_where_somebody_else_switched_it_off(tree: SessionTree) -> None:
    loading.load_session(tree.files, ANN)

    assert not gc.isenabled()


def test_a_load_that_comes_meanwhile_does_not_prolong_it(tree: SessionTree, monkeypatch: pytest.MonkeyPatch) -> None:
    second_reads, first_ended = threading.Event(), threading.Event()
    after_first: list[bool] = []
    real = loading.read_session
    second = threading.Thread(target=loading.load_session, args=(tree.files, ANN))

    def read(*args: Any) -> Any:
        if threading.current_thread() is second:
            second_reads.set()
            first_ended.wait(10)
        else:
            second.start()
            second_reads.wait(10)
        return real(*args)

    monkeypatch.setattr(loading, "read_session", read)
    loading.load_session(tree.files, ANN)
    after_first.append(gc.isenabled())
    first_ended.set()
    second.join(10)

    assert (after_first, gc.isenabled()) == ([True], True)


def test_a_child_that_is_forked_meanwhile_has_it_on(tree: SessionTree) -> None:
    script = [sys.executable, "-c", FORKED, tree.files.folder]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "child True\nparent False\nafterwards True\n"
