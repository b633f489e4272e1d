"""A tool that knows who is asking, and a hook that watches and one that changes what comes back."""

import asyncio
from datetime import date

from harness import HarnessAgent, RuntimeContext, tool
from harness.hooks import PostActing, PreActing
from harness.messages import TextBlock, ToolResult

BALANCES = {"alice": 120, "bob": 7}


@tool
def balance(currency: str, ctx: RuntimeContext) -> str:
    """The caller's balance.

    Args:
        currency: What to count in, such as EUR.
    """
    # `ctx` is injected by its type; the model never sees it and cannot ask for somebody else's.
    return f"{BALANCES[ctx.user_id or '']} {currency}"


async def audit(event: PreActing) -> None:
    """Hears of every tool call before it runs; the annotation says which events it wants."""
    print(f"audit: {event.ctx.user_id} uses {event.tool_use.name}")


async def dated(event: PostActing) -> PostActing:
    """Puts a date behind every result; what a hook returns is what is logged and what the model sees."""
    text = TextBlock(text=f"{event.result.text} on {date(2026, 11, 30)}")
    return event.change(result=ToolResult(id=event.result.id, name=event.result.name, content=(text,)))


async def main() -> None:
    """Two users, one agent, the same question."""
    agent = HarnessAgent.builder().name("bank").model("offline").tool(balance).hooks(audit, dated).build()
    async with agent:
        for user in ("alice", "bob"):
            # The offline model calls a tool when it is told to, in this form.
            reply = await agent.call('/tool balance {"currency": "EUR"}', RuntimeContext(user_id=user))
            print(f"{user}: {reply.text}")


asyncio.run(main())
