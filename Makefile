# `make demo` and `make test` set up everything they need; `make help` lists the rest.
PYTHON ?= python3
RUN := .venv/bin/python
# Tests start hundreds of Python processes; without bytecode files each would compile torch and Kotha again.
export PYTHONDONTWRITEBYTECODE =
# One single-threaded process per core.
TEST := OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist worksteal

.PHONY: help demo test test-extended test-slow check format map reference outputs studio docs fault-injection distributed-faults platform-simulation fuzz lock audit clean setup-demo setup-dev

help:
	@echo "make demo       train and inspect a model on the built-in corpus, in kotha-demo/"
	@echo "make test       the first tier of tests"
	@echo "make test-extended  the second tier: browsers, fuzzing, fault injection, several machines, other systems"
	@echo "make check      format, lint, types and tests: what a commit must pass"
	@echo "make test-slow  the tests that take minutes"
	@echo "make format     format and fix the code"
	@echo "make map        write docs/dev/modules.md: every module with its docstring's first line"
	@echo "make reference  write docs/reference from the help and the docstrings"
	@echo "make outputs    run the commands of README, how-tos and tour, and write the outputs that changed"
	@echo "make studio     build web/ into the package"
	@echo "make docs       build the book in both languages, in build/book"
	@echo "make fault-injection KIND=kill  a fault at every file-system call of every command; KIND=kill, power-cut, io-error, read-error or slow"
	@echo "make distributed-faults  several virtual machines train together and fail (network namespaces; needs root)"
	@echo "make platform-simulation  commands on simulated Windows and macOS: the same bytes as on Linux"
	@echo "make fuzz       a million broken inputs for all loaders, guided by coverage"
	@echo "make lock       write locks/: pinned packages with hashes, for this platform"
	@echo "make audit      a bill of materials with known vulnerabilities, in build/audit"
	@echo "make clean      remove the environment and all build outputs"

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
	$(RUN) scripts/prose.py
	$(RUN) -m mypy
	$(TEST) -m "not slow"

format: setup-dev
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

map:
	@$(PYTHON) scripts/modules.py

reference: setup-dev
	@$(RUN) scripts/reference.py

outputs: setup-dev
	KOTHA_WRITE_OUTPUTS=1 $(RUN) -m pytest -q tests/test_docs.py tests/test_howto.py -k run_in_their_order

studio: setup-dev
	$(RUN) scripts/studio.py build

docs: setup-dev
	$(RUN) -m scripts.book build

setup-demo:
	@$(PYTHON) scripts/setup.py demo

setup-dev:
	@$(PYTHON) scripts/setup.py dev

fault-injection: setup-dev
	OMP_NUM_THREADS=1 $(RUN) -m tests.fault_injection $(KIND) $(ARGS)

distributed-faults: setup-dev
	OMP_NUM_THREADS=1 $(RUN) -m tests.fault_injection.distributed $(ARGS)

platform-simulation: setup-dev
	$(RUN) -m pytest -q tests/platform_simulation

fuzz: setup-dev
	OMP_NUM_THREADS=1 $(RUN) -m tests.fuzz $(ARGS)

lock: setup-dev
	$(RUN) scripts/lock.py

audit: setup-dev
	$(RUN) scripts/audit.py

clean:
	rm -rf .venv build web/node_modules kotha-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
