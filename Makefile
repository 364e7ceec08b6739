# Torch-PIM: `make` lists the targets.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
INSTALLED := build/installed

# No run reaches for the network or reports usage, and idle OpenMP threads do not spin on cores that others need.
export HF_HUB_OFFLINE := 1
export MLFLOW_DISABLE_TELEMETRY := true
export OMP_WAIT_POLICY := passive

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint format bench clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 10

venv: $(STAMP) ## Create .venv with the pinned environment (again only if pyproject.toml or constraints.txt changed)

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11, or run 'make PYTHON=/path/to/python3.11 ...'" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt .pkg/torch_pim/__init__.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,models,dev]'
	@touch $@

demo: $(STAMP) ## What every policy makes of real models, and a small one that runs
	$(BIN)/torch-pim demo

# The tests run on the package as users get it: a wheel, installed beside the checkout. What a wheel would lack (a
# preset, the model, a sub-package) therefore fails here. `build` goes first: setuptools would pack stale files from it.
test: $(STAMP) ## Run all tests on the installed package; ARGS='-k name' chooses, ARGS=--update-golden rewrites golden files
	@rm -rf build
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --target $(INSTALLED) .
	PYTHONPATH="$(CURDIR)/$(INSTALLED)" $(BIN)/pytest -o pythonpath= $(ARGS)

lint: $(STAMP) ## Check style, format, types and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## Sort imports and format the code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(STAMP) ## Measure the speed of the program itself (never asserted in tests)
	$(BIN)/pytest benchmarks --benchmark-only $(ARGS)

clean: ## Remove builds and caches; .venv stays
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
