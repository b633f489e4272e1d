"""Run by the gate in the environment of an installed wheel, in a folder that has modules named like our rooms."""

import importlib.resources
import sys

import harness

HEAVY = ("reactivex", "fsspec", "pydantic_ai", "sqlalchemy")
loaded = [name for name in HEAVY if name in sys.modules]
if loaded:
    raise SystemExit(f"import harness loads {', '.join(loaded)}")
if not importlib.resources.files("harness").joinpath("py.typed").is_file():
    raise SystemExit("the wheel has no py.typed")

missing = [name for name in harness.__all__ if not hasattr(harness, name)]
if missing:
    raise SystemExit(f"harness.__all__ names what is not there: {', '.join(missing)}")

import harness.filesystem  # noqa: E402  (after the look at what the face alone loads)
import harness.hooks  # noqa: E402
import harness.sessions  # noqa: E402

print(f"{harness.__file__}: {len(harness.__all__)} names, light to import, no user module touched")
