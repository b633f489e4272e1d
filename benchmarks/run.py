"""All benchmarks of sessions, one after the other: `python benchmarks/run.py [FOLDER]`.

Prints their tables and leaves `persist_turn.json` and `ledger.json` in the folder (default: here).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name in ("persist_turn", "ledger"):
        print(f"\n{name}\n", flush=True)
        subprocess.run([sys.executable, HERE / f"{name}.py", "--json", folder / f"{name}.json"], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
