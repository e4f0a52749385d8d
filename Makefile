# make demo   train a network on kernels compiled from tensor expressions
# make test   lint, types, tests
# Both need only Python >= 3.10 with venv and pip; each makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# by a path on sys.path: a folder named tilewright beside a script, such as this checkout, does not hide the package
INSTALL := $(RUN) -m pip install --quiet --config-settings editable_mode=compat --editable

# many tests start processes: without compiled modules each of them reads 400 sources anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint clean

demo: $(VENV)/.demo
	$(RUN) -m tilewright.cli.main demo

test: $(VENV)/.dev
	$(RUN) -m ruff check tilewright tests benchmarks
	$(RUN) -m mypy
	$(RUN) -m pytest tests -n auto --dist worksteal

lint: $(VENV)/.dev
	$(RUN) -m ruff check tilewright tests benchmarks
	$(RUN) -m mypy

$(VENV)/.demo: pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[demo]'
	touch $@

$(VENV)/.dev: pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[demo,export,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
