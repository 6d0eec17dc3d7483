# make demo and make test work in a fresh clone: they create .venv and install into it.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: demo test check bench figures setup clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "covalign needs Python >= 3.11; choose one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet --editable '.[dev]'
	touch $@

demo: setup
	$(RUN) examples/demo.py --out demo_output

test: setup
	$(RUN) -m pytest

check: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pytest -q tests/test_architecture.py

bench: setup
	$(RUN) benchmarks/aligner.py
	$(RUN) benchmarks/factor.py

figures: setup
	$(RUN) examples/demo.py --out docs/img

clean:
	rm -rf $(VENV) demo_output build dist
