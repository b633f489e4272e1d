"""The shortest use: an agent that knows who it talked to. Run it twice: the second run remembers the first."""

from harness import HarnessAgent, RuntimeContext

agent = HarnessAgent.builder().name("notes").model("offline").workspace("./workspace").build()
alice = RuntimeContext(session_id="monday", user_id="alice")
print(agent.call("What is my name?", alice).block().text)
print(agent.call("My name is Alice.", alice).block().text)
