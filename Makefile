# Each target does all of its own set-up in .venv; PYTHON names the interpreter that makes it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup

.PHONY: demo test test-all lint format docs clean

demo: $(SETUP)
	$(BIN)/python examples/demo.py

test: $(SETUP)-test
	$(BIN)/python -m pytest -n auto -m "not (cuda or rocm or nix or gpu or network or slow)"

test-all: $(SETUP)-test
	$(BIN)/python -m pytest -n auto -m "not gpu"

lint: $(SETUP)-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/gersemi --check cmake

format: $(SETUP)-lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/gersemi --in-place cmake

$(VENV)/pyvenv.cfg:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "builder needs Python 3.10 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(SETUP): $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(SETUP)-test: $(SETUP) tests/install_torch.py builder/data/pins.toml
	$(BIN)/python -m pip install --quiet --group test
	$(BIN)/python tests/install_torch.py
	touch $@

$(SETUP)-lint: $(SETUP)
	$(BIN)/python -m pip install --quiet --group lint --group test
	touch $@

clean:
	rm -rf $(VENV) build dist demo site .pytest_cache .mypy_cache .ruff_cache
