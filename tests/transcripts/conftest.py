"""Small session files, written line by line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from harness.transcripts import Transcript, read

Line: TypeAlias = dict[str, Any] | bytes
Reader: TypeAlias = Callable[..., Transcript]


@pytest.fixture
def reading(tmp_path: Path) -> Reader:
    """Writes the lines given, objects as JSON and bytes as they are, and reads the file."""

    def write_and_read(*lines: Line, name: str = "session.jsonl") -> Transcript:
        raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        path = tmp_path / name
        path.write_bytes(b"\n".join(raw) + b"\n")
        return read(path)

    return write_and_read
