"""The shortest use: an agent that knows who it talked to. A second run remembers: five_lines.py "What is my name?"."""

import sys

from harness import HarnessAgent, RuntimeContext

agent = HarnessAgent.builder().name("notes").model("offline").workspace("./workspace").build()
alice = RuntimeContext(session_id="monday", user_id="alice")
for message in sys.argv[1:] or ["My name is Alice.", "What is my name?"]:
    print(agent.call(message, alice).block().text)
