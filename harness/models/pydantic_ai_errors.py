"""Errors of providers, their SDKs and pydantic-ai become ours here, and nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from harness.errors import (
    ConfigError,
    ContextOverflow,
    HarnessError,
    MissingSetting,
    ModelAuthError,
    ModelError,
    ModelMalformed,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)
from harness.models.providers import missing_extra, unknown_provider
from harness.models.windows import revealed_window

__all__ = ["is_overflow", "setup_error", "translated"]

_OVERFLOW = re.compile(
    r"context_length_exceeded|context[ _]length|context[ _]window|context size|maximum context"
    r"|too many (?:input )?tokens|exceeds? the model'?s maximum|reduce the length|(?:prompt|input) is too long"
    r"|(?:input|prompt|context|model)\b.{0,60}\btoken limit|exceed\w*\b.{0,60}\btoken limit",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"rate.?limit|per[ _-]?(?:minute|min|hour|day|second)|\b[tr]p[mhd]\b|quota|try again (?:in|later)", re.IGNORECASE
)
_LONGEST_DETAIL = 500
_VARIABLE = re.compile(r"\bset the `([A-Z][A-Z0-9_]+)`", re.IGNORECASE)
_UNNAMED = {"provide a `region_name`": "AWS_DEFAULT_REGION"}

# By the name of a class or of one of its bases: these differ between versions and SDKs, and importing
# every vendor's SDK to compare types is what the late import avoids. The first that fits decides.
_BY_NAME: Mapping[str, type[ModelError]] = {
    "ModelRateLimitError": ModelUnavailable,
    "ModelContextWindowExceededError": ContextOverflow,
    "ModelAuthenticationError": ModelAuthError,
    "ModelQuotaExceededError": ModelRejected,
    "ModelRequestTimeout": ModelTimeout,
    "ModelTimeoutError": ModelTimeout,
    "ModelUnavailableError": ModelUnavailable,
    "ModelServerError": ModelUnavailable,
    "ModelConnectionError": ModelUnavailable,
    "ModelRequestRejectedError": ModelRejected,
    "ContentFilterError": ModelRejected,
    "UnexpectedModelBehavior": ModelMalformed,
    "APITimeoutError": ModelTimeout,
    "TimeoutException": ModelTimeout,
    "TimeoutError": ModelTimeout,
    "APIConnectionError": ModelUnavailable,
    "TransportError": ModelUnavailable,
    "ConnectionError": ModelUnavailable,
    "UserError": ModelRejected,
}
_BY_STATUS: Mapping[int, type[ModelError]] = {
    401: ModelAuthError,
    403: ModelAuthError,
    408: ModelTimeout,
    409: ModelUnavailable,
    425: ModelUnavailable,
    429: ModelUnavailable,
}
_ADVICE: Mapping[type[ModelError], str] = {
    ModelUnavailable: "try again later",
    ModelTimeout: "try again, or allow more time",
    ModelMalformed: "try again",
    ModelAuthError: "check the provider's key and what it may use",
    ModelRejected: "change the request",
    ContextOverflow: "shorten the context",
    ModelError: "see the cause",
}


def translated(error: BaseException, provider: str, model: str) -> HarnessError:
    """Our error for whatever a request to `model` raised. Our own pass through."""
    if isinstance(error, HarnessError):
        return error
    if isinstance(error, BaseExceptionGroup):  # of a fallback model: its last attempt speaks for all
        return translated(error.exceptions[-1], provider, model)
    kind = _kind(error)
    message = f"{provider}:{model}: {_said(error)[:_LONGEST_DETAIL]}; {_ADVICE[kind]}"
    if kind is ContextOverflow:
        return ContextOverflow(message, provider=provider, model=model, window=revealed_window(str(error)))
    return kind(message, provider=provider, model=model, retry_after=_retry_after(error))


def is_overflow(text: str) -> bool:
    """Whether a provider's words say that the request was too long, and not that there were too many requests."""
    return _OVERFLOW.search(text) is not None and _RATE.search(text) is None


def setup_error(error: Exception, spec: str) -> ConfigError:
    """Our error for a model that could not be set up: an unknown name, a missing key, address or package."""
    if isinstance(error, ImportError):
        return missing_extra(spec)
    if wanted := _variable(str(error)):
        return MissingSetting(f"model {spec!r}", wanted)
    if str(error).startswith(("Unknown model", "Unknown provider")):
        return unknown_provider(spec)
    return ConfigError(f"model {spec!r} cannot be used: {error}; correct the name or set what is missing")


def _variable(said: str) -> str | None:
    """The environment variable that a provider lacks; not all of them name it."""
    found = _VARIABLE.search(said)
    return found[1] if found else next((name for lack, name in _UNNAMED.items() if lack in said), None)


def _said(error: BaseException) -> str:
    """The provider's own words, where its answer has them, and not the whole answer as Python prints it."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    for found in (inner, body):
        words = found.get("message") if isinstance(found, Mapping) else found
        if isinstance(words, str) and words:
            return f"status {_status(error)}: {words}"
    if isinstance(body, Mapping):
        return f"status {_status(error)}: {json.dumps(body, ensure_ascii=False, default=str)}"
    return str(error) or type(error).__name__


def _kind(error: BaseException) -> type[ModelError]:
    status = _status(error)
    if status != 429 and is_overflow(str(error)):
        return ContextOverflow
    names = [base.__name__ for base in type(error).__mro__]
    for name in names:
        if name in _BY_NAME:
            return _BY_NAME[name]
    if status is not None:
        return _BY_STATUS.get(status) or (ModelUnavailable if status >= 500 else ModelRejected)
    # Without a status or a category pydantic-ai reports streams that broke off.
    return ModelUnavailable if "ModelAPIError" in names else ModelError


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _retry_after(error: BaseException) -> float | None:
    asked: Any = getattr(error, "retry_after", None)
    headers = getattr(error, "headers", None)
    if asked is None and isinstance(headers, Mapping):
        asked = headers.get("retry-after")
    try:
        return None if asked is None else max(0.0, float(asked))
    except ValueError:  # a date; only the adapter's own reading of it is used
        return None
