"""Taking over a session of the Java harness: its messages are logged as if they had been said here."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from harness.messages import MessageDict
from harness.sessions.moving.java_workspace import JavaSession
from harness.sessions.tree.session_tree import SessionTree
from harness.sessions.view.turns import SUMMARY_MARK

__all__ = ["log_java_session"]

_log = logging.getLogger("harness.sessions")
_VIA = {"user": "user", "assistant": "model", "tool": "tool", "system": "hook"}


async def log_java_session(tree: SessionTree, session: JavaSession, policy: str) -> list[str]:
    """Write a session into the empty ledger of `tree`, which is locked; returns what a person should know.

    The header names the files and their digests as `importedFrom`. What the model saw there, it sees here: where
    there was a summary, or a memory shorter than the transcript, a boundary stands. Where an error is raised, none of
    it was written, so that the next call takes over all of it.
    """
    try:
        text = _add_all(tree, session, policy)
        await tree.commit(sync=True)
    except BaseException:
        tree.take_back()
        raise
    _log.info("%s", text)
    return [text, *session.warnings]


def _add_all(tree: SessionTree, session: JavaSession, policy: str) -> str:
    tree.describe(imported_from={"type": "java", "files": session.sources}, policy=policy)
    if session.summary and not session.kept:
        tree.add_message(_summary_message(session.summary), via="summary")
    ids = [
        tree.add_message(said.message, via=_VIA[said.message["role"]], media=said.media) for said in session.messages
    ]
    for entry in session.others:
        tree.add("custom", {"kind": "java", "data": entry})
    for module, value in session.states.items():
        tree.add("state", {"module": module, "value": value})
    _add_boundary(tree, session, ids)
    return f"session {tree.session_id!r}: {len(ids)} messages were taken over from the files of the Java harness"


def _summary_message(summary: str) -> MessageDict:
    text = f"<context_summary>\n{summary}\n</context_summary>"
    return {"role": "user", "content": [{"type": "text", "text": text}], "meta": {SUMMARY_MARK: True}}


def _add_boundary(tree: SessionTree, session: JavaSession, ids: Sequence[str]) -> None:
    """Before the turn in which what the model saw begins; turns stay whole."""
    turns = tree.view().turns
    first = ids[session.kept] if session.kept < len(ids) else None
    before = next((n for n, turn in enumerate(turns) if first in turn.entry_ids), len(turns))
    if session.kept and before:
        tree.append_compaction(session.summary, turns[0].id, turns[before - 1].id, None, None)
