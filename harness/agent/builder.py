"""`HarnessAgent.builder()`: every decision about an agent, each with a default that works."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from harness.agent.built_in import BuiltIn, Part, check_parts
from harness.agent.checks import callable_with, json_object, key_bytes, kind_of, positive, positive_or_none, text, whole
from harness.agent.config import AgentConfig, DiskFailure, Durability, StateFactory
from harness.agent.own_models import OwnModels
from harness.errors import ConfigError
from harness.filesystem import AbstractFilesystem, LocalFilesystem, NamespaceFactory, user_namespace
from harness.filesystem.namespaces import workspace_root
from harness.hooks import (
    CompactionConfig,
    Hook,
    HookChain,
    ToolResultEvictionConfig,
    WorkingSet,
    as_hook,
)
from harness.ids import check_id
from harness.memory import MaintenanceConfig
from harness.models import Model, RetryPolicy, ToolSpec
from harness.sessions import Session, WorkspaceSession
from harness.sessions.lines.redact import Redactor, default_redactor
from harness.text import clean, dumps
from harness.tools import Toolkit, ToolSource
from harness.tools.files import FILE_TOOLS
from harness.tools.memory import MEMORY_TOOLS
from harness.tools.sessions import SESSION_TOOLS

__all__ = ["AgentBuilder"]

A = TypeVar("A")
S = TypeVar("S")


@dataclass(slots=True)
class _Draft:
    name: str = "assistant"
    agent_id: str | None = None
    description: str = ""
    system_prompt: str = ""
    model: str | Model | None = None
    fallback_models: tuple[str | Model, ...] = ()
    model_options: dict[str, Any] = field(default_factory=dict)
    model_timeout: float | None = 120.0
    tool_timeout: float | None = 120.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_steps: int = 15
    workspace: str | os.PathLike[str] = "./workspace"
    filesystem: AbstractFilesystem | None = None
    session: Session | None = None
    namespace: NamespaceFactory = user_namespace
    require_user: bool = False
    tools: list[ToolSource] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    states: list[StateFactory] = field(default_factory=list)
    built_in: BuiltIn = field(default_factory=BuiltIn)
    durability: Durability = "commit"
    on_disk_failure: DiskFailure = "fail"
    redact: Redactor | None = None
    anchor_key: bytes | None = None
    gate_timeout: float = 30.0
    without: set[str] = field(default_factory=set)


class AgentBuilder(Generic[A]):
    """Collects decisions; `build()` checks them and makes the agent. Each method returns the builder."""

    def __init__(self, make: Callable[[AgentConfig], A]) -> None:
        self._make = make
        self._draft = _Draft()

    # ---- who

    def name(self, value: str) -> Self:
        """The agent's name for people; `assistant` by default. Without `agent_id`, paths are made from it."""
        return self._set(name=text("name", value))

    def agent_id(self, value: str) -> Self:
        """The id that paths are made from; keep it when the name changes. Raises `InvalidId`."""
        return self._set(agent_id=check_id("agent id", value))

    def description(self, value: str) -> Self:
        """What the agent is for, in a sentence; stored with its state."""
        return self._set(description=text("description", value))

    def system_prompt(self, value: str) -> Self:
        """The first part of the system text of every request."""
        return self._set(system_prompt=text("system_prompt", value))

    # ---- models

    def model(self, value: str | Model) -> Self:
        """`"provider:name"`, `"offline"`, or a `Model`. A call may name another one."""
        return self._set(model=value)

    def fallback_models(self, *values: str | Model) -> Self:
        """Models to ask, in order, when the first fails for good; each switch is an event."""
        return self._set(fallback_models=values)

    def model_options(self, **options: Any) -> Self:
        """Settings of each request by the provider's usual names: temperature, max_tokens, …

        They are logged with the request. Raises `ConfigError` for what JSON cannot hold.
        """
        return self._set(model_options=json_object("model_options", options))

    def model_timeout(self, seconds: float | None) -> Self:
        """The longest silence of a model before it counts as failed; None to wait for ever. Default 120."""
        return self._set(model_timeout=positive_or_none("model_timeout", seconds))

    def retry(self, policy: RetryPolicy) -> Self:
        """How often, and after what wait, a request is sent again. Default: 4 tries, from 1 s, doubling."""
        return self._set(retry=kind_of("retry", policy, RetryPolicy, "RetryPolicy(attempts=…)"))

    def max_steps(self, value: int) -> Self:
        """Requests a turn may make before it is asked to close with a summary. Default 15."""
        return self._set(max_steps=whole("max_steps", value))

    # ---- places

    def workspace(self, path: str | os.PathLike[str]) -> Self:
        """The folder of everything; made on the first write. Default `./workspace`. Links to it are followed once."""
        if not isinstance(path, str | Path):
            path = os.fsdecode(kind_of("workspace", path, os.PathLike, "the path of a folder"))
        if not str(path).strip():
            raise ConfigError("workspace is blank; give a folder, or leave it out for ./workspace")
        return self._set(workspace=path)

    def filesystem(self, value: AbstractFilesystem) -> Self:
        """Where the tenants' files are; tenants get their part of it. Default: the workspace on disk."""
        given = kind_of("filesystem", value, AbstractFilesystem, "a filesystem such as LocalFilesystem(folder)")
        return self._set(filesystem=given)

    def session(self, store: Session) -> Self:
        """The store of track 1; a call may name another one. Default: the workspace."""
        return self._set(session=kind_of("session", store, Session, "a store such as JsonSession(folder)"))

    def namespace(self, factory: NamespaceFactory) -> Self:
        """From a call's context to its tenant. Default: one tenant a user."""
        return self._set(namespace=callable_with("namespace", factory, 1, "a function from a context to its tenant"))

    def require_user(self, value: bool = True) -> Self:
        """Refuse calls without a user id."""
        return self._set(require_user=value)

    def durability(self, value: Durability) -> Self:
        """`commit`: synced when a request completes (default); `every`: at each write; `none`: never."""
        if value not in ("commit", "every", "none"):
            raise ConfigError(f"durability is {value!r}; it can be 'commit', 'every' or 'none'")
        return self._set(durability=value)

    def redact(self, redactor: Redactor | bool = True) -> Self:
        """Take secrets out of everything before it is stored. Off unless asked for: the model is shown what is stored.

        True stands for `default_redactor`, which knows keys, tokens and passwords; or give a function of
        your own, made with `redact_texts` perhaps. What the caller of a call gets is not changed.
        """
        if isinstance(redactor, bool):
            return self._set(redact=default_redactor if redactor else None)
        return self._set(
            redact=callable_with("redact", redactor, 1, "True, False, or a function from a dict to a dict")
        )

    def anchor_key(self, key: str | bytes) -> Self:
        """A secret of at least 16 bytes that signs the anchors: a ledger written anew, end and all, then shows.

        Off unless asked for. Sessions from before are reported until their next call, which notes it. Keep the key
        where who can write the workspace cannot read it; docs/sessions.md says what it proves. Raises `ConfigError`.
        """
        return self._set(anchor_key=key_bytes("anchor_key", key))

    def on_disk_failure(self, value: DiskFailure) -> Self:
        """When a turn cannot be stored: `fail` ends the call (default), `continue` answers with a warning.

        What was not stored is tried again until the call ends; after that it is lost, and
        `call.warnings` has said so.
        """
        if value not in ("fail", "continue"):
            raise ConfigError(f"on_disk_failure is {value!r}; it can be 'fail' or 'continue'")
        return self._set(on_disk_failure=value)

    def gate_timeout(self, seconds: float) -> Self:
        """How long a call waits for another one on its session before `SessionBusy`. Default 30."""
        return self._set(gate_timeout=positive("gate_timeout", seconds))

    # ---- capabilities

    def tool(self, function: ToolSource) -> Self:
        """One more tool: a typed function, a `Tool`, or an object with `@tool` methods."""
        return self.tools(function)

    def tools(self, *sources: ToolSource) -> Self:
        """More tools."""
        self._draft.tools.extend(sources)
        return self

    def toolkit(self, toolkit: Toolkit) -> Self:
        """The tools and groups of a toolkit; the toolkit itself is not changed."""
        return self.tools(toolkit)

    def tool_timeout(self, seconds: float | None) -> Self:
        """The longest a tool may take that names no timeout itself; None for no limit. Default 120."""
        return self._set(tool_timeout=positive_or_none("tool_timeout", seconds))

    def hook(self, hook: Any, priority: int | None = None) -> Self:
        """A hook: an object with `on_event`, or a function of one event (with its priority, default 100)."""
        self._draft.hooks.append(as_hook(hook, priority))
        return self

    def hooks(self, *hooks: Any) -> Self:
        """More hooks."""
        for hook in hooks:
            self.hook(hook)
        return self

    def state_module(self, factory: StateFactory) -> Self:
        """A state module, usually its class: each call gets one of its own, filled from what was stored."""
        self._draft.states.append(callable_with("state_module", factory, 0, "what makes one, usually its class"))
        return self

    def compaction(self, config: CompactionConfig | None = None) -> Self:
        """Compact long conversations by themselves. Off unless asked for; an overflow is met in any case."""
        return self._built_in(compaction=_settings("compaction", config, CompactionConfig))

    def working_set(self, config: WorkingSet | None = None) -> Self:
        """Choose what each request shows of closed turns: in full, as a line each, or behind a summary.

        None is hidden for good. Instead of `compaction`, not beside it.
        """
        return self._built_in(working_set=_settings("working_set", config, WorkingSet))

    def tool_result_eviction(self, config: ToolResultEvictionConfig | None = None) -> Self:
        """How large a tool's result may be before its middle is left out. On by default: 80 000 characters."""
        return self._built_in(eviction=_settings("tool_result_eviction", config, ToolResultEvictionConfig))

    def memory_flush(self) -> Self:
        """After each reply, extract facts into the tenant's daily file: one more model request a turn.

        Now and then they are taken into MEMORY.md; see `memory_maintenance`.
        """
        maintenance = self._draft.built_in.maintenance or MaintenanceConfig()
        return self._built_in(memory_flush=True, maintenance=maintenance)

    def memory_maintenance(self, config: MaintenanceConfig | None = None) -> Self:
        """Take daily files into MEMORY.md, and archive old ones, behind the reply. Comes with `memory_flush`."""
        return self._built_in(maintenance=_settings("memory_maintenance", config, MaintenanceConfig))

    def max_context_tokens(self, value: int) -> Self:
        """The most that the workspace context may take of the system text, estimated. Default 8000."""
        return self._built_in(max_context_tokens=whole("max_context_tokens", value, least=0))

    def additional_context_file(self, *paths: str) -> Self:
        """Files of the tenant, or of the workspace, to show in the system text."""
        self._draft.built_in.context_files.extend(text("additional_context_file", path) for path in paths)
        return self

    def without(self, *parts: Part) -> Self:
        """Leave out built-in parts.

        There are compaction, file_tools, memory_flush, memory_maintenance, memory_tools,
        session_persistence, session_tools, tool_result_eviction, trace, working_set, workspace_context. A hook of
        your own that is made from the class of a built-in one takes its place.
        """
        check_parts(parts)
        self._draft.without.update(parts)
        return self

    # ---- making it

    def build(self) -> A:
        """The agent. Raises `ConfigError` naming what is missing or does not fit."""
        draft = self._draft
        agent_id = check_id("agent id", draft.agent_id or draft.name)
        workspace = workspace_root(draft.workspace)
        filesystem = draft.filesystem or LocalFilesystem(workspace)
        models = OwnModels()
        for config in (draft.built_in.compaction, draft.built_in.working_set):
            if config is not None and config.model is not None:
                models.resolve(config.model)
        toolkit, own_tools = self._all_tools(draft.hooks)
        built_in = draft.built_in.hooks(filesystem, draft.without, draft.hooks, own_tools)
        hooks = HookChain([*built_in, *draft.hooks])
        return self._make(
            AgentConfig(
                name=draft.name,
                agent_id=agent_id,
                description=draft.description,
                system_prompt=draft.system_prompt,
                models=models,
                model=models.resolve(self._chosen_model()),
                fallback_models=tuple(models.resolve(model) for model in draft.fallback_models),
                model_options=dict(draft.model_options),
                model_timeout=draft.model_timeout,
                tool_timeout=draft.tool_timeout,
                retry=draft.retry,
                max_steps=draft.max_steps,
                workspace=workspace,
                filesystem=filesystem,
                session=draft.session or WorkspaceSession(workspace, agent_id),
                namespace=draft.namespace,
                require_user=draft.require_user,
                toolkit=toolkit,
                tool_digests={tool.name: _digest(tool.spec) for tool in toolkit},
                hooks=hooks,
                state_factories=tuple(draft.states),
                durability=draft.durability,
                on_disk_failure=draft.on_disk_failure,
                redact=draft.redact,
                anchor_key=draft.anchor_key,
                gate_timeout=draft.gate_timeout,
                compaction=draft.built_in.compaction or CompactionConfig(),
                working_set=draft.built_in.chosen(draft.without),
                policy=draft.built_in.policy(draft.without),
            )
        )

    def _chosen_model(self) -> str | Model:
        if self._draft.model is None:
            raise ConfigError('the agent has no model; give .model("provider:name"), or "offline" to try things out')
        return self._draft.model

    def _all_tools(self, hooks: Iterable[Hook]) -> tuple[Toolkit, frozenset[str]]:
        """All tools, and the names of the user's own; one that has the name of a built-in takes its place."""
        brought = [tools() for hook in hooks if callable(tools := getattr(hook, "tools", None))]
        own = Toolkit(*self._draft.tools, *brought)
        names = frozenset(tool.name for tool in own)
        parts = {"file_tools": FILE_TOOLS, "session_tools": SESSION_TOOLS, "memory_tools": MEMORY_TOOLS}
        built_in = Toolkit(*[tools for part, tools in parts.items() if part not in self._draft.without])
        return Toolkit([tool for tool in built_in if tool.name not in names], own), names

    def _built_in(self, **values: Any) -> Self:
        for key, value in values.items():
            setattr(self._draft.built_in, key, value)
        return self

    def _set(self, **values: Any) -> Self:
        for key, value in values.items():
            setattr(self._draft, key, value)
        return self


def _digest(spec: ToolSpec) -> str:
    shown = {"description": spec.description, "parameters": clean(spec.parameters).value}
    return hashlib.sha256(dumps(shown)).hexdigest()[:16]


def _settings(what: str, given: S | None, kind: type[S]) -> S:
    return kind() if given is None else kind_of(what, given, kind, f"{kind.__name__}(…), or nothing")
