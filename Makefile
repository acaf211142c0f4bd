# `make test` in a fresh clone creates the environment and runs every check; `make PYTHON=python3.12 test` picks another
# interpreter. Everything below `.venv` is rebuilt when what it is built from changes.

PYTHON ?= python3
# How many processes run the tests; each keeps to one thread, so that they do not fight over the cores.
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

BIN := .venv/bin
CODE := src tests tools $(wildcard benchmarks examples)
# What is compiled at the installation, too.
BUILD := pyproject.toml constraints.txt setup.py $(wildcard src/privet/training/native/*.[ch])
BENCHMARKS := $(sort $(filter-out _%,$(notdir $(basename $(wildcard benchmarks/*.py))) \
	$(patsubst benchmarks/%/__main__.py,%,$(wildcard benchmarks/*/__main__.py))))

.DEFAULT_GOAL := help
.PHONY: help demo test quick types tests bench mutants docs notebooks syllabus clean
.DELETE_ON_ERROR:

help:
	@echo "make demo      train privately on handwritten digits, write the report, and attack the result"
	@echo "make test      format, lint, types, tests, doctests, snippets, syllabus"
	@echo "make quick     what concerns the files that have changed, in under 90 seconds"
	@echo "make bench     run the benchmarks one after the other"
	@echo "make mutants   plant known mistakes one at a time, and check that the tests notice each"
	@echo "make docs      build the documentation site: site/index.html"
	@echo "make notebooks write the notebooks of the tutorials from their pages"
	@echo "make syllabus  write docs/syllabus.md from docs/syllabus.toml"
	@echo "make clean     remove the environment and everything generated"

.venv/.installed: $(BUILD)
	@echo "== environment"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

# The demo alone does not need the tests' tools.
.venv/.small: $(BUILD)
	@echo "== environment"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train]'
	@touch $@

# Models this small are trained faster by one thread than by several that wait for each other.
demo: export OMP_NUM_THREADS = 1
demo: $(if $(wildcard .venv/.installed),.venv/.installed,.venv/.small)
	@rm -rf demo && mkdir demo
	$(BIN)/privet train digits --epsilon 1 --audit --out demo/digits
	$(BIN)/privet report show demo/digits
	$(BIN)/privet account --noise-multiplier 1.1 --batch-size 256 --population 60000 --epochs 60 --delta 1e-5 \
		--plot demo/account.html >demo/account.txt
	$(BIN)/privet attack demo/digits
	@echo "Open demo/digits/report.html in a browser; demo/digits/internal.html has the attacks, which are not for sharing,"
	@echo "and demo/account.html prices a larger run."

test: .venv/.installed
	@echo "== ruff format"
	@$(BIN)/ruff format --check $(CODE)
	@echo "== ruff check"
	@$(BIN)/ruff check $(CODE)
	@# Side by side, as types take one processor for a minute or two.
	@$(MAKE) --no-print-directory -j2 types tests

types:
	@echo "== mypy --strict"
	@$(BIN)/mypy --strict $(CODE)

tests:
	@echo "== pytest: tests, doctests, snippets, syllabus"
	@OMP_NUM_THREADS=1 $(BIN)/pytest -q -n $(JOBS)

quick: .venv/.installed
	@$(BIN)/python -m tools.quick

bench: .venv/.installed
	@set -e; for name in $(BENCHMARKS); do echo "== benchmarks.$$name"; $(BIN)/python -m benchmarks.$$name; done

mutants: .venv/.installed
	$(BIN)/python -m tools.mutants --jobs $(JOBS)

# Without the network; a broken link or an undocumented public name is an error.
docs: export NO_MKDOCS_2_WARNING = 1
docs: .venv/.installed
	@# Not --quiet: MkDocs does not count warnings that it does not print.
	$(BIN)/mkdocs build --strict
	@echo "Open site/index.html in a browser; for the search box: $(BIN)/mkdocs serve"

notebooks: .venv/.installed
	$(BIN)/python -m tools.docs_site.notebooks

syllabus: .venv/.installed
	$(BIN)/python -m tools.syllabus

clean:
	rm -rf .venv demo site build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache src/*.egg-info src/privet/training/native/*.so
	find src tests tools $(wildcard benchmarks examples) -name __pycache__ -type d -prune -exec rm -rf {} +
