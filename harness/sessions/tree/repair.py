"""Making anew what can be made anew. The ledger is never edited: what is lost there stays reported.

Context file, anchor and the entry in the list of sessions are made from the ledger. A new anchor makes
a cut end look right, so a line in the ledger says first what was missing. Damaged copies are renamed, so that
their bytes stay for a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.filesystem import disk, pool
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.sessions.checking.findings import VerifyReport
from harness.sessions.checking.verify import verify_session
from harness.sessions.lines.anchor import read_anchor
from harness.sessions.lines.layout import Owner
from harness.sessions.tree.session_tree import SessionTree

__all__ = ["RepairReport", "repair_session"]

_MADE = ("the context file was made anew", "the anchor was made anew", "the entry in the list was made anew")


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was done, in sentences, and what checking found before and after."""

    done: tuple[str, ...]
    before: VerifyReport
    after: VerifyReport

    @property
    def ok(self) -> bool:
        """Whether there is no error left."""
        return self.after.ok

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "ok": self.ok,
            "done": list(self.done),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }


async def repair_session(tree: SessionTree, owner: Owner, catalog: SessionCatalog) -> RepairReport:
    """Repair a session whose lock `tree` holds. Raises `PersistenceError`."""
    before = await pool.run(verify_session, tree.files, owner)
    done: list[str] = []
    lines = tree.count
    await tree.rebuild(lambda: done.extend(_set_aside(tree, before)))
    if tree.count > lines:
        done.append(f"line {tree.count} of the ledger notes what was wrong with its end")
    await catalog.renew(tree.session_id)
    done += _MADE if done or before.findings else ["nothing wrong was found; the copies were made anew"]
    after = await pool.run(verify_session, tree.files, owner)
    return RepairReport(tuple(done), before, after)


def _set_aside(tree: SessionTree, report: VerifyReport) -> list[str]:
    """Keep what is about to be replaced where it says something else than the ledger, or is no file."""
    files = tree.files
    wrong = {path: "was no file" for path in (files.context, files.anchor) if not disk.is_file_or_nothing(path)}
    if any(finding.kind == "context" for finding in report.findings):
        wrong.setdefault(files.context, "differs from the ledger")
    if disk.mark(files.anchor) and read_anchor(files.anchor) is None:
        wrong.setdefault(files.anchor, "could not be read")
    return [f"{path.name} {what}; kept as {disk.set_aside(path).name}" for path, what in wrong.items()]
