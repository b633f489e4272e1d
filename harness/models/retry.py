"""When a failed model request is worth another try, and how long to wait before it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import ConfigError, ModelError

__all__ = ["RetryPolicy"]

_LONGEST_ASKED_WAIT = 60.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits that double, shortened at random so that a crowd does not come back at once.

    attempts  requests in all, the first one included; 1 for no retry
    base      seconds before the second attempt
    factor    how much longer each further wait is
    cap       longest wait in seconds that this policy chooses itself
    jitter    gives a number from 0 to below 1; a wait is shortened by up to half of itself with it

    A pure value: it decides, the caller sleeps. Raises `ConfigError` for numbers that cannot work.
    """

    attempts: int = 4
    base: float = 1.0
    factor: float = 2.0
    cap: float = 30.0
    jitter: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigError(f"RetryPolicy: attempts is {self.attempts}; give 1 (no retry) or more")
        if self.base < 0 or self.cap < 0 or self.factor < 1:
            raise ConfigError("RetryPolicy: base and cap must not be negative and factor not below 1; change them")

    def delay(self, attempt: int, error: BaseException) -> float | None:
        """Seconds to wait after attempt number `attempt` (from 1) failed with `error`; None to give up.

        Only errors that are marked `retryable` are worth it. A wait the provider asked for is kept
        as it is, up to 60 s; it may then refuse once more.
        """
        if attempt >= self.attempts or not isinstance(error, ModelError) or not error.retryable:
            return None
        if error.retry_after is not None:
            return min(max(error.retry_after, 0.0), _LONGEST_ASKED_WAIT)
        return self._backoff(attempt)

    def _backoff(self, attempt: int) -> float:
        # The exponent is bounded: a float power overflows long after the cap has been reached.
        full = min(self.cap, self.base * self.factor ** min(attempt - 1, 64))
        return full * (1 - 0.5 * self.jitter())
