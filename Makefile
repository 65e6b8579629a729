# Two commands set everything up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
TIERS := slow browser service claims

.PHONY: demo test lint $(TIERS) coverage clean

demo: $(VENV)/.installed
	$(BIN)/ronid demo --out demo-run

# The fast tier, with the linters in its time.
test: $(VENV)/.installed-dev
	started=$$(date +%s) && $(MAKE) lint && $(PYTEST) --tier fast --started $$started --durations 20

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(TIERS): $(VENV)/.installed-dev
	$(PYTEST) --tier $@ --durations 20

coverage: $(VENV)/.installed-dev
	$(PYTEST) --cov=ronid --cov-report=term

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet --constraint constraints.txt torch
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo-run .pytest_cache .mypy_cache .ruff_cache .hypothesis
