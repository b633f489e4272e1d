"""Everything a tenant does here carries that tenant's canary; whoever sees another one's says so."""

import asyncio
import logging
import random
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from harness.agent import HarnessAgent
from harness.context import CallScope, RuntimeContext, current_scope
from harness.errors import ModelRejected
from harness.filesystem.base import AbstractFilesystem
from harness.hooks import Event, PostActing, PreActing, PreCall, PreReasoning
from harness.messages import Msg, ToolUse
from harness.models.base import Chunk, Done, ModelRequest, TextDelta
from harness.tools import tool

CANARY = re.compile(r"canary-(u\d\d\d)-\d+")
_ORDER = re.compile(r"round (\d+) of (canary-u\d\d\d-\d+): (\w+)")


class Watch:
    """Counts what was checked and keeps what crossed; shared by all calls, as a service's metrics are."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.crossings: list[str] = []
        self._lock = threading.Lock()

    def check(self, what: str, user: str, *texts: object) -> None:
        """The texts belong to this user, and this code runs in a call of this user."""
        strangers = {found for text in texts for found in CANARY.findall(str(text))} - {user}
        with self._lock:
            self.done[what] += 1
            if strangers:
                self.crossings.append(f"{what} of {user} met {sorted(strangers)}")

    def check_scope(self, what: str, user: str | None, session: str) -> None:
        """The current call is this one."""
        scope = current_scope()
        self.check_equal(what, (scope.user_id, scope.session_id, scope.namespace), (user, session, (user,)))

    def check_equal(self, what: str, found: object, expected: object) -> None:
        with self._lock:
            self.done[what] += 1
            if found != expected:
                self.crossings.append(f"{what}: {found!r} where {expected!r} was expected")


class Diary:
    """A state module that remembers canaries."""

    name = "diary"

    def __init__(self) -> None:
        self.canaries: list[str] = []

    def save(self) -> dict[str, Any]:
        return {"canaries": self.canaries}

    def load(self, value: dict[str, Any]) -> None:
        self.canaries = list(value["canaries"])


class CanaryModel:
    """Awaits at random points, then does with its canary what the last prompt asks for."""

    provider = "test"
    name = "canary"
    context_window = None

    def __init__(self, watch: Watch, seed: int) -> None:
        self._watch = watch
        self._chance = random.Random(seed)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        user = current_scope().user_id or ""
        self._watch.check("model", user, request.system, *(str(message.to_dict()) for message in request.messages))
        await self._wander()
        answer = self._answer(request, user)
        for word in answer.text.split():
            yield TextDelta(f"{word} ")
            await self._wander()
        self._watch.check_equal("model after awaiting", current_scope().user_id, user)
        yield Done(answer)

    async def _wander(self) -> None:
        for _ in range(self._chance.randrange(3)):
            await asyncio.sleep(0)
        if self._chance.random() < 0.02:
            await asyncio.sleep(0.002)

    def _answer(self, request: ModelRequest, user: str) -> Msg:
        if "Summarise the conversation" in request.messages[-1].text:
            return Msg.assistant(f"They spoke of canary-{user}-0.")
        place, (number, canary, kind) = _last_order(request.messages)
        answered = sum(message.role == "assistant" for message in request.messages[place:])
        if kind == "explode" and answered == 1:
            raise ModelRejected("this neighbour always fails", provider="test", model="canary")
        steps = _STEPS[kind]
        if answered < len(steps):
            return Msg.assistant(*_calls(steps[answered], canary, f"{number}-{kind}"))
        return Msg.assistant(f"done with {canary}")


def _last_order(messages: tuple[Msg, ...]) -> tuple[int, tuple[str, str, str]]:
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user" and (found := _ORDER.search(messages[place].text)):
            return place, (found[1], found[2], found[3])
    raise AssertionError("no order in what the model sees")


_WRITE = ("write_file", "keep", "who", "who_late", "note", "session_search", "log_it", "who")
_READ = ("read_file", "recall", "grep_files", "list_files", "session_list", "session_history", "memory_search")
_STEPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "all": (_WRITE, (*_READ, "ask_other")),
    "side": (("who", "keep", "write_file"),),
    "explode": (_WRITE,),
}


def _calls(names: tuple[str, ...], canary: str, order: str) -> list[ToolUse]:
    arguments: dict[str, dict[str, Any]] = {
        "write_file": {"path": f"notes/{order}-{canary}.md", "content": canary},
        "read_file": {"path": f"notes/{order}-{canary}.md"},
        "session_search": {"query": "canary", "max_results": 20},
        "grep_files": {"pattern": "canary"},
        "list_files": {"path": "notes"},
        "session_list": {},
        "session_history": {},
        "memory_search": {"query": "canary"},
    }
    return [
        ToolUse(id=f"{order}-{canary}-{name}-{place}", name=name, input=arguments.get(name, {"canary": canary}))
        for place, name in enumerate(names)
    ]


class CanaryTools:
    """Tools of every kind: async, sync in a thread, one that logs, one that calls the agent again."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._log = logging.getLogger("canaries")
        self.agent: HarnessAgent | None = None

    @tool
    async def keep(self, canary: str, diary: Diary, scope: CallScope) -> str:
        """Put a canary into the state."""
        self._watch.check("state", scope.user_id or "", canary, diary.canaries)
        await asyncio.sleep(0)
        diary.canaries.append(canary)
        return f"kept {canary}"

    @tool
    async def recall(self, canary: str, diary: Diary, ctx: RuntimeContext) -> str:
        """Give back all canaries in the state."""
        self._watch.check("recall", ctx.user_id or "", canary, diary.canaries)
        return " ".join(diary.canaries)

    @tool
    def who(self, canary: str, ctx: RuntimeContext) -> str:
        """Say who is asking, from a thread."""
        self._watch.check("sync tool", ctx.user_id or "", canary)
        self._watch.check_scope("scope in a thread", ctx.user_id, ctx.session_id or "")
        time.sleep(0)
        return f"{ctx.user_id} {canary}"

    @tool
    async def who_late(self, canary: str, ctx: RuntimeContext) -> str:
        """Say who is asking, after a thread of one's own."""
        found = await asyncio.to_thread(lambda: current_scope().user_id)
        self._watch.check_equal("scope in to_thread", found, ctx.user_id)
        return f"{ctx.user_id} {canary}"

    @tool
    async def note(self, canary: str, files: AbstractFilesystem, scope: CallScope) -> str:
        """Add the canary to the long-term memory, by the call's own filesystem."""
        path = f"memory/{canary}.md"
        if not await files.exists(path):
            await files.write(path, f"{canary}\n")
        found = (await files.read(path)).text
        self._watch.check("filesystem", scope.user_id or "", found, path)
        return found

    @tool
    async def log_it(self, canary: str, ctx: RuntimeContext) -> str:
        """Log the canary, with the user the call is known by."""
        self._log.info("%s", canary, extra={"harness_user": current_scope().user_id})
        return canary

    @tool
    async def ask_other(self, canary: str, ctx: RuntimeContext) -> str:
        """Ask the same agent in another session of the same user."""
        assert self.agent is not None
        side = ctx.with_changes(session_id="side", session_key=None)
        reply = await self.agent.call(f"round 0 of {canary}: side", side)
        self._watch.check("nested call", ctx.user_id or "", reply.text)
        self._watch.check_scope("scope after a nested call", ctx.user_id, ctx.session_id or "")
        return reply.text


