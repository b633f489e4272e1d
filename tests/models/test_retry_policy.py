import pytest

from harness.errors import ConfigError, ModelAuthError, ModelRejected, ModelTimeout, ModelUnavailable
from harness.models import RetryPolicy

STEADY = RetryPolicy(jitter=lambda: 0.0)


def test_waits_double_up_to_the_cap():
    policy = RetryPolicy(attempts=9, jitter=lambda: 0.0)

    assert [policy.delay(n, ModelUnavailable("x")) for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


def test_jitter_shortens_a_wait_by_up_to_half():
    assert RetryPolicy(jitter=lambda: 0.5).delay(2, ModelTimeout("x")) == 1.5


def test_the_last_attempt_is_the_last():
    assert STEADY.delay(3, ModelUnavailable("x")) == 4
    assert STEADY.delay(4, ModelUnavailable("x")) is None


def test_one_attempt_means_no_retry():
    assert RetryPolicy(attempts=1).delay(1, ModelUnavailable("x")) is None


@pytest.mark.parametrize("error", [ModelAuthError("x"), ModelRejected("x"), ValueError("x")])
def test_what_will_not_help_is_not_tried(error):
    assert STEADY.delay(1, error) is None


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (0.0, 0.0), (-3.0, 0.0), (3_600.0, 60.0)])
def test_the_providers_wait_is_kept_up_to_a_minute(asked, waited):
    assert STEADY.delay(1, ModelUnavailable("x", retry_after=asked)) == waited


def test_a_thousand_attempts_do_not_overflow():
    assert RetryPolicy(attempts=5_000, jitter=lambda: 0.0).delay(4_000, ModelUnavailable("x")) == 30.0


@pytest.mark.parametrize("fields", [{"attempts": 0}, {"base": -1.0}, {"factor": 0.5}, {"cap": -1.0}])
def test_numbers_that_cannot_work_are_refused(fields):
    with pytest.raises(ConfigError, match="RetryPolicy"):
        RetryPolicy(**fields)
