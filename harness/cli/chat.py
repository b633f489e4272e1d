"""`harness chat`: one turn, a conversation over a pipe, or a conversation at the terminal."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from harness.cli.guard import command
from harness.cli.notices import BackgroundNews
from harness.cli.opening import ContextPolicy, opened
from harness.cli.options import (
    DEFAULT_AGENT,
    DEFAULT_WORKSPACE,
    Agent,
    AsJson,
    Model,
    Namespace,
    User,
    Workspace,
    is_id,
)
from harness.cli.output import say, say_aside, say_json
from harness.cli.place import Place, owner_named
from harness.cli.talk import PIPE, Conversation, Turn, converse_lines, converse_terminal
from harness.context import RuntimeContext
from harness.errors import ConfigError
from harness.ids import new_session_id

__all__ = ["run"]

SessionId = Annotated[
    str | None, typer.Option("--session", "-s", callback=is_id, help="The conversation; without it, a new one.")
]
Remember = Annotated[
    bool, typer.Option("--remember", help="Keep facts for later conversations: one more request a turn.")
]
Context = Annotated[
    ContextPolicy, typer.Option("--context", help="How a long talk is fitted in: summed up, or turn by turn.")
]
Message = Annotated[str | None, typer.Option("--message", help="Say this, print the answer, leave.")]


@command
async def run(
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    namespace: Namespace = None,
    model: Model = "offline",
    session: SessionId = None,
    message: Message = None,
    context: Context = ContextPolicy.COMPACTION,
    remember: Remember = False,
    as_json: AsJson = False,
) -> None:
    """Talk to an agent. Ctrl-C stops an answer and keeps the turn; Ctrl-D leaves.

    Example: harness chat --user alice --session monday --message "My name is Alice."
    """
    at_terminal = message is None and sys.stdin.isatty()
    if as_json and at_terminal:
        raise ConfigError("--json needs --message or lines on standard input; a chat at the terminal has no JSON form")
    user, parts = owner_named(user, namespace)
    place = Place(workspace, agent, user, as_json, parts)
    ctx = RuntimeContext(session_id=session or new_session_id(), user_id=user)
    news, document = BackgroundNews(), {}
    async with opened(
        workspace, agent, model, namespace=parts, context=context, remember=remember, hooks=[news]
    ) as made:
        conversation = Conversation(made, ctx, news, place)
        if as_json:
            document = await _document(conversation, message)
        elif at_terminal:
            await converse_terminal(conversation)
        else:
            if session is None:
                say_aside(f"session {conversation.session_id}")
            await _talk(conversation, message)
    for line in news.take():
        say_aside(line)
    if as_json:
        say_json(document)


async def _document(conversation: Conversation, message: str | None) -> dict[str, Any]:
    """What `--json` shows: the turn, or those of all lines of standard input."""
    if message is not None:
        return (await conversation.turn(message)).to_dict()
    turns = [turn.to_dict() async for turn in converse_lines(conversation)]
    return {"session_id": conversation.session_id, "turns": turns}


async def _talk(conversation: Conversation, message: str | None) -> None:
    if message is not None:
        _end(await conversation.turn(message, PIPE), conversation)
        return
    async for turn in converse_lines(conversation, PIPE):
        _end(turn, conversation)


def _end(turn: Turn, conversation: Conversation) -> None:
    """End the line of the answer; what went less than well stands beside it."""
    say()
    for line in conversation.warning_lines(turn):
        say_aside(line)
