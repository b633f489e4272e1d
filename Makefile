# One command per intention. Everything runs in .venv, which is made at first use.
PY := .venv/bin/python
.PHONY: quickstart test check format pictures clean

.venv/.ready: pyproject.toml constraints.txt
	python3 -m venv .venv
	$(PY) -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@

quickstart: .venv/.ready   ## the main job, with no key and no network
	.venv/bin/harness quickstart

test: .venv/.ready         ## all tests
	$(PY) -m pytest -n auto --dist worksteal

check: .venv/.ready        ## lint, format, types, import layers
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

format: .venv/.ready       ## let ruff write
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

pictures: .venv/.ready     ## the pictures in docs/images, anew; takes chromium
	$(PY) tests/viewer/screenshots.py

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
