"""A small session in each format that grows turn by turn, the way its own harness writes it.

Turn `n` is a prompt, an answer that calls the tool `look` and gets a result, and an answer.
"""

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness import HarnessAgent, RuntimeContext, tool
from harness.testing import ScriptedModel

MODEL = "demo-1"
SESSION = "session-2026-07-18-11-10-22-3f8a1c2d"


def clock(number: int, second: int) -> str:
    return f"2026-03-{1 + number // 60:02}T09:{number % 60:02}:{second:02}.000Z"


def millis(number: int, second: int) -> int:
    return 1_772_355_600_000 + (number * 60 + second) * 1000


class Growing:
    """One session; `say` adds turns, numbered on. `path` is what a person opens."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / self.name
        self.turns = 0

    def say(self, count: int = 1) -> None:
        for number in range(self.turns, self.turns + count):
            self.turn(number)
        self.turns += count

    def turn(self, number: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what the writer holds."""

    def append(self, *records: Any) -> None:
        with self.path.open("ab") as end:
            end.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))


class Claude(Growing):
    name = "0b0f3a86-57a5-4c1e-9a5e-6f0d2f6f4a11.jsonl"

    def turn(self, number: int) -> None:
        use = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {"at": f"place {number}"}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"result {number}."}
        self.append(
            self._line(number, 0, "user", {"role": "user", "content": f"prompt {number}."}),
            self._line(number, 1, "assistant", self._message(f"m{number}", use)),
            self._line(number, 2, "user", {"role": "user", "content": [result]}),
            self._line(
                number, 3, "assistant", self._message(f"n{number}", {"type": "text", "text": f"answer {number}."})
            ),
        )

    def _line(self, number: int, second: int, kind: str, message: object) -> dict[str, Any]:
        at = clock(number, second)
        return {
            "type": kind,
            "uuid": f"{number}-{second}",
            "sessionId": self.path.stem,
            "timestamp": at,
            "message": message,
        }

    def _message(self, key: str, block: object) -> dict[str, Any]:
        usage = {"input_tokens": 5, "output_tokens": 7}
        return {"id": key, "role": "assistant", "model": MODEL, "content": [block], "usage": usage}


class Codex(Growing):
    name = "rollout-2026-03-01T09-00-00-01997ea4-a70d-7da3-8c20-c736db82a7c5.jsonl"

    def turn(self, number: int) -> None:
        if number == 0:
            self._add(0, 0, "session_meta", {"id": "01997ea4-a70d-7da3-8c20-c736db82a7c5", "cwd": "/srv"})
        asked = [{"type": "input_text", "text": f"prompt {number}."}]
        said = [{"type": "output_text", "text": f"answer {number}."}]
        given = json.dumps({"at": f"place {number}"})
        self._add(number, 0, "event_msg", {"type": "task_started"})
        self._add(number, 0, "turn_context", {"model": MODEL})
        self._add(number, 1, "response_item", {"type": "message", "role": "user", "content": asked})
        self._add(
            number,
            2,
            "response_item",
            {"type": "function_call", "name": "look", "arguments": given, "call_id": f"c{number}"},
        )
        self._add(
            number,
            3,
            "response_item",
            {"type": "function_call_output", "call_id": f"c{number}", "output": f"result {number}."},
        )
        self._add(number, 4, "response_item", {"type": "message", "role": "assistant", "content": said})
        self._add(number, 5, "event_msg", {"type": "task_complete", "last_agent_message": f"answer {number}."})

    def _add(self, number: int, second: int, kind: str, payload: object) -> None:
        self.append({"timestamp": clock(number, second), "type": kind, "payload": payload})


