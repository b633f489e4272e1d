"""Prices of tokens, where the package `genai-prices` (extra `cost`) is installed."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

__all__ = ["find_price"]


def find_price(provider: str, model: str, tokens: Mapping[str, int]) -> Decimal | None:
    """US dollars for tokens as a ledger counts them, at today's prices; None where nobody knows."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    read, written = tokens.get("cacheRead", 0), tokens.get("cacheWrite", 0)
    counted = Usage(
        # There, what was read from a cache or written to it is part of the input.
        input_tokens=tokens.get("input", 0) + read + written,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=tokens.get("output", 0),
    )
    try:
        return calc_price(counted, model_ref=model, provider_id=provider).total_price
    except (LookupError, ValueError):
        return None
