# Every target works on a fresh machine with Python 3.11 and make: the environment is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-clients lint bench clean

demo: $(STAMP)  ## the main job end to end: fine-tune, export int8 TFLite, run it, report
	$(BIN)/albert-tf demo --out runs/demo --overwrite

test: $(STAMP)  ## all tests but those of other runtimes
	$(BIN)/python -m pytest -m "not clients" -n 2 --dist loadfile

test-clients: $(STAMP)  ## tests that need runtimes beside ours
	$(BIN)/python -m pytest -m clients

lint: $(STAMP)  ## style, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)  ## every benchmark: minutes each; docs/benchmarks.md says what they show
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[peers]"
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) runs build *.egg-info

$(STAMP): setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@
