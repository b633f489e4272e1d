"""`harness chat`: one turn, a conversation over a pipe, or a conversation at the terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from harness.cli.guard import command
from harness.cli.notices import BackgroundNews
from harness.cli.opening import DEFAULT_AGENT, DEFAULT_WORKSPACE, ContextPolicy, opened
from harness.cli.options import Agent, AsJson, Debug, User, Workspace
from harness.cli.output import say, say_aside, say_json
from harness.cli.talk import PIPE, Conversation, converse_lines, converse_terminal
from harness.context import RuntimeContext
from harness.errors import ConfigError
from harness.ids import new_session_id

__all__ = ["run"]

Model = Annotated[str, typer.Option("--model", "-m", help='"provider:name", or "offline" for one without a network.')]
SessionId = Annotated[str | None, typer.Option("--session", "-s", help="The conversation; without it, a new one.")]
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
    model: Model = "offline",
    session: SessionId = None,
    message: Message = None,
    context: Context = ContextPolicy.COMPACTION,
    remember: Remember = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Talk to an agent. Ctrl-C stops an answer and keeps the turn; Ctrl-D leaves."""
    del debug  # the guard has seen it
    at_terminal = message is None and sys.stdin.isatty()
    if as_json and at_terminal:
        raise ConfigError("--json needs --message or lines on standard input; a chat at the terminal has no JSON form")
    ctx = RuntimeContext(session_id=session or new_session_id(), user_id=user)
    news = BackgroundNews()
    async with opened(workspace, agent, model, context=context, remember=remember, hooks=[news]) as made:
        conversation = Conversation(made, ctx, news)
        if session is None and not at_terminal and not as_json:
            say_aside(f"session {conversation.session_id}")
        if message is not None:
            await _one_turn(conversation, message, as_json=as_json)
        elif at_terminal:
            await converse_terminal(conversation)
        else:
            await _lines(conversation, as_json=as_json)
    for line in news.take():
        say_aside(line)


async def _one_turn(conversation: Conversation, message: str, *, as_json: bool) -> None:
    if as_json:
        say_json((await conversation.turn(message)).to_dict())
        return
    await conversation.turn(message, PIPE)
    say()


async def _lines(conversation: Conversation, *, as_json: bool) -> None:
    if as_json:
        turns = [turn.to_dict() async for turn in converse_lines(conversation)]
        say_json({"session_id": conversation.session_id, "turns": turns})
        return
    async for _turn in converse_lines(conversation, PIPE):
        say()
