# make demo and make test set up everything they need in .venv, without root.

.PHONY: demo test test-all check fmt docs bench chaos cluster frameworks fuzz hosts mutants picture projects properties reference release trace schemas api hosts-table clean
.DEFAULT_GOAL := test

PY := .venv/bin/python
STEP := sh tools/step.sh
PYTEST = $(PY) -m pytest -q -n $(WORKERS) --dist worksteal
# Two for each core, since tests wait more than they compute. A worker without tests takes some of another one.
WORKERS ?= $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 2))))
ISSUE ?=
RUNS ?= 10000
STORE ?= sqlite
SECONDS ?= 600
ONLY ?=
SOURCES ?= .projects/sources

demo: .venv/installed
	@.venv/bin/turngate demo

test: .venv/ready check
	@$(STEP) tests 'each promise once, about two minutes on two cores' $(PYTEST) -m 'not slow'

# Also what repeats over SSH, crashes, terminals and large libraries (tests/tiers.py).
test-all: test .venv/frameworks
	@$(STEP) slow 'the other tests, about five minutes on two cores' $(PYTEST) -m slow

check: .venv/ready
	@$(STEP) ruff 'format and lint' sh -c '.venv/bin/ruff format -q --check . || { echo "run make fmt"; exit 1; }; .venv/bin/ruff check -q .'
	@$(STEP) mypy 'types, a minute or two the first time' .venv/bin/mypy --no-error-summary
	@$(STEP) imports 'layers of the modules' .venv/bin/lint-imports --no-cache

fmt: .venv/ready
	@.venv/bin/ruff format -q .
	@.venv/bin/ruff check -q --fix .

# The site of the documentation, in site/. A link that leads nowhere is an error.
docs: .venv/ready
	@.venv/bin/zensical build --strict

bench: .venv/ready
	@$(PY) -m bench

chaos: .venv/ready
	@$(PY) -m bench.chaos --runs $(RUNS) --store $(STORE) --write bench/chaos.md

# Three workers and a parent on a PostgreSQL of their own; needs its programs, and ends by itself.
cluster: .venv/ready
	@$(PY) -m tools.cluster

# The suite of StopGates with the lowest and the newest version of each framework, in .frameworks.
frameworks: .venv/ready
	@$(PY) tools/frameworks.py $(if $(ONLY),--only '$(ONLY)')

fuzz: .venv/ready
	@$(PY) -m bench.fuzz --seconds $(SECONDS) $(if $(ONLY),--only '$(ONLY)')

hosts: .venv/ready
	@$(PY) -m bench.hosts $(if $(ONLY),--only '$(ONLY)')
	@$(if $(ONLY),true,$(PY) -m bench.hosts.acp)

mutants: .venv/ready
	@$(PY) tools/mutants.py --workers $(WORKERS) --only '$(ONLY)'

projects: .venv/ready
	@$(PY) -m bench.projects --sources '$(SOURCES)' $(if $(ONLY),--only '$(ONLY)')

picture: .venv/ready
	@$(PY) tools/picture.py

properties: .venv/ready
	@$(PYTEST) -m hypothesis --hypothesis-profile thorough

trace: .venv/ready
	@$(PY) tests/trace.py $(if $(ISSUE),--issue $(ISSUE)) $(if $(DRAW),--draw $(DRAW)) $(if $(SEED),--seed $(SEED))

reference: .venv/ready
	@$(PY) -m tools.reference
	@$(PY) -m tools.tables

release: .venv/ready
	@sh tools/release.sh

schemas: .venv/installed
	@for name in settings input output; do .venv/bin/turngate schema $$name > schemas/$$name.schema.json; done

api: .venv/ready
	@$(PY) tools/api.py

hosts-table: .venv/ready
	@$(PY) tools/hosts.py

clean:
	rm -rf .venv .frameworks dist site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/installed: pyproject.toml
	@sh tools/venv.sh .
	@touch $@

.venv/ready: pyproject.toml
	@sh tools/venv.sh '.[dev]'
	@touch .venv/installed $@

.venv/frameworks: pyproject.toml | .venv/ready
	@sh tools/venv.sh '.[dev,frameworks]'
	@touch $@
