"""The agent: its builder, the call, and the loop."""

from __future__ import annotations

from harness.agent.agent import HarnessAgent
from harness.agent.builder import AgentBuilder
from harness.agent.call import Call
from harness.agent.config import AgentConfig, StateFactory
from harness.agent.stream import StreamEvent
from harness.agent.tenant_sessions import TenantSessions
from harness.agent.user_removal import UserRemoval

__all__ = [
    "AgentBuilder",
    "AgentConfig",
    "Call",
    "HarnessAgent",
    "StateFactory",
    "StreamEvent",
    "TenantSessions",
    "UserRemoval",
]
