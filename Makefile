# Everything a newcomer needs. Each target sets up what it uses; only Python (>= 3.11) and make are assumed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ROOTS  := proto common server party sim bench
LOCK   := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --constraint constraints.txt \
    --generate-hashes --no-annotate --custom-compile-command 'make lock'

.DEFAULT_GOAL := help
.PHONY: help setup demo proto quick check docs test bench e2e lock bundle clean fuzz mutants licences

help:            ## list the targets
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: $(STAMP)  ## make the virtual environment and install the package with its tools

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Colonnade needs Python 3.11 or newer: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)   ## three organizations, three messy files: align, approve, fit, score, as real processes here
	$(BIN)/colonnade demo

proto: $(STAMP)  ## generate the protobuf bindings again
	$(BIN)/python proto/generate.py

quick: $(STAMP)  ## lint, then the tests that are neither slow nor statistical: under a minute
	$(BIN)/ruff check .
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 -m 'not slow and not statistical'

check: $(STAMP)  ## lint, types, import layers, proto drift and lint, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(ROOTS)
	$(BIN)/mypy tests
	$(BIN)/mypy examples/*.py docs/hooks/*.py
	$(BIN)/lint-imports
	$(BIN)/python proto/generate.py --check
	$(BIN)/buf lint proto
	$(MAKE) --no-print-directory docs

docs: $(STAMP)   ## build the documentation into build/site; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # not --quiet, which hides warnings from --strict

test: check      ## everything above, then the test suite, in four processes
	$(BIN)/python -c 'from colonnade.party.vault.warming import warm_all; warm_all()'  # else each compiles
	$(BIN)/pytest --numprocesses 4

bench: $(STAMP)  ## the benchmarks and the crash harness
	$(BIN)/colonnade bench core
	$(BIN)/colonnade bench vertical
	$(BIN)/colonnade bench crash
	$(BIN)/colonnade bench faults --quick

fuzz: $(STAMP)   ## fuzz every parser, 10 s each; guided by coverage where atheris is installed
	cd tests && PYTHONPATH=. ../$(BIN)/python -m fuzz.run --seconds 10

mutants: $(STAMP) ## plant every bug in a copy of the tree and see that its tests go red
	cd tests && PYTHONPATH=. ../$(BIN)/python -m mutants.run

licences: $(STAMP) ## list the licences of what the images install
	$(BIN)/python deploy/licences.py

e2e: $(STAMP)    ## build the images and run the containers' tests; needs a Docker engine, or root to start one
	COLONNADE_E2E=1 $(BIN)/pytest tests/e2e

lock: $(STAMP)   ## pin the images' dependencies again, with hashes, from constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(LOCK) deploy/requirements-build.in --output-file deploy/requirements-build.txt
	$(LOCK) pyproject.toml --extra postgres --extra sealed --extra console --output-file deploy/requirements-party.txt
	$(LOCK) pyproject.toml --extra postgres --extra console --override deploy/left-out-coordinator.txt \
	    --output-file deploy/requirements-coordinator.txt

bundle: $(STAMP)  ## wheels, images if there is a Docker engine, checksums and a bill of materials, in one tar
	@mkdir -p build
	$(BIN)/python deploy/bundle/make.py --out build/colonnade-bundle.tar $$(docker info >/dev/null 2>&1 && echo --images)

clean:           ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build/site