class Pi(Growing):
    name = "2026-03-01T09-00-00_01a22d96.jsonl"

    def turn(self, number: int) -> None:
        if number == 0:
            self.append(
                {"type": "session", "version": 3, "id": self.path.stem, "timestamp": clock(0, 0), "cwd": "/srv"}
            )
        use = {"type": "toolCall", "id": f"c{number}", "name": "look", "arguments": {"at": f"place {number}"}}
        result = {"toolCallId": f"c{number}", "toolName": "look", "isError": False}
        self._add(number, 0, "user", [text(f"prompt {number}.")])
        self._add(number, 1, "assistant", [use], model=MODEL, provider="demo", stopReason="toolUse")
        self._add(number, 2, "toolResult", [text(f"result {number}.")], **result)
        self._add(number, 3, "assistant", [text(f"answer {number}.")], model=MODEL, provider="demo", stopReason="stop")

    def _add(self, number: int, second: int, role: str, content: object, **fields: object) -> None:
        at = number * 4 + second
        entry = {"type": "message", "id": f"e{at:07}", "parentId": f"e{at - 1:07}" if at else None}
        message = {"role": role, "content": content, "timestamp": millis(number, second), **fields}
        self.append({**entry, "timestamp": clock(number, second), "message": message})


class Openclaw(Pi):
    name = "5994da29-6105-4afc-9d32-cfd2cb2517b5.jsonl"

    def turn(self, number: int) -> None:
        super().turn(number)
        if number == 0:
            data = {"provider": "demo", "modelId": MODEL}
            at = {"id": "snapshot", "parentId": "e0000003", "timestamp": clock(0, 4)}
            self.append({"type": "custom", "customType": "model-snapshot", **at, "data": data})


class Sts(Growing):
    name = "b1a2c3.jsonl"

    def turn(self, number: int) -> None:
        if number == 0:
            self.append({"type": "session", "harness": "my-agent", "id": "b1a2c3", "name": "Grows"})
        function = {"name": "look", "arguments": json.dumps({"at": f"place {number}"})}
        self._add(number, 0, role="user", content=f"prompt {number}.")
        self._add(
            number, 1, role="assistant", content="", model=MODEL, toolCalls=[{"id": f"c{number}", "function": function}]
        )
        self._add(number, 2, role="tool", content=f"result {number}.", toolCallId=f"c{number}")
        self._add(number, 3, role="assistant", content=f"answer {number}.", model=MODEL)

    def _add(self, number: int, second: int, **message: object) -> None:
        self.append({"type": "message", "message": {**message, "timestamp": millis(number, second)}})


class Vak(Growing):
    name = "vak-demo.jsonl"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._last: tuple[str, bytes] | None = None
        contract = {"provider": "demo", "model": MODEL}
        self._add(0, 0, kind="header", session_id="vak-demo", created_at=clock(0, 0), cwd="/srv", contract=contract)

    def turn(self, number: int) -> None:
        use = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {"at": f"place {number}"}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"result {number}.", "is_error": False}
        self._message(number, 1, "user", text(f"prompt {number}."))
        self._message(number, 2, "assistant", use, model=MODEL, stop_reason="tool_use")
        self._message(number, 3, "user", result)
        self._message(number, 4, "assistant", text(f"answer {number}."), model=MODEL, stop_reason="end_turn")

    def _message(self, number: int, second: int, role: str, block: object, **meta: object) -> None:
        told = {"meta": meta} if meta else {}
        self._add(number, second, kind="message", message={"role": role, "content": [block]}, **told)

    def _add(self, number: int, second: int, **fields: object) -> None:
        key = f"0197f000-0000-7000-8000-{number * 10 + second:012}"
        before = (
            {"parent_id": self._last[0], "prev_hash": hashlib.sha256(self._last[1]).hexdigest()} if self._last else {}
        )
        record = {"id": key, "ts": clock(number, second), **before, **fields}
        self._last = (key, json.dumps(record).encode())
        self.append(record)


