# The commands the README names. Everything runs from .venv; a second set-up takes seconds.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.tigon-ready

.PHONY: setup demo test test-fast check format clean

setup: $(STAMP)

# torch first and pinned: an unpinned torch may resolve to a build with gigabytes of CUDA libraries.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable '.[kernels,dev]'
	touch $(STAMP)

demo: setup
	$(BIN)/tigon demo

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/agentskills validate skills/liger-kernel-dev

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist
