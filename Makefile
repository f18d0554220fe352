# Two commands for a newcomer: `make demo` and `make test`. Each does all the set-up it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint format bench docs browser-test freeze clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

# One stamp per dependency group: nothing is reinstalled while pyproject.toml and constraints.txt stay the same.
$(VENV)/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Goldseam needs Python >= 3.11, but $(PYTHON) is $$($(PYTHON) -V). Hint: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	@touch $@

$(VENV)/test.stamp: pyproject.toml constraints.txt $(VENV)/pip.stamp
	$(PIP) install --constraint constraints.txt --editable ".[all]" --group test
	@touch $@

$(VENV)/%.stamp: pyproject.toml constraints.txt $(VENV)/test.stamp
	$(PIP) install --constraint constraints.txt --group $*
	@touch $@

demo: $(VENV)/test.stamp ## damage a table, restore it, look at the seam
	$(BIN)/goldseam demo

test: $(VENV)/test.stamp ## the tests (a few minutes on two cores)
	$(RUN) pytest -n 2 -m "not slow and not browser" $(ARGS)

test-slow: $(VENV)/bench.stamp ## the checks that take longer
	$(RUN) pytest -n 2 -m "slow" $(ARGS)

lint: $(VENV)/test.stamp ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/test.stamp ## let ruff lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/bench.stamp ## the benchmarks; ARGS="separation" for one room
	$(RUN) benchmarks $(ARGS)

docs: $(VENV)/docs.stamp ## the documentation, into site/
	$(BIN)/mkdocs build --strict

browser-test: $(VENV)/browser.stamp ## tests in a real browser
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq install -y chromium; } || \
	  { echo "browser-test needs chromium. Hint: apt-get install chromium"; exit 1; }
	$(RUN) pytest -m "browser" $(ARGS)

freeze: $(VENV)/bench.stamp $(VENV)/docs.stamp $(VENV)/browser.stamp ## write constraints.txt from what is installed
	$(BIN)/python -m pip freeze --exclude-editable --local > constraints.txt

clean: ## remove what the other targets made
	rm -rf $(VENV) site goldseam-demo .pytest_cache .mypy_cache .ruff_cache
