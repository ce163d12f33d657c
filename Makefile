# make run     serve on 127.0.0.1:8000            make bench   compare with the bare SDK
# make test    every wall and every test          make wheel   build dist/hango-*.whl
# make setup   the environment alone              make lock    remake requirements.lock
# make soak    the fuzzers with many new examples, and the tests that run for minutes; about a quarter of an hour
# PYTHON=python3.12 chooses the interpreter. Every path here is relative: the folder's own path may hold spaces.

SHELL := /bin/sh
BIN := .venv/bin
# pip must fill this environment, whatever the user's own configuration says.
unexport PIP_PREFIX PIP_TARGET PIP_USER PYTHONHOME PYTHONPATH
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
# The stamp's name holds what the environment was made from and where: scripts in it name their interpreter in full.
STAMP := .venv/ready-$(shell { pwd; cat pyproject.toml requirements.lock; } | cksum | tr ' ' -)
TESTS ?= tests

.PHONY: setup run test soak walls bench wheel lock audit clean

setup: $(STAMP)
	@:

run: $(STAMP)
	@exec $(BIN)/hango serve

test: walls
	@$(BIN)/python -m pytest -n 2 $(TESTS)

# A failing example is printed with what repeats it. A hang is given longer than in `make test`.
soak: $(STAMP)
	@EXAMPLES=soak $(BIN)/python -m pytest -n 2 -m "soak or fuzz" -o faulthandler_timeout=900 $(TESTS)

walls: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/python -c 'from importlinter.cli import lint_imports_command as lint; lint()' --no-logo

bench: $(STAMP)
	@exec $(BIN)/python -m bench

wheel: $(STAMP)
	@$(PIP) wheel --no-deps --no-build-isolation --no-index --wheel-dir dist . && ls dist/*.whl

# Resolved anew from the ranges in pyproject.toml, in an environment of its own. Use the oldest supported Python.
lock: $(STAMP)
	@set -e; new=build/lock; rm -rf "$$new"; $(BIN)/python -m venv "$$new"; \
	"$$new/bin/python" -m pip --disable-pip-version-check -qq install '.[dev]'; \
	{ grep '^#' requirements.lock; "$$new/bin/python" -m pip freeze --exclude hango; } > build/requirements.lock; \
	mv build/requirements.lock requirements.lock; rm -rf build

# Known vulnerabilities of what the lock pins; skipped with a notice where no service can be asked.
audit: $(STAMP)
	@exec $(BIN)/python .ci/audit.py

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# An interpreter counts when it is new enough and can make an environment that has pip.
$(STAMP):
	@set -e; \
	fits='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	if ! $(BIN)/python -c "$$fits" 2>/dev/null; then \
	  for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	    if "$$python" -c "$$fits" 2>/dev/null; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$${found:-}" ]; then \
	    echo 'hango needs Python 3.11 or newer with venv and ensurepip, and found none.' >&2; \
	    echo 'Debian, Ubuntu: apt install python3 python3-venv. Another place: make setup PYTHON=/path/to/python3' >&2; \
	    exit 1; \
	  fi; \
	  "$$found" -m venv --clear .venv; \
	fi; \
	echo 'Preparing .venv (once; about a minute) ...' >&2; \
	rm -f .venv/ready-*; \
	$(PIP) install --no-user --no-compile -r requirements.lock; \
	$(PIP) install --no-user --no-deps --no-build-isolation --no-index -e .; \
	touch $@
