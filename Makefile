# make demo, make test: both work from a fresh clone with Python 3.11 and make, and honour VENV=.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.cuewise-ready
# tests run side by side where there are cores; each one computes with a single thread
JOBS ?= 2
FAST := not (browser or cluster or docs or kill or shell or slow)
LOWEST ?= .venv-lowest

# compiled bytecode is kept: without it every process of the tests compiles their sources again
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-lowest setup lint types bench docs pictures format clean

help:
	@echo "make demo    pretrain an encoder on embedded images, tune it away from texture, audit both, write runs/demo/report.html"
	@echo "make test    run every test          make test-fast   those that take no process, browser or training run"
	@echo "make test-lowest   those again, with the lowest versions of all dependencies (TORCH=cpu for torch without CUDA)"
	@echo "make setup   install only        make lint / types / format   check the code"
	@echo "make bench   the performance table, against the peers"
	@echo "make docs    the documentation as a site, in docs/_build        make pictures   those in docs/images"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "cuewise needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -m cuewise.ahead
	touch $(READY)

demo: setup
	$(BIN)/cuewise demo --out runs/demo

test: setup
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal

test-fast: setup
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal -m "$(FAST)"

# the lowest versions that pyproject.toml allows, in an environment of their own; TORCH=cpu takes torch without CUDA
test-lowest:
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip compile --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --extra test \
		$(if $(TORCH),--torch-backend $(TORCH)) pyproject.toml --output-file $(LOWEST)/lowest.txt
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python \
		$(if $(TORCH),--torch-backend $(TORCH)) --requirement $(LOWEST)/lowest.txt
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --no-deps --editable .
	$(LOWEST)/bin/python -m pytest --numprocesses $(JOBS) --dist worksteal -m "$(FAST)"

lint: setup
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs

# the benchmarks import each other by name, so that they are checked from their folder, and less strictly
types: setup
	$(BIN)/mypy
	cd benchmarks && $(abspath $(BIN))/mypy --config-file ../pyproject.toml --allow-untyped-calls *.py

format: setup
	$(BIN)/ruff check --fix src tests benchmarks examples docs
	$(BIN)/ruff format src tests benchmarks examples docs

bench: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[bench]"
	$(BIN)/python benchmarks/run.py

docs: setup
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html docs docs/_build
	@echo docs/_build/index.html

pictures: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[bench]"
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/results.py
	$(BIN)/python docs/tradeoff.py

clean:
	rm -rf $(VENV) $(LOWEST) build dist docs/_build docs/reference .mypy_cache .ruff_cache .hypothesis src/*.egg-info
