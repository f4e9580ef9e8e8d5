# Everything works on a fresh machine with Python 3.11+ and make: .venv is made and filled when it is missing.

PYTHON  ?= python3 python3.14 python3.13 python3.12 python3.11
WORKERS ?= 2
BIN     := .venv/bin
DEMO    := .venv/.installed-demo
DEV     := .venv/.installed-dev

# compiled tests are kept: compiling them anew takes a tenth of the time of the tests
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test slow slow-part test-engines lint types house mutants mutation coverage attacks fuzz bench accuracy clean

help:
	@echo "make demo     a guided tour on made-up data"
	@echo "make test     the tests (not the slow ones)"
	@echo "make slow     the slow tests, all of them"
	@echo "make slow-part  those that CI runs: the conformance suites, and a slice of all others that the commit chooses"
	@echo "make test-engines  the tests of other engines, on a private PostgreSQL that is started and stopped"
	@echo "make lint     ruff: rules and format"
	@echo "make types    mypy --strict, of the package and of a file of user code"
	@echo "make house    the shape of the package: figures that may only get better, and its picture in docs"
	@echo "make mutants  seeded mistakes, each of which a test must catch"
	@echo "make mutation random mutants of four rooms: how many the tests catch (N=sample SEED=1)"
	@echo "make coverage branches of the same rooms that no test takes"
	@echo "make attacks  texts of a hostile analyst: held, controls answered, differences (FILES=cases.jsonl)"
	@echo "make fuzz     parsers against each other, and values that must not come out (N=queries SEED=1)"
	@echo "make bench    time and CPU beside plain DuckDB"
	@echo "make accuracy error at equal epsilon beside the textbook and other tools (RIVALS=their python)"
	@echo "make clean    remove .venv and caches"

demo: $(DEMO)
	@$(BIN)/python -m privsql demo

test: $(DEV)
	$(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist worksteal

slow-part: SLICE = commit
slow-part: $(DEV)
	$(BIN)/python -m pytest -m slow --slow-slice=$(SLICE) -n $(WORKERS) --dist worksteal

slow: $(DEV)
	$(BIN)/python -m pytest -m slow -n $(WORKERS) --dist worksteal

# -k: engine tests that need no server have run in the others
test-engines: $(DEV)
	$(BIN)/python tools/with_postgres.py $(BIN)/python -m pytest -k postgres tests/conformance/engines tests/engines/postgres

lint: $(DEV)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

house: $(DEV)
	$(BIN)/python tools/house.py
	$(BIN)/python tools/draw_architecture.py --check

types: $(DEV)
	$(BIN)/python -m mypy
	$(BIN)/python -m mypy tests/typing/public_api.py

mutants: $(DEV)
	$(BIN)/python tests/mutants.py

mutation: N = 60
mutation: $(DEV)
	$(BIN)/python -m tests.mutation $(N) $(SEED) $(WORKERS)

coverage: $(DEV)
	rm -rf .cache/coverage && mkdir -p .cache/coverage
	$(BIN)/python -m coverage run -m pytest -m "not slow or thinned" -n $(WORKERS)
	-$(BIN)/python -m coverage combine -q 2>/dev/null  # processes that tests kill leave files that cannot be read
	$(BIN)/python -m coverage report

attacks: $(DEV)
	$(BIN)/python -m tests.attacks $(FILES)

N    ?= 20000
SEED ?= 1

fuzz: $(DEV)
	$(BIN)/python -m tests.fuzz.differential $(N) $(SEED) $(WORKERS)
	$(BIN)/python -m tests.fuzz.canaries $(N) $(SEED) $(WORKERS)

bench: $(DEV)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/fixed_cost.py
	$(BIN)/python benchmarks/units.py
	$(BIN)/python benchmarks/worker.py
	$(BIN)/python benchmarks/dashboard.py

accuracy: $(DEV)
	$(BIN)/python benchmarks/accuracy --write docs/accuracy.md $(if $(RIVALS),--python $(RIVALS))

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache

# -- set-up: a stamp in .venv says what is installed, so that running again is instant ----------------------
$(BIN)/python:
	@for candidate in $(PYTHON); do \
	  if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making .venv with $$candidate"; exec $$candidate -m venv .venv; \
	  fi; \
	done; \
	echo "Python 3.11 or later is needed; say which with: make PYTHON=/path/to/python3" >&2; exit 1

$(DEMO): pyproject.toml | $(BIN)/python
	@if [ ! -e $(DEV) ] || [ $(DEV) -ot pyproject.toml ]; then \
	  echo "installing privsql into .venv (once; half a minute or so)"; $(BIN)/python -m pip install -qq -e .; fi
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	@echo "installing privsql and its development tools into .venv (once; half a minute or so)"
	@$(BIN)/python -m pip install -qq -e '.[dev]'
	@touch $@
