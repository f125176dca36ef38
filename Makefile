# Two commands on a fresh machine: `make run` streams an answer, `make test` runs every check that CI runs.
SHELL := /bin/bash
PYTHON ?= python3
# Elsewhere than on a machine that has the wheel: TORCH_INDEX=<address of the CPU builds> make run
TORCH_INDEX ?=
PROMPT ?= Why is the sky blue?
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test setup setup-test lint types layers docs peers check-data clean
.DELETE_ON_ERROR:

# The prompt travels through the environment untouched, so that `$5`, quotes and line breaks survive.
run: export LOPE_PROMPT = $(value PROMPT)
run: setup
	@$(BIN)/lope run -- "$$LOPE_PROMPT"

test: setup-test lint types layers docs
	@OMP_NUM_THREADS=1 LOPE_DATA="$${LOPE_DATA:-$(abspath ../shared/data)}" \
		$(BIN)/python -m pytest -q -n auto --dist loadfile

setup: $(VENV)/.run-ready

setup-test: $(VENV)/.test-ready

$(VENV)/bin/python:
	@echo "setting up $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lope needs Python 3.11 or newer")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run-ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing lope (a few minutes the first time)"
	@$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	@$(PIP) -e .
	@touch $@

$(VENV)/.test-ready: pyproject.toml constraints.txt $(VENV)/.run-ready
	@echo "installing what the checks need"
	@$(PIP) -e '.[hf,learn,plan]'
	@$(PIP) $$($(BIN)/python -c 'import tomllib; g = tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]; print(" ".join(g["test"] + g["docs"]))' | sed 's/>=[^ ]*//g')
	@touch $@

lint: setup-test
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup-test
	@$(BIN)/mypy

layers: setup-test
	@$(BIN)/lint-imports --no-cache

docs: setup-test
	@$(BIN)/python -m sphinx -q -n -W --keep-going -b html docs docs/_build/html

# What `lope bench speed --against` compares with, each in an environment of its own: make peers PEERS="llama.cpp openvino"
peers: setup
	@$(BIN)/python -m lope.bench.peers.environment $(PEERS)

clean:
	rm -rf $(VENV) docs/_build build dist .mypy_cache .ruff_cache .pytest_cache