class AwaitingHook:
    """An async hook that lets others run between looking twice, and puts something of its user's into each call."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    async def on_event(self, event: Event) -> Event | None:
        user = event.scope.user_id or ""
        self._watch.check("hook", user, *_texts_of(event))
        await asyncio.sleep(0)
        self._watch.check_scope("scope in a hook", user, event.scope.session_id)
        return event.change(context=(f"for canary-{user}-0",)) if isinstance(event, PreCall) else None


class ThreadHook:
    """A sync hook: it runs in a thread."""

    events = (PreActing, PostActing)

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def on_event(self, event: PreActing | PostActing) -> None:
        user = event.scope.user_id or ""
        when = "after" if isinstance(event, PostActing) else "before"
        self._watch.check(f"sync hook {when} a tool", user, *_texts_of(event))
        self._watch.check_scope("scope in a sync hook", user, event.scope.session_id)


def _texts_of(event: Event) -> list[object]:
    match event:
        case PreReasoning():
            return [event.system, *(message.to_dict() for message in event.messages)]
        case PreActing():
            return [event.tool_use.to_dict()]
        case PostActing():
            return [event.tool_use.to_dict(), event.result.to_dict()]
        case _:
            return [event.data()]


class LogWatch(logging.Handler):
    """Every record must name the user whose canary it speaks of."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(logging.DEBUG)
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        user = getattr(record, "harness_user", None)
        if user is not None:
            self._watch.check(f"log record of {record.name}", user, record.getMessage())