class Penguin(Growing):
    """Every fifth turn begins another context, in a file of its own."""

    name = f"{SESSION}_001.jsonl"

    def turn(self, number: int) -> None:
        self._shard = self.folder / f"{SESSION}_{1 + number // 5:03}.jsonl"
        if number % 5 == 0:
            self._add(number, 0, "session_meta", session_id=SESSION, provider="demo", model_id=MODEL, workspace="/srv")
        self._add(number, 1, "model_msg", type="text", role="user", text=f"prompt {number}.")
        self._add(number, 1, "event_msg", type="request_begin")
        given = json.dumps({"at": f"place {number}"})
        call = {"name": "look", "arguments": given, "tool_call_id": "call_0"}
        self._add(number, 2, "model_msg", type="tool_call", role="assistant", **call)
        self._add(number, 2, "event_msg", type="request_end", status="completed")
        self._add(
            number,
            3,
            "model_msg",
            type="tool_call_output",
            role="user",
            output=f"result {number}.",
            tool_call_id="call_0",
        )
        self._add(number, 3, "event_msg", type="request_begin")
        self._add(number, 4, "model_msg", type="text", role="assistant", text=f"answer {number}.")
        self._add(number, 4, "event_msg", type="request_end", status="completed")

    def _add(self, number: int, second: int, kind: str, **payload: object) -> None:
        with self._shard.open("ab") as end:
            end.write(
                json.dumps({"timestamp": clock(number, second), "type": kind, "payload": payload}).encode() + b"\n"
            )


class Gemini(Growing):
    """Lines; the answer is written when it calls, and again under its id when the result is there."""

    name = "session-2026-03-01T09-00-0b7dfb12.jsonl"

    def turn(self, number: int) -> None:
        if number == 0:
            self.append({"sessionId": "grows", "projectHash": "0b7d", "startTime": clock(0, 0), "kind": "main"})
        self.append(*self.messages(number)[:1], self._answer(number, None), *self.messages(number)[1:])

    def messages(self, number: int) -> list[dict[str, Any]]:
        response = {"id": f"c{number}", "name": "look", "response": {"output": f"result {number}."}}
        return [
            self._message(number, 0, "user", content=[{"text": f"prompt {number}."}]),
            self._answer(number, [{"functionResponse": response}]),
            self._message(number, 2, "gemini", content=f"answer {number}.", model=MODEL),
        ]

    def _answer(self, number: int, result: object) -> dict[str, Any]:
        status = "executing" if result is None else "success"
        call = {
            "id": f"c{number}",
            "name": "look",
            "args": {"at": f"place {number}"},
            "result": result,
            "status": status,
        }
        return self._message(number, 1, "gemini", content="", model=MODEL, toolCalls=[call])

    def _message(self, number: int, second: int, kind: str, **fields: object) -> dict[str, Any]:
        return {"id": f"g{number}-{second}", "timestamp": clock(number, second), "type": kind, **fields}


class GeminiDocument(Gemini):
    """The older kind: one document that is written anew with every turn."""

    name = "session-2026-03-01T09-00-0b7dfb12.json"

    def turn(self, number: int) -> None:
        said = [message for each in range(number + 1) for message in self.messages(each)]
        whole = {"sessionId": "grows", "projectHash": "0b7d", "startTime": clock(0, 0), "messages": said}
        self.path.write_text(json.dumps(whole, indent=2))


class Database(Growing):
    """A database whose newest rows are in its log only, with its writer at work."""

    tables = ""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._connection = sqlite3.connect(self.path, check_same_thread=False)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma wal_autocheckpoint=0")
        self._connection.executescript(self.tables)

    def close(self) -> None:
        self._connection.close()

    def insert(self, table: str, *values: object) -> None:
        marks = ", ".join("?" * len(values))
        self._connection.execute(f"insert into {table} values({marks})", values)


