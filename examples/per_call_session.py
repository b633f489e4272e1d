"""A store of track 1 chosen for one call: this conversation's snapshots go where the call says.

The ledger stays in the workspace, whatever store a call brings. Each of the two is enough to go on.
"""

import asyncio

from harness import HarnessAgent, RuntimeContext
from harness.sessions import InMemorySession, JsonSession


async def main() -> None:
    """Three calls on three conversations, each with a store of its own, served by one agent."""
    stores = {"monday": None, "tuesday": InMemorySession(), "friday": JsonSession("./elsewhere")}
    async with HarnessAgent.builder().name("notes").model("offline").workspace("./workspace").build() as agent:
        for day, store in stores.items():
            ctx = RuntimeContext(session_id=day, user_id="alice", session=store)
            await agent.call(f"Today is {day}.", ctx)
            reply = await agent.call("What day is today?", ctx)
            print(f"{day}: {reply.text}")


asyncio.run(main())
