# make demo and make test work in a fresh clone: they create .venv and install into it. make demo installs covalign with
# figures and commands; the other targets add the tools of developers.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
LIGHT := $(VENV)/.light
STAMP := $(VENV)/.installed
PEERS := .venv-peers
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --maxprocesses 4 --dist loadfile \
  --no-loadscope-reorder

.PHONY: demo test test-all check bench bench-all figures docs setup peers study arena clean

setup: $(STAMP)

$(LIGHT): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "covalign needs Python >= 3.11; choose one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip --disable-pip-version-check install --quiet --no-compile --editable '.[plot,cli]'
	touch $@

$(STAMP): $(LIGHT)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(LIGHT)
	$(RUN) examples/demo.py --out demo_output

# Each process gets one test file at a time and one thread, so that processes do not slow each other down. tests/conftest.py has
# the order of the files.
test: setup
	$(PYTEST) tests/core tests/system tests/docs src

# Also the tests that need many repetitions, real data or the whole study.
test-all: setup
	$(PYTEST) --hypothesis-profile thorough

check: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pytest -q tests/core/test_architecture.py

# One table: shapes of real work, each next to its reference and the ratio that is wanted; and cost against size.
bench: setup
	$(RUN) benchmarks/shapes.py --write docs
	$(RUN) benchmarks/cost.py --write docs

bench-all: bench
	$(RUN) benchmarks/aligner.py
	$(RUN) benchmarks/scale.py
	$(RUN) benchmarks/factor.py
	$(RUN) benchmarks/gaps.py
	$(RUN) benchmarks/scale_factor.py
	$(RUN) benchmarks/cluster.py
	$(RUN) benchmarks/plan.py

figures: setup
	$(RUN) examples/demo.py --out docs/img && rm docs/img/report.html docs/img/factors.html
	$(RUN) examples/nearest_images.py --out docs/img
	$(RUN) examples/report_picture.py --out docs/img
	$(if $(TCGA),$(RUN) examples/gallery.py --out docs/img/gallery --page docs/gallery.md --tcga $(TCGA))
	$(RUN) examples/choosing_picture.py --out docs/img
	$(RUN) examples/tutorials.py --write docs/tutorial_digits.md docs/tutorial_omics.md
	$(if $(CLL),CLL=$(CLL) MOFA=$(CURDIR)/examples/cll_mofaflex.h5 $(RUN) examples/tutorials.py --write docs/tutorial_cll.md)

# The pages, in docs/_build/html. Warnings are errors: broken links, unknown names, wrong equations.
docs: setup
	$(RUN) -m sphinx -q -W --keep-going -n -j auto -b html docs docs/_build/html

# The packages that we compare with, in a separate environment: their pinned versions do not affect ours.
peers: $(PEERS)/.installed

$(PEERS)/.installed: peers.txt peers-no-deps.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade pip
	$(PEERS)/bin/python -m pip install --quiet --requirement peers.txt
	$(PEERS)/bin/python -m pip install --quiet --no-deps --ignore-requires-python --requirement peers-no-deps.txt
	touch $@

# The committed results: make study TCGA=folder EMBEDDINGS="name=path ..."; an interrupted run resumes.
study: setup
	$(VENV)/bin/covalign reproduce --reps 20 --slow-reps 1 --out docs/study --claims docs/claims.md \
	  $(if $(TCGA),--tcga $(TCGA)) $(foreach e,$(EMBEDDINGS),--embeddings $(e))
	cp docs/study/figures/steering.png docs/img/steering.png
	sed -i.bak '/<!-- measured -->/q' docs/steering.md && rm docs/steering.md.bak
	(echo; cat docs/study/tables/steering_table.md) >> docs/steering.md

# The arena: make arena TCGA=folder CLL=folder CASES=file CITIES=folder EMBEDDINGS="name=path ..."; an interrupted run resumes.
arena: setup
	$(VENV)/bin/covalign arena --out docs/arena --page docs/arena.md $(if $(TCGA),--tcga $(TCGA)) $(if $(CLL),--cll $(CLL)) \
	  $(if $(CASES),--cases $(CASES)) $(if $(CITIES),--cities $(CITIES)) $(foreach e,$(EMBEDDINGS),--embeddings $(e))

clean:
	rm -rf $(VENV) $(PEERS) demo_output build dist docs/_build
