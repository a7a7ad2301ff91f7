# Every target works on a fresh machine with Python 3.11 and make: the environment is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
BEAM := .venv-beam
WEB := .web
apt = { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends $(1); }
STAMP := $(VENV)/.installed

# The encoder that the models of `make assets` are fine-tuned from: the bundled one, or any checkpoint that reads English.
ENCODER ?= albert_tiny_en
ASSETS := runs/assets

.PHONY: demo assets test test-clients client-programs lint bench clean

demo: $(STAMP)  ## the main job end to end: fine-tune, export int8 TFLite, run it, report
	$(BIN)/albert-tf demo --out runs/demo --overwrite

# In float32 from fixed seeds, so that the same machine makes the same bytes again.
assets: $(STAMP)  ## the models of android_demo_assets: examples, three fine-tunings, export, golden answers
	$(BIN)/python android_demo_assets/examples/make_examples.py --large --out $(ASSETS)/examples
	$(call tuned,classification,messages,tsv,--epochs 6 --learning-rate 3e-4 --batch-size 16 --max-length 64)
	$(call tuned,tagging,entities,conll,--epochs 3 --learning-rate 5e-4 --batch-size 16 --max-length 128)
	$(call tuned,question-answering,questions,json,--epochs 2 --learning-rate 7e-4 --batch-size 16 --max-length 256)
	$(BIN)/albert-tf export android $(addprefix $(ASSETS)/,messages entities questions) \
		--licence android_demo_assets/licence.txt --out android_demo_assets --overwrite

# $(call tuned,TASK,NAME,SUFFIX,OPTIONS): a run folder from the examples of that name.
tuned = $(BIN)/albert-tf finetune $(1) --from $(ENCODER) --train $(ASSETS)/examples/$(2)_train.$(3) \
	--valid $(ASSETS)/examples/$(2)_dev.$(3) --out $(ASSETS)/$(2) --overwrite $(4)

test: $(STAMP)  ## all tests but those of other runtimes
	$(BIN)/python -m pytest -m "not clients" -n 2 --dist loadfile --ignore tests/test_clients_beam.py

test-clients: $(STAMP) $(PEERS)/.installed $(BEAM)/.installed client-programs $(WEB)/.installed  ## tests that need runtimes and systems beside ours
	$(BIN)/python -m pytest -m clients -n 2 --dist loadfile --ignore-glob "*/test_clients_peers_*" --ignore tests/test_clients_beam.py
	$(PEERS)/bin/python -m pytest -m clients tests/test_clients_peers_*.py
	$(BEAM)/bin/python -m pytest -m clients tests/test_clients_beam.py

lint: $(STAMP)  ## style, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Those left out take hours, or ask for a run.
bench: $(PEERS)/.installed  ## every benchmark, on real data in ALBERT_TF_DATA; docs/benchmarks.md says what they show
	for script in $(filter-out %/common.py %/task_data.py %/pretraining_gain.py %/early_exit.py %/quantization_aware.py,$(wildcard benchmarks/*.py)); do $(PEERS)/bin/python $$script || exit 1; done

clean:
	rm -rf $(VENV) $(PEERS) $(BEAM) $(WEB) runs build *.egg-info

$(STAMP): setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(PEERS)/.installed: setup.py constraints-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --constraint constraints-peers.txt pip setuptools
	$(PEERS)/bin/python -m pip install --quiet --constraint constraints-peers.txt --editable ".[garden,peers]" pytest
	touch $@

$(BEAM)/.installed: setup.py constraints-beam.txt
	$(PYTHON) -m venv $(BEAM)
	$(BEAM)/bin/python -m pip install --quiet --constraint constraints-beam.txt pip setuptools
	$(BEAM)/bin/python -m pip install --quiet --constraint constraints-beam.txt --editable ".[beam]" pytest
	touch $@

# What clients need beside Python packages; on Debian, as root, what is missing is installed.
client-programs:
	command -v javac || $(call apt,openjdk-17-jdk-headless)
	command -v npm || $(call apt,nodejs npm)
	command -v chromium || command -v google-chrome || $(call apt,chromium)
	$(PYTHON) -c "import ctypes; ctypes.CDLL('libusb-1.0.so.0')" || $(call apt,libusb-1.0-0)
	$(PYTHON) -c "import ctypes; ctypes.CDLL('libGLESv2.so.2'); ctypes.CDLL('libEGL.so.1')" || $(call apt,libgles2 libegl1)

# What the page of `albert-tf web` runs in the browser, and what drives one in tests: needs npm.
$(WEB)/.installed: export/web/npm/package.json export/web/npm/package-lock.json
	mkdir -p $(WEB)
	cp export/web/npm/package.json export/web/npm/package-lock.json $(WEB)
	npm ci --prefix $(WEB) --ignore-scripts --no-audit --no-fund
	touch $@
