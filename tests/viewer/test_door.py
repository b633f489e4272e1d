"""What the room hands out when its packages are not there."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["agent_viewer", "local_viewer", "viewer_app"])
def test_without_its_packages_each_name_says_what_to_install(name: str) -> None:
    code = f"""
import sys
sys.modules["starlette"] = None
from harness.errors import MissingExtra
try:
    from harness.viewer import {name}
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"harness.viewer.{name} needs packages that are not installed: pip install 'dualtrack-harness[viewer]'\n"
    )
