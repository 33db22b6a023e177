# `make demo` and `make test` do all the set-up themselves; `make help` lists the rest.
PYTHON ?= python3
RUN := .venv/bin/python
# Tests start some hundred Pythons: where what was compiled may not be kept, each compiles torch and Kotha anew.
export PYTHONDONTWRITEBYTECODE =
# A process for each core, one thread in each: two threads of one test gain little and lose much to their neighbours.
TEST := OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist worksteal

.PHONY: help demo test test-extended test-slow check format map reference studio docs kills cuts faults reads delays nodes elsewhere fuzz lock audit clean setup-demo setup-dev

help:
	@echo "make demo       the whole way on the built-in corpus, into kotha-demo/"
	@echo "make test       the first tier of tests: minutes in all"
	@echo "make test-extended  the second tier: browsers, fuzzing, fault injection, several machines, other systems"
	@echo "make check      format, lint, types, tests, docs: what a commit must pass"
	@echo "make test-slow  the tests that take minutes"
	@echo "make format     put the code into shape"
	@echo "make map        write docs/dev/modules.md: every module with its first line"
	@echo "make reference  write docs/reference: every command, name, format and error"
	@echo "make studio     build web/ into the package, after it was changed"
	@echo "make docs       build the book in both languages, into build/book"
	@echo "make kills      every command killed at every call it makes of the file system, into benchmarks/results"
	@echo "make cuts       the same for power cuts: what was not synced is lost"
	@echo "make faults     the same for calls that fail: a broken disk, a full one"
	@echo "make reads      the same for calls that read: a disk that is broken just there"
	@echo "make delays     the same on a slow disk: every call takes a while"
	@echo "make nodes      several machines train together, out of network namespaces (as root), and things happen to them"
	@echo "make elsewhere  commands as on Windows and macOS, in a disguise: the same bytes, and no name that is missing there"
	@echo "make fuzz       a million broken inputs among all loaders, hunted by the lines that they reach"
	@echo "make lock       write locks/: every package with the hash of its file, for this platform"
	@echo "make audit      a bill of materials, and what is known against what is on it, into build/audit"
	@echo "make clean      remove the environment and everything that was made"

demo: setup-demo
	$(RUN) -m kotha demo

test: setup-dev
	$(TEST) -m "not slow and not extended"

test-extended: setup-dev
	$(TEST) tests -m "extended and not slow"

test-slow: setup-dev
	$(RUN) -m pytest -m slow

check: setup-dev
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(TEST) -m "not slow"

format: setup-dev
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

map:
	@$(PYTHON) scripts/modules.py

reference: setup-dev
	@$(RUN) scripts/reference.py

studio: setup-dev
	$(RUN) scripts/studio.py build

docs: setup-dev
	$(RUN) -m scripts.book build

setup-demo:
	@$(PYTHON) scripts/setup.py demo

setup-dev:
	@$(PYTHON) scripts/setup.py dev

kills cuts faults reads delays: setup-dev
	OMP_NUM_THREADS=1 $(RUN) -m tests.fault_injection $@ $(FIRE)

nodes: setup-dev
	OMP_NUM_THREADS=1 $(RUN) -m tests.fault_injection.nodes $(NODES)

elsewhere: setup-dev
	$(RUN) -m pytest -q tests/platform_simulation

fuzz: setup-dev
	OMP_NUM_THREADS=1 $(RUN) -m tests.fuzz $(FUZZ)

lock: setup-dev
	$(RUN) scripts/lock.py

audit: setup-dev
	$(RUN) scripts/audit.py

clean:
	rm -rf .venv build web/node_modules kotha-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
