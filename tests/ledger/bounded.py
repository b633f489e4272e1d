"""Everything one can ask of large sessions, in a process of its own; prints what came out and the most memory it took."""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

from harness import HarnessAgent, RuntimeContext
from harness.cli.app import app
from harness.testing import ScriptedModel


async def ask(workspace: Path, session: str) -> dict[str, object]:
    async with (
        HarnessAgent.builder().name("notes").model(ScriptedModel(["done"])).workspace(workspace).build() as agent
    ):
        sessions = agent.sessions("alice")
        bundle = workspace / f"{session}.zip"
        found: dict[str, object] = {
            "list": [info.id for info in await sessions.list()],
            "call": (await agent.call("on", RuntimeContext(session_id=session, user_id="alice"))).text,
            "verify": sorted({finding.kind for finding in (await sessions.verify(session)).findings if finding.error}),
            "history": [message.text for message in await sessions.history(session, 2)],
            "read": len([message.role async for message in sessions.read(session, 10_000)]),
            "search": len(await sessions.search("needle", limit=5, session_id=session)),
            "branches": len(await sessions.branches(session)),
            "labels": await sessions.labels(session),
            "usage": (await sessions.usage(session)).billed.requests,
            "export": (await sessions.export(session, bundle)).session_id,
            "repair": (await sessions.repair(session)).ok,
        }
        if session == "large":
            found["fork"] = await sessions.fork(session, to="copy")
            found["taken over"] = await agent.sessions("bob").import_session(bundle, take_over=True)
        return found


def show(workspace: Path, session: str) -> int:
    where = ["--workspace", str(workspace), "--agent", "notes", "--user", "alice"]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        return int(app(["sessions", "show", session, "--last", "10000", *where], standalone_mode=False) or 0)


def peak() -> int:
    """The most memory this process had, in MB; getrusage would count what its parent had when it was forked."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


if __name__ == "__main__":
    place, asked = Path(sys.argv[1]), sys.argv[2]
    answers = asyncio.run(ask(place, asked))
    answers["show"] = show(place, asked)
    print(json.dumps({**answers, "peak": peak()}))
