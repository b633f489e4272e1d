"""What is known of providers before their packages are there: names, and the extra that brings the packages.

The request layer knows some more than these; a name it does not know either is a mistake.
"""

from __future__ import annotations

import difflib
from importlib.util import find_spec

from harness.errors import ConfigError, MissingExtra

__all__ = ["extra_of", "missing_extra", "unknown_provider"]

# Those that speak OpenAI's protocol come through OpenAI's package.
_OPENAI = frozenset({
    "alibaba", "azure", "cerebras", "crusoe", "deepseek", "fireworks", "heroku", "litellm", "meta", "moonshotai",
    "nebius", "ollama", "openai", "openai-chat", "openai-responses", "openrouter", "ovhcloud", "sambanova",
    "together", "vercel", "vllm", "zai",
})  # fmt: skip
_OWN = {
    "anthropic": "anthropic", "bedrock": "bedrock", "google": "google", "google-cloud": "google", "mistral": "mistral",
}  # fmt: skip
# Without an extra of this library: their package comes by an extra of the request layer.
_LAYER_ONLY = frozenset({"cohere", "groq", "huggingface", "snowflake", "xai"})
_KNOWN = sorted({*_OPENAI, *_OWN, *_LAYER_ONLY})
_USUAL = ("openai", "anthropic", "google", "mistral", "bedrock")


def extra_of(provider: str) -> str:
    """The extra to install for a provider; `models` where this library has none of its own for it."""
    return "openai" if provider in _OPENAI else _OWN.get(provider, "models")


def missing_extra(spec: str) -> ConfigError:
    """The error for a model whose packages are not there; one for the name where nobody knows its provider."""
    provider = spec.partition(":")[0]
    layer = find_spec("pydantic_ai") is not None
    if provider not in _KNOWN and not layer and not provider.startswith("gateway/"):
        return unknown_provider(spec)
    extra = extra_of(provider)
    also = f" (and pip install 'pydantic-ai-slim[{provider}]')" if layer and extra == "models" else ""
    return MissingExtra(f"model {spec!r}{also}", extra)


def unknown_provider(spec: str) -> ConfigError:
    """The error for a name of which no provider is known, with the one that may have been meant."""
    provider = spec.partition(":")[0]
    close = difflib.get_close_matches(provider, _KNOWN, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"give one such as {', '.join(map(repr, _USUAL))}"
    return ConfigError(f"model {spec!r}: there is no provider {provider!r}; {meant}")
