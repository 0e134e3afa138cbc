# Two commands are all a newcomer needs: `make demo` and `make test`. Both set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One process a core, one thread each: threads that wait for each other are slower than no threads.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto

.PHONY: setup demo test test-all lint bench results clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "inbounds needs Python 3.11 or newer; say which with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py --out out/demo

# Shapes written in signatures are checked while the tests run; tests marked `plain` run without that hook.
test: $(READY)
	$(PYTEST) -m 'not slow and not plain'
	INBOUNDS_TYPECHECK=0 $(PYTEST) -m 'not slow and plain'

test-all: $(READY)
	$(PYTEST) -m 'not plain'
	INBOUNDS_TYPECHECK=0 $(PYTEST) -m plain

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/inbounds bench

# Every table and figure of README and docs, from the files in results/.
results: $(READY)
	$(BIN)/python -m inbounds.experiments

clean:
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .hypothesis
