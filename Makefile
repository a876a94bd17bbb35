# make demo    run-time packages only (no torch), then two first kernels  make test       everything quick, in parallel
# make lint    ruff and mypy                                              make test-full  the slow marks as well
# make build   a base with the GPU in front, into build/model: make build BASE=Qwen/Qwen3.5-2B MODEL=build/model
# make bench   what measures; prints tables                                 make docs      the pages, into build/site
#
# Everything lives in .venv. Stamps make a second call quick. Where pip should look elsewhere (a mirror, or the
# CPU-only index of torch), set PIP_FLAGS: make test PIP_FLAGS="--extra-index-url https://..."

PYTHON ?= python3
PIP_FLAGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q $(PIP_FLAGS) -c constraints.txt
WORKERS ?= 2
export OMP_NUM_THREADS ?= 1
export PYTHONUNBUFFERED = 1

.PHONY: demo test test-full test-engines build lint bench docs clean
.DEFAULT_GOAL := test

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "qgpu needs Python 3.11 or newer, but $(PYTHON) is %d.%d: install one and call make PYTHON=python3.11" % sys.version_info[:2])'
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@touch $@

$(VENV)/run.stamp: $(VENV)/python.stamp pyproject.toml constraints.txt
	@echo "installing qgpu and its run-time packages into $(VENV)"
	@$(PIP) -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	@echo "installing the development packages (torch and transformers among them) into $(VENV)"
	@$(PIP) -e '.[dev]'
	@touch $@

DEMO_EVAL = qgpu eval "[1, 2, 3] @ [4, 5, 6]"
DEMO_RUN = qgpu run kernels/dot.cu --block 3 "[1, 2, 3]" "[4, 5, 6]" zeros:1 3 --trace --check

demo: $(VENV)/run.stamp
	@echo "the first run casts the GPU into weights"
	@echo && echo '$$ $(DEMO_EVAL)' && $(BIN)/$(DEMO_EVAL)
	@echo && echo '$$ $(DEMO_RUN)' && $(BIN)/$(DEMO_RUN)

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not full"

test-full: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check src tests bench docs
	$(BIN)/mypy

bench: $(VENV)/dev.stamp
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

BASE ?= Qwen/Qwen3.5-2B
MODEL ?= build/model

build: $(VENV)/dev.stamp
	$(BIN)/qgpu build $(MODEL) --base $(BASE)

docs: $(VENV)/dev.stamp
	$(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

clean:
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
