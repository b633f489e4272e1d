"""The window that a refusal names, in the words of the providers."""

import pytest

from harness.models.pydantic_ai_errors import translated
from harness.models.windows import revealed_window


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", 8192),
        ("prompt is too long: 208310 tokens > 200000 maximum", 200_000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4096),
        ("request (9320 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192),
        ("Input length 140000 exceeds the context window of 131,072 tokens", 131_072),
        ("input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease one", 200_000),
        ("context_length_exceeded", None),
        ("Input is too long for requested model.", None),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", None),
        ("context length 12", None),
    ],
)
def test_the_number_that_is_the_limit_is_found_and_no_other(text: str, window: int | None) -> None:
    assert revealed_window(text) == window


def test_the_error_of_an_overflow_carries_the_window() -> None:
    error = translated(ValueError("prompt is too long: 208310 tokens > 200000 maximum"), "p", "m")
    assert (type(error).__name__, error.window) == ("ContextOverflow", 200_000)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"message": "No such key.", "code": None}, "status 401: No such key."),
        ({"type": "error", "error": {"message": "No such key."}}, "status 401: No such key."),
        ({"error": "No such key."}, "status 401: No such key."),
        ({"detail": None}, 'status 401: {"detail": null}'),
    ],
)
def test_an_error_has_the_providers_words_and_no_python(body: dict[str, object], said: str) -> None:
    error = ValueError(f"status_code: 401, body: {body}")
    error.body, error.status_code = body, 401  # type: ignore[attr-defined]
    assert str(translated(error, "p", "m")).startswith(f"p:m: {said}; ")
