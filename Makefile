# Every target works by itself from a clean clone: what it needs is made first, once.

PYTHON ?= python3
BIN    := .venv/bin
BENCH  := .venv-bench/bin
PIP    := -m pip install --disable-pip-version-check -qq

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint bench soak clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

setup: .venv/installed ## make .venv with the package and its development tools

demo: setup ## break some histories and mend them
	@$(BIN)/python examples/demo.py

test: setup ## run the tests
	$(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal

lint: setup ## style, types and architecture
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

bench: .venv-bench/installed ## measure against the peers, in an environment of its own
	@$(BENCH)/python benchmarks/run.py

soak: setup ## run the whole sweeps, printing what they covered
	SUTURE_EXAMPLES=400 $(BIN)/pytest -m 'soak or properties' -n auto --maxprocesses 8 --dist worksteal

clean: ## remove everything that the other targets made
	rm -rf .venv .venv-bench build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: pyproject.toml
	@echo "installing into .venv (about a minute)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) -e '.[dev]'
	@touch $@

# deepagents' pins may clash with ours, so it never shares an environment with the tests.
.venv-bench/installed: pyproject.toml
	@echo "installing into .venv-bench (about a minute)"
	@$(PYTHON) -m venv .venv-bench
	@$(BENCH)/python $(PIP) -e . deepagents
	@touch $@
