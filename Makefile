# make demo and make test do all of the set-up by themselves, in .venv, without root.

.PHONY: demo test check fmt bench chaos trace schemas clean
.DEFAULT_GOAL := test

PY := .venv/bin/python
# Two for each core: tests wait more than they compute.
WORKERS ?= $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 2))))
ISSUE ?=
RUNS ?= 10000

demo: .venv/installed
	@.venv/bin/turngate demo

test: .venv/ready check
	@$(PY) -m pytest -q -n $(WORKERS)

check: .venv/ready
	@.venv/bin/ruff format -q --check . || { echo "make fmt puts the format right"; exit 1; }
	@.venv/bin/ruff check -q .
	@.venv/bin/mypy --no-error-summary
	@floors=$$(.venv/bin/lint-imports --no-cache 2>&1) || { echo "$$floors"; exit 1; }

fmt: .venv/ready
	@.venv/bin/ruff format -q .
	@.venv/bin/ruff check -q --fix .

bench: .venv/ready
	@$(PY) -m bench

chaos: .venv/ready
	@$(PY) -m bench.chaos --runs $(RUNS) --write bench/chaos.md

trace: .venv/ready
	@$(PY) tests/trace.py $(if $(ISSUE),--issue $(ISSUE))

schemas: .venv/installed
	@for name in settings input output; do .venv/bin/turngate schema $$name > schemas/$$name.schema.json; done

clean:
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/installed: pyproject.toml
	@sh tools/venv.sh .
	@touch $@

.venv/ready: pyproject.toml
	@sh tools/venv.sh '.[dev]'
	@touch .venv/installed $@
