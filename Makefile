# Everything runs in .venv, made from requirements.lock: exact versions with their hashes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: setup demo test lint docs bench faults package same lock clean help

help:  ## show what there is to run
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(READY)  ## make the environment

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Thresher needs Python 3.11 or later: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

demo: $(READY)  ## find flipped labels among handwritten digits
	$(BIN)/python -m thresher demo

test: $(READY)  ## run all tests
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(READY)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)  ## build the site into docs/_build/html; warnings are errors
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html

bench: $(READY)  ## measure speed against the limits of the machine
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/privacy.py
	$(BIN)/python benchmarks/stated_errors.py
	$(BIN)/python benchmarks/leaf_tables.py
	$(BIN)/python benchmarks/privacy_regression.py
	$(BIN)/python benchmarks/retrain.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/out_of_core.py
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/knn_scale.py
	$(BIN)/python benchmarks/neighbors.py
	$(BIN)/python benchmarks/rings.py
	$(BIN)/python benchmarks/kernel_detection.py
	$(BIN)/python benchmarks/suggestions.py
	$(BIN)/python benchmarks/radius.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/forest_speed.py
	$(BIN)/python benchmarks/end_to_end.py
	$(BIN)/python benchmarks/owners.py
	$(BIN)/python benchmarks/regression.py
	$(BIN)/python benchmarks/federate.py
	$(BIN)/python benchmarks/market.py

faults: $(READY)  ## kill servers and workers of a market 200 times on each database
	$(BIN)/python tests/market_faults.py 200

package: $(READY)  ## build wheel and sdist, and try them with every extra on the oldest and newest Python
	$(BIN)/python packaging/check.py

same: $(READY)  ## say whether this checkout behaves as another commit did: make same COMMIT=...
	$(BIN)/python packaging/same.py $(COMMIT)

lock:  ## pin the newest versions that pyproject.toml allows (needs uv)
	uv pip compile pyproject.toml --all-extras --group test --group lint --group build --group docs --universal \
	  --python-version 3.11 --generate-hashes --no-annotate --no-emit-package thresher --upgrade \
	  --custom-compile-command "make lock" --quiet --output-file requirements.lock

clean:  ## remove the environment and everything that can be made again
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis docs/_build docs/api docs/gallery docs/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
