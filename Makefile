# `make lab` or `make test` is all that a newcomer types; each makes .venv first if it is not there.
#
#   PYTHON=…        the Python to use (3.11 or newer); found by itself otherwise
#   TORCH_INDEX=…   where pip gets torch. On Linux without a GPU this saves gigabytes:
#                   make lab TORCH_INDEX=https://download.pytorch.org/whl/cpu
#   PINS=           empty: the newest versions that pyproject.toml allows, instead of constraints.txt
#   TORCH=…         another torch than the pinned one, with PINS= (torch==2.6.*)
#   FOLDER=… OUT=…  for `make grade`: the folder of submissions (a demo class without it) and where marks go

PYTHON ?=
TORCH_INDEX ?=
PINS ?= -c constraints.txt
TORCH ?= torch
FOLDER ?=
OUT ?= graded

BIN := .venv/bin
READY := .venv/.ready
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: setup lab test test-long lint lessons release grade bench site

setup: $(READY)
	@echo ".venv is ready: make lab, make test"

$(READY): pyproject.toml constraints.txt
	@if [ ! -x $(BIN)/python ]; then \
	  for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	    if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	    then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "No Python 3.11 or newer (with venv) found. Install one:"; \
	    echo "  Debian, Ubuntu  sudo apt-get install python3 python3-venv"; \
	    echo "  macOS           brew install python@3.12"; \
	    echo "  conda           conda env create -f environment.yml"; \
	    echo "or name it: make setup PYTHON=/path/to/python3.12"; exit 1; \
	  fi; \
	  echo "making .venv with $$found"; "$$found" -m venv .venv || { rm -rf .venv; exit 1; }; \
	fi
	$(BIN)/python -m pip install -q --disable-pip-version-check $(PINS) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$(TORCH)"
	$(BIN)/python -m pip install -q --disable-pip-version-check $(PINS) "$(TORCH)" -e ".[course,dev]"
	@touch $@

lab: $(READY)
	$(BIN)/python -m jupyter lab $(AS_ROOT) --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb

# What runs in minutes; needs neither a browser nor a GPU.
test: $(READY)
	$(BIN)/python -m pytest -m "not long and not browser"

# The rest: every lesson executed, a real browser, the long ones.
test-long: $(READY)
	$(BIN)/python -m pytest -m "long or browser"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m coursework.build --check

lessons: $(READY)
	$(BIN)/python -m coursework lessons

release: $(READY)
	$(BIN)/python -m coursework release

grade: $(READY)
	$(BIN)/python -m coursework grade $(if $(FOLDER),"$(FOLDER)") --out "$(OUT)"

# The comparisons that run anywhere, ten minutes; the others need a GPU, data or hours, as the head of each says.
bench: $(READY)
	@set -e; for name in inference_cpu tokenizer; do \
	  echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py; done

site: $(READY)
	$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs . docs/_build/html
	@echo "open docs/_build/html/docs/index.html"
