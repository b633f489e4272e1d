"""A stand-in for a language model that needs no network, no key and no weights."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence

from harness.errors import ContextOverflow
from harness.messages import Block, Msg, TextBlock, ToolResult, ToolUse, Usage
from harness.models.base import Chunk, Done, ModelRequest, TextDelta, ToolCallDelta
from harness.models.extract import Source, best_source, is_question, key_sentences, lasting_sentences, sentences
from harness.models.tokens import estimate_request, estimate_tokens
from harness.text import dumps

__all__ = ["OfflineModel"]

_COMMAND = re.compile(r"^\s*/tool\s+(\S+)[ \t]*(.*)$")
_TAGGED = re.compile(r"<([a-z][\w-]*)>(.*?)</\1>", re.DOTALL)
_PIECES = re.compile(r"\S+\s*|\s+")
_ASKS_FACTS = ("You extract facts", "You keep the long-term memory")
_ASKS_MEMORY = "You consolidate the long-term memory"
_ASKS_SUMMARY = "You summarise conversations"
_MATERIAL = ("context_summary", "conversation", "summary")
_SUMMARISE = "Summarise the conversation"
_NOT_FOUND = "I do not find that in this conversation."
_LONGEST_QUOTE = 300
_LONGEST_RESULT = 2_000
_LONGEST_SUMMARY = 1_500


class OfflineModel:
    """No language model: it finds and quotes sentences of the conversation, the same ones every time.

    For trying out, for tests and for demonstrations. What it can do:

    - A question ("What is my name?") is answered with the sentence of the visible context that shares
      most words with it: what users said, tool results, summaries, system text; the newest of equals.
    - A statement is acknowledged by quoting it.
    - A line `/tool NAME {"json": "arguments"}` calls a tool; several such lines are parallel calls. The
      results are then the answer.
    - Where the system text says "You consolidate the long-term memory", it adds new bullets to the file.
    - Where the system text says "You summarise conversations", or the last message begins with
      "Summarise the conversation", it lists statements, those that an earlier summary tells for good
      first; where it says "You extract facts" or "You keep the long-term memory", it lists those about
      the people, or answers NO_REPLY.
    - What stands in tags on lines of their own (`<session_context>…</session_context>`) counts as
      notes: it answers questions but is no directive.

    Its tokens are estimates. A request beyond `context_window` tokens raises `ContextOverflow`, as a
    provider would. `delay` is a pause in seconds before each word.
    """

    description = "Not a language model: a deterministic stand-in that quotes sentences of the conversation."
    provider = "offline"

    def __init__(self, *, name: str = "offline", context_window: int = 32_000, delay: float = 0.0) -> None:
        self.name = name
        self.context_window: int | None = context_window
        self._window = context_window
        self._delay = delay

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer word by word. Raises `ContextOverflow`."""
        size = estimate_request(request)
        if size > self._window:
            raise ContextOverflow(
                f"the request has about {size} tokens, the offline model takes {self._window}; shorten the context",
                provider=self.provider,
                model=self.name,
                window=self._window,
            )
        blocks = _answer(request)
        for chunk in _chunks(blocks):
            await asyncio.sleep(self._delay)  # also at 0: others get their turn between two words
            yield chunk
        yield Done(self._message(blocks, size))

    def _message(self, blocks: Sequence[Block], size: int) -> Msg:
        calls = any(isinstance(block, ToolUse) for block in blocks)
        message = Msg.assistant(*blocks, provider=self.provider, model=self.name, stop="tool_use" if calls else "stop")
        return message.with_changes(usage=Usage(input=size, output=estimate_tokens(message)))


def _chunks(blocks: Sequence[Block]) -> Iterator[Chunk]:
    for block in blocks:
        if isinstance(block, TextBlock):
            yield from (TextDelta(word) for word in _PIECES.findall(block.text))
        elif isinstance(block, ToolUse):
            yield ToolCallDelta(block.id, block.name, dumps(block.input).decode())


def _answer(request: ModelRequest) -> list[Block]:
    if not request.messages:
        return [TextBlock(text="There is nothing to answer yet.")]
    directive = _last_user_text(request.messages)
    if any(words in request.system for words in _ASKS_FACTS):
        return [TextBlock(text=_facts(request))]
    if _ASKS_MEMORY in request.system:
        return [TextBlock(text=_memory(request))]
    if _ASKS_SUMMARY in request.system or directive.startswith(_SUMMARISE):
        return [TextBlock(text=_summary(request))]
    results = _trailing_results(request.messages)
    if results:
        return [TextBlock(text=_report(results))]
    return _calls(request.messages[-1].id, directive) or [TextBlock(text=_reply(request, directive))]


# -- what is asked -----------------------------------------------------------------------------------------------


def _last_user_text(messages: Sequence[Msg]) -> str:
    """What was said since the model last spoke, without notes in tags such as `<session>…</session>`."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role != "user":
            break
        texts.append(_TAGGED.sub("", message.text).strip())
    return "\n".join(text for text in reversed(texts) if text)


def _trailing_results(messages: Sequence[Msg]) -> list[str]:
    """The results that the request ends with; notes of hooks may stand behind them, a new directive may not."""
    found: list[str] = []
    for message in reversed(messages):
        if message.role == "tool":
            found[:0] = [_result(result) for result in message.tool_results]
        elif message.role == "assistant" or (message.role == "user" and _TAGGED.sub("", message.text).strip()):
            break
    return found


def _result(result: ToolResult) -> str:
    """What a tool gave; this library's tools say themselves that it is an error."""
    return f"Error: {result.text}" if result.is_error and not result.text.startswith("Error:") else result.text


