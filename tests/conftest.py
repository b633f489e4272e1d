"""What every test may ask for."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, and no clock in the verdict.
settings.register_profile(
    "gate",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("gate")

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real-model", action="store_true", help="also run the tests that talk to a real language model")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--real-model"):
        return
    skip = pytest.mark.skip(reason="opt in with --real-model")
    for item in items:
        if item.get_closest_marker("real_model"):
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Reports go from one process to another in UTF-8, and what a test logs may hold half a character."""
    return _encodable((yield))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(member) for key, member in value.items()}
    return type(value)(map(_encodable, value)) if isinstance(value, list | tuple) else value


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of cases and transcripts beside the repository; tests that need it are skipped without it."""
    folder = Path(os.environ.get("HARNESS_SHARED") or ROOT.parent / "shared")
    if not (folder / "traces").is_dir():
        pytest.skip(f"no transcripts at {folder}; HARNESS_SHARED names another place")
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace that is not there yet, as for a new user."""
    return tmp_path / "workspace"