class Opencode(Database):
    """The question before is written again with each turn: it gets a summary of what was changed."""

    name = "opencode.db"
    tables = (
        "create table session(id text, title text, directory text, time_created integer, time_updated integer);"
        "create table message(id text primary key, session_id text, data text);"
        "create table part(id text, message_id text, session_id text, data text);"
        "insert into session values('s1', 'Grows', '/srv', 1772355600000, 1772355600000);"
    )

    def turn(self, number: int) -> None:
        asked, used, said = (f"m{number:05}{letter}" for letter in "abc")
        time = {"created": millis(number, 0)}
        self.insert("message", asked, "s1", json.dumps({"role": "user", "time": time}))
        self._part(asked, text(f"prompt {number}."))
        self._assistant(used, number, "tool-calls")
        state = {"status": "completed", "input": {"at": f"place {number}"}, "output": f"result {number}."}
        self._part(used, {"type": "tool", "tool": "look", "callID": f"c{number}", "state": state})
        self._assistant(said, number, "stop")
        self._part(said, text(f"answer {number}."))
        told = json.dumps({"role": "user", "time": time, "summary": {"diffs": ["-" * (number * 31 % 400)]}})
        self._connection.execute("update message set data = ? where id = ?", (told, f"m{number - 1:05}a"))
        self._connection.commit()

    def _assistant(self, key: str, number: int, finish: str) -> None:
        named = {"modelID": MODEL, "providerID": "demo", "finish": finish}
        data = {"role": "assistant", "time": {"created": millis(number, 1)}, **named}
        self.insert("message", key, "s1", json.dumps(data))

    def _part(self, message: str, data: dict[str, Any]) -> None:
        self.insert("part", f"p-{message}", message, "s1", json.dumps(data))


class Hermes(Database):
    name = "state.db"
    tables = (
        "create table sessions(id text, model text, started_at real, title text, cwd text);"
        "create table messages(id integer primary key, session_id text, role text, content text, tool_call_id text,"
        " tool_calls text, timestamp real, finish_reason text, active integer);"
        f"insert into sessions values('s1', '{MODEL}', 1772355600.0, 'Grows', '/srv');"
    )

    def turn(self, number: int) -> None:
        function = {"name": "look", "arguments": json.dumps({"at": f"place {number}"})}
        call = json.dumps([{"id": f"c{number}", "type": "function", "function": function}])
        self._add(number, 0, "user", f"prompt {number}.")
        self._add(number, 1, "assistant", "", calls=call, finish="tool_calls")
        self._add(number, 2, "tool", f"result {number}.", call=f"c{number}")
        self._add(number, 3, "assistant", f"answer {number}.", finish="stop")
        self._connection.commit()

    def _add(
        self,
        number: int,
        second: int,
        role: str,
        content: str,
        *,
        call: str | None = None,
        calls: str | None = None,
        finish: str | None = None,
    ) -> None:
        at = millis(number, second) / 1000
        self.insert("messages", None, "s1", role, content, call, calls, at, finish, 1)

    def take_back(self, count: int) -> None:
        """Rewind the last turns: the rows stay, and are marked."""
        self._connection.execute("update messages set active = 0 where id > ?", ((self.turns - count) * 4,))
        self._connection.commit()


@tool
def look(at: str) -> str:
    """Look at a place."""
    return f"result {at.removeprefix('place ')}."


class Own(Growing):
    name = "workspace/tenants/_/agents/notes/sessions/monday.log.jsonl"

    def say(self, count: int = 1) -> None:
        # A browser keeps a loop of its own running in the thread of its test.
        with ThreadPoolExecutor(1) as another:
            another.submit(asyncio.run, self._talk(range(self.turns, self.turns + count))).result()
        self.turns += count

    async def _talk(self, numbers: range) -> None:
        steps = [step for n in numbers for step in (ScriptedModel.tool_call("look", at=f"place {n}"), f"answer {n}.")]
        builder = HarnessAgent.builder().name("notes").model(ScriptedModel(steps, context_window=1_000_000))
        async with builder.workspace(self.folder / "workspace").tool(look).build() as agent:
            for number in numbers:
                await agent.call(f"prompt {number}.", RuntimeContext(session_id="monday"))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


KINDS: dict[str, Callable[[Path], Growing]] = {
    "claude": Claude,
    "codex": Codex,
    "gemini": Gemini,
    "gemini document": GeminiDocument,
    "harness": Own,
    "hermes": Hermes,
    "openclaw": Openclaw,
    "opencode": Opencode,
    "penguin": Penguin,
    "pi": Pi,
    "sts": Sts,
    "vak": Vak,
}
"""Every format that is read here, by its name."""
