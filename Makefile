# Two commands are all a newcomer needs: `make demo` and `make test`. Both set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One process a core, one thread each: threads that wait for each other are slower than no threads.
PYTEST := PYTHONUTF8=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto
# What fails is tried once more: some tests start several processes, browsers or clusters, and wait for them.
AGAIN = $(1) || { echo 'Once more, what failed:'; $(1) --last-failed --last-failed-no-failures none; }
CORE := $(addprefix tests/,regions annotations constraints regularisers losses supervision test_contract.py)
LABORATORY := tests/reproduction tests/benchmarks tests/torture
PRODUCT := tests $(addprefix --ignore=,$(LABORATORY))

.PHONY: setup cluster demo studio test test-core test-reproduction nnunet test-nnunet test-all lock lint docs bench torture torture-sample results dist release clean

setup: $(READY)

# Everything that is installed is a wheel whose hash is in the lock file, but for torch; nothing is built but this package.
PIP := $(BIN)/python -m pip install --quiet --only-binary :all:

$(READY): pyproject.toml requirements.lock torch.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "inbounds needs Python 3.11 or newer; say which with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-deps --requirement requirements.lock
	$(PIP) --requirement torch.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

# The lock files anew, after a change of pyproject.toml; what need not change stays. All anew: make lock UPGRADE=--upgrade
COMPILE := $(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command 'make lock'
lock: $(READY)
	$(COMPILE) --extra dev --excludes torch.txt --output-file requirements.lock pyproject.toml
	printf 'ray\nsubmitit\n' | $(COMPILE) --constraint requirements.lock --output-file cluster.lock -

# What the tests of `--on slurm` and `--on ray` need beside that; without it they are skipped.
cluster: $(READY)
	$(PIP) --require-hashes --no-deps --requirement cluster.lock

demo: $(READY)
	$(BIN)/python examples/demo.py --out out/demo

# A page to click on generated hearts, train, look and correct.
studio: $(READY)
	test -d out/studio/hearts || $(BIN)/python -m inbounds example out/studio/hearts
	$(BIN)/python -m inbounds studio out/studio/hearts/scans --project out/studio/project --classes background,RV,MYO,LV

# Shapes written in signatures are checked while the tests run; tests marked `plain` run without that hook.
test: $(READY)
	$(call AGAIN,$(PYTEST) -m 'not slow and not plain' $(PRODUCT))
	$(call AGAIN,INBOUNDS_TYPECHECK=0 $(PYTEST) -m 'not slow and plain' $(PRODUCT))

# The theory alone: from regions to supervision.
test-core: $(READY)
	$(PYTEST) -m 'not slow and not plain' $(CORE)

# What drives the reproduction of the paper, the benchmarks and the campaigns.
test-reproduction: $(READY)
	$(call AGAIN,$(PYTEST) -m 'not slow and not plain' $(LABORATORY))
	$(call AGAIN,INBOUNDS_TYPECHECK=0 $(PYTEST) -m 'not slow and plain' $(LABORATORY))

# nnU-Net with bounds, in an environment of its own: it brings 1.9 GB.
NNUNET := .venv-nnunet
$(NNUNET)/.ready: pyproject.toml torch.txt
	$(PYTHON) -m venv $(NNUNET)
	$(NNUNET)/bin/python -m pip install --quiet --constraint torch.txt nnunetv2==2.8.1 '.[data]'
	# Its networks import a torchvision built for CUDA, whose operators a torch for CPUs does not have.
	$(NNUNET)/bin/python -c 'import importlib.util, pathlib; found = importlib.util.find_spec("torchvision"); \
		found and pathlib.Path(found.origin).with_name("_meta_registrations.py").write_text("")'
	touch $@

nnunet: $(NNUNET)/.ready

test-nnunet: $(READY) $(NNUNET)/.ready
	$(PYTEST) -m 'not slow and not plain' tests/nnunet

test-all: $(READY)
	$(PYTEST) -m 'not plain'
	INBOUNDS_TYPECHECK=0 $(PYTEST) -m plain

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pip check

# The manual as pages for the browser; a warning or a broken link fails.
docs: $(READY)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs out/docs

bench: $(READY)
	$(BIN)/python -m benchmarks

# Every command killed, fed with broken files and given a lot: about half an hour on two cores.
torture: $(READY)
	$(BIN)/python -m torture all --summary torture/summary.json

# A few cases of each, the same ones each time: three minutes.
torture-sample: $(READY)
	$(BIN)/python -m torture sample

# Every table and figure of README, docs and reproduction/, from the files in reproduction/results/.
results: $(READY)
	$(BIN)/python -m reproduction.pages

# What is released: wheel, source archive, and the list of what they bring, which lies in the wheel as well.
dist: export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),315532800)
dist: $(READY)
	$(BIN)/python -m release

# The same, tried in fresh environments with each extra, on other Pythons too: make release PYTHONS="python3.11 python3.13"
PYTHONS ?= $(PYTHON)
release: dist
	$(BIN)/python -m release.trial $(addprefix --python=,$(PYTHONS))

clean:
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .hypothesis