def _report(results: Sequence[str]) -> str:
    return "\n".join(_cut(result, _LONGEST_RESULT) or "(nothing)" for result in results)


# -- tool calls --------------------------------------------------------------------------------------------------


def _calls(message_id: str, text: str) -> list[Block]:
    blocks: list[Block] = []
    for n, line in enumerate(text.split("\n")):
        found = _COMMAND.match(line)
        if found is None:
            continue
        arguments = _arguments(found[2])
        if arguments is None:
            return [TextBlock(text=f"I cannot read the arguments of /tool {found[1]}: give one JSON object.")]
        # Equal requests give equal ids, and no two calls of a session share one.
        digest = hashlib.sha256(f"{message_id}/{n}".encode()).hexdigest()
        blocks.append(ToolUse(id=f"offline_{digest[:24]}", name=found[1], input=arguments))
    return blocks


def _arguments(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# -- replies -----------------------------------------------------------------------------------------------------


def _reply(request: ModelRequest, directive: str) -> str:
    said = list(sentences(directive))
    questions = [sentence for sentence in said if is_question(sentence)]
    if not questions:
        return f"Noted: “{_cut(' '.join(said), _LONGEST_QUOTE)}”" if said else "Noted."
    sources = list(_sources(request))
    return "\n".join(_found(best_source(question, sources)) for question in questions)


def _found(source: Source | None) -> str:
    if source is None:
        return _NOT_FOUND
    opening = {"user": "You said", "tool": "A tool result says", "system": "My notes say"}[source.speaker]
    return f"{opening}: “{_cut(source.text, _LONGEST_QUOTE)}”"


def _sources(request: ModelRequest) -> Iterator[Source]:
    """Sentences that may hold an answer, newest first, system text last."""
    for message in reversed(request.messages):
        if message.role == "user":
            yield from _reversed_sources(_TAGGED.sub("", message.text), "user")
            for note in _TAGGED.finditer(message.text):
                yield from _reversed_sources(note[2], "system")
        elif message.role == "tool":
            for result in reversed(message.tool_results):
                yield from _reversed_sources(result.text, "tool")
        elif message.role == "system":
            yield from _reversed_sources(message.text, "system")
    yield from _reversed_sources(request.system, "system")


def _reversed_sources(text: str, speaker: str) -> Iterator[Source]:
    for sentence in reversed(list(sentences(text))):
        if not is_question(sentence) and not _COMMAND.match(sentence):
            yield Source(sentence, speaker)


# -- summaries ---------------------------------------------------------------------------------------------------


def _facts(request: ModelRequest) -> str:
    """Lasting statements that the material does not hold as known already."""
    text = _last_user_text_with_tags(request.messages)
    conversation = _tagged(text, "conversation")
    lines = (
        conversation.split("\n") if conversation else [line for lines in _spoken(request.messages) for line in lines]
    )
    known = text.replace(conversation, "") if conversation else ""
    return _bullets([fact for fact in lasting_sentences(lines) if fact not in known]) or "NO_REPLY"


def _memory(request: ModelRequest) -> str:
    """The memory file as it is, and the bullets of the notes that it does not hold."""
    text = _last_user_text_with_tags(request.messages)
    known = [line.removeprefix("  ") for line in _tagged(text, "memory").strip("\n").split("\n")]
    lines = [line.strip() for line in _tagged(text, "notes").split("\n")]
    new = dict.fromkeys(line for line in lines if line.startswith("- ") and line not in known)
    return "\n".join([*[line for line in known if line.strip()], *new]) if new else "NO_REPLY"


def _summary(request: ModelRequest) -> str:
    # Behind a conversation the last message is the instruction; alone, it holds the material too.
    messages = request.messages[:-1] or request.messages
    lines = [line for lines in _spoken(messages) for line in lines]
    earlier = [line for message in messages for line in _tagged(message.text, "context_summary").split("\n")]
    taken_over = sum(map(len, earlier))
    budget = min(_LONGEST_SUMMARY, max(200, taken_over + (sum(map(len, lines)) - taken_over) // 2))
    return _bullets(key_sentences(lines, budget, earlier)) or "- Nothing was stated."


def _spoken(messages: Sequence[Msg]) -> Iterator[list[str]]:
    """The lines of people and tools, message by message, without instructions, commands and session notes."""
    for message in messages:
        if message.role == "tool":
            yield ["tool: ", *[line for result in message.tool_results for line in result.text.split("\n")[:3]]]
        elif message.role == "user":
            text = _TAGGED.sub(lambda note: note[2] if note[1] in _MATERIAL else "", message.text)
            lines = _material(text, alone=len(messages) == 1).split("\n")
            yield ["user: ", *[line for line in lines if not _COMMAND.match(line)]]


def _material(text: str, *, alone: bool) -> str:
    """A message without instructions: it is one as a whole, or opens with one if it is all there is."""
    if not text.lstrip().startswith(_SUMMARISE):
        return text
    _, gap, rest = text.partition("\n\n")
    if not alone:
        return ""
    return rest if gap else text.partition("\n")[2]


def _tagged(text: str, tag: str) -> str:
    return next((note[2] for note in _TAGGED.finditer(text) if note[1] == tag), "")


def _last_user_text_with_tags(messages: Sequence[Msg]) -> str:
    return next((message.text for message in reversed(messages) if message.role == "user"), "")


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
