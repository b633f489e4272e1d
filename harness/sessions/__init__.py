"""The two tracks of a session: its ledger, and snapshots of its state."""

from harness.sessions.cache import OpenSession, SessionCache
from harness.sessions.catalog.branching import BranchInfo, Notes
from harness.sessions.catalog.index import SessionInfo
from harness.sessions.catalog.search import SearchHit
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.sessions.catalog.usage import RequestUsage, UsageReport, UsageTotal
from harness.sessions.checking.verify import Finding, VerifyReport, verify_bytes, verify_chain, verify_session
from harness.sessions.ledger.answers import Answered
from harness.sessions.lines.anchor import Anchor
from harness.sessions.lines.digest import binding_digest, context_digest, message_digest
from harness.sessions.lines.entries import Damage, Entry, Position
from harness.sessions.lines.redact import Redactor, default_redactor, redact_texts
from harness.sessions.moving.bundle import Bundle
from harness.sessions.selection.context_at import ContextAt
from harness.sessions.snapshots.json_session import JsonSession
from harness.sessions.snapshots.memory_session import InMemorySession
from harness.sessions.snapshots.snapshot import Snapshot, SnapshotWriter, load_snapshot
from harness.sessions.snapshots.state_modules import StateModules
from harness.sessions.snapshots.workspace_session import WorkspaceSession
from harness.sessions.tree.reconcile import AppendMissing, Branch, Decision, Ignore, LedgerWins, reconcile
from harness.sessions.tree.repair import RepairReport, repair_session
from harness.sessions.tree.session_tree import SessionTree
from harness.sessions.view.cards import card_line, card_words, cards_message, numbered_line, turn_card
from harness.sessions.view.digests import result_digest
from harness.sessions.view.full_record import evidence_id, full_record, full_tokens
from harness.sessions.view.projection import OpenCall, Turn, View, cut_for, project, repairs, safe_cuts
from harness.state import Session, SessionKey, State, StateModule

__all__ = [
    "Anchor",
    "Answered",
    "AppendMissing",
    "Branch",
    "BranchInfo",
    "Bundle",
    "ContextAt",
    "Damage",
    "Decision",
    "Entry",
    "Finding",
    "Ignore",
    "InMemorySession",
    "JsonSession",
    "LedgerWins",
    "Notes",
    "OpenCall",
    "OpenSession",
    "Position",
    "Redactor",
    "RepairReport",
    "RequestUsage",
    "SearchHit",
    "Session",
    "SessionCache",
    "SessionCatalog",
    "SessionInfo",
    "SessionKey",
    "SessionTree",
    "Snapshot",
    "SnapshotWriter",
    "State",
    "StateModule",
    "StateModules",
    "Turn",
    "UsageReport",
    "UsageTotal",
    "VerifyReport",
    "View",
    "WorkspaceSession",
    "binding_digest",
    "card_line",
    "card_words",
    "cards_message",
    "context_digest",
    "cut_for",
    "default_redactor",
    "evidence_id",
    "full_record",
    "full_tokens",
    "load_snapshot",
    "message_digest",
    "numbered_line",
    "project",
    "reconcile",
    "redact_texts",
    "repair_session",
    "repairs",
    "result_digest",
    "safe_cuts",
    "turn_card",
    "verify_bytes",
    "verify_chain",
    "verify_session",
]
