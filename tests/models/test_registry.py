import subprocess
import sys

import pytest

from harness import models
from harness.errors import ConfigError, MissingExtra, MissingSetting
from harness.models import OfflineModel, providers, register_model, resolve_model
from harness.models.pydantic_ai_errors import is_overflow, setup_error


def test_the_provider_layer_is_not_loaded_before_it_is_used(root):
    code = "import sys, harness.models as m; m.resolve_model('offline'); print('pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_offline_needs_nothing():
    assert isinstance(resolve_model("offline"), OfflineModel)


def test_a_model_resolves_to_itself():
    model = OfflineModel(name="mine")

    assert resolve_model(model) is model


def test_a_registered_name_gives_what_its_factory_gives():
    register_model("demo-registered", lambda: OfflineModel(name="demo"))

    assert resolve_model("demo-registered").name == "demo"


def test_a_taken_or_blank_name_is_refused():
    for name in ("offline", " "):
        with pytest.raises(ConfigError, match="register_model"):
            register_model(name, OfflineModel)


@pytest.mark.parametrize("spec", ["", "gpt", ":x", "openai:", 7])
def test_what_is_no_model_is_refused_with_what_works(spec):
    with pytest.raises(ConfigError, match="'offline'"):
        resolve_model(spec)


@pytest.fixture
def bare(monkeypatch):
    """As it is where no extra is installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "pydantic_ai"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("harness.models.pydantic_ai")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.setattr(providers, "find_spec", lambda name: None)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("spec", "extra"),
    [("openai:gpt-5-mini", "openai"), ("anthropic:c", "anthropic"), ("google:g", "google"), ("groq:g", "models")],
)
def test_a_provider_needs_its_extra(spec, extra):
    with pytest.raises(MissingExtra, match=rf"dualtrack-harness\[{extra}\]'$"):
        resolve_model(spec)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("name", "extra"), [("openai_compatible", "openai"), ("PydanticAIModel", "models")])
def test_what_stands_for_a_provider_names_the_extra_that_is_enough_for_it(name, extra):
    with pytest.raises(MissingExtra, match=rf"dualtrack-harness\[{extra}\]'$"):
        getattr(models, name)


@pytest.mark.usefixtures("bare")
def test_a_mistyped_provider_is_no_missing_package():
    with pytest.raises(ConfigError, match="no provider 'opnai'; did you mean 'openai'") as caught:
        resolve_model("opnai:gpt-5-mini")
    assert not isinstance(caught.value, MissingExtra)


def test_the_class_of_a_model_is_no_model():
    with pytest.raises(ConfigError, match="OfflineModel is a class"):
        resolve_model(OfflineModel)


def test_an_unknown_provider_is_named():
    pytest.importorskip("pydantic_ai", reason="needs the extra `models`")

    with pytest.raises(ConfigError, match="nobody:x"):
        resolve_model("nobody:x")


def test_a_missing_key_is_named_before_any_request(monkeypatch):
    pytest.importorskip("openai", reason="needs the extra `openai`")
    pytest.importorskip("pydantic_ai", reason="needs the extra `openai`")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    with pytest.raises(MissingSetting, match=r"OPENAI_API_KEY$") as caught:
        resolve_model("openai:gpt-5-mini")
    assert "pydantic" not in str(caught.value).lower()


@pytest.mark.parametrize(
    ("said", "variable"),
    [
        ("Set the `OLLAMA_BASE_URL` environment variable or pass it", "OLLAMA_BASE_URL"),
        ("You must provide a `region_name` or a boto3 client for Bedrock Runtime.", "AWS_DEFAULT_REGION"),
    ],
)
def test_what_the_environment_lacks_is_named_by_its_variable(said, variable):
    error = setup_error(ValueError(said), "own:m")
    assert isinstance(error, MissingSetting)
    assert error.variable == variable


def test_a_provider_by_name_has_that_name(monkeypatch):
    pytest.importorskip("openai", reason="needs the extra `openai`")
    pytest.importorskip("pydantic_ai", reason="needs the extra `openai`")
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    model = resolve_model("openai:gpt-5-mini")

    assert (model.provider, model.name) == ("openai", "gpt-5-mini")


def test_a_missing_sdk_is_named_with_its_extra():
    assert setup_error(ImportError("x"), "openai:gpt").extra == "openai"
    assert setup_error(ImportError("x"), "deepseek:chat").extra == "openai"
    assert setup_error(ImportError("x"), "mistral:m").extra == "mistral"
    assert "pydantic-ai-slim[groq]" in str(setup_error(ImportError("x"), "groq:m"))


@pytest.mark.parametrize(
    "text",
    [
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Too many tokens: the input exceeds the model's maximum",
        "Please reduce the length of the messages",
        "the input exceeds the token limit of this model",
    ],
)
def test_words_about_length_are_an_overflow(text):
    assert is_overflow(text)


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached: token limit of 30000 tokens per min",
        "You exceeded your token limit per day, try again later",
        "too many tokens requested per minute (TPM)",
        "max_tokens is too large: 100000",
        "Invalid API key",
    ],
)
def test_words_about_rates_and_settings_are_none(text):
    assert not is_overflow(text)
