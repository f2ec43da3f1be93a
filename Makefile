# The two commands of the README (`make demo`, `make test`) and those of people who work on Bowerbird.
# Everything is installed from locks/ with hashes into .venv; nothing else on the machine changes,
# except Debian packages that tests and sandboxes need, where this user may install them (scripts/debian-packages).

PYTHON ?= python3
BIN := .venv/bin
MODEL ?=
WEB ?=
# Two more than there are cores, up to eight: many tests wait for something.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 6 ? n + 2 : 8)))

# Of thousands of tests, two may fail once and pass when they are run again: said at once and at the end as UNSTABLE,
# a defect to look at, but no reason to throw away a run of half an hour. STRICT=1 forgives none.
STRICT ?=

.PHONY: demo test check format bench drills docs web lock clean

demo: .venv/base.ok
	scripts/debian-packages sandbox
	$(BIN)/python examples/demo.py $(if $(MODEL),--model $(MODEL)) $(if $(WEB),--web)

# Where Python may write no bytecode, each of the thousand processes that tests start would compile all of it.
test: .venv/dev.ok
	scripts/debian-packages
	$(BIN)/python -m compileall -q -j 0 src
	$(MAKE) --no-print-directory check
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 2 \
		$(if $(STRICT),,--reruns 1 --max-suite-reruns 2) -m "not embedded"

check: .venv/dev.ok
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_house.py
	$(BIN)/python scripts/check_rooms.py
	$(BIN)/pyright

format: .venv/dev.ok
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/dev.ok
	$(BIN)/python benchmarks/run_all.py

# What takes hours: kills, errors at every system call, thousands of random histories. Before an issue is resolved.
drills: .venv/dev.ok
	$(BIN)/python benchmarks/run_all.py --drills

docs: .venv/dev.ok
	$(BIN)/mkdocs build --strict

# The pages, into the package: Node 22 or newer of this machine, or that of .venv.
web: .venv/dev.ok
	$(BIN)/python scripts/build_web.py

# Written anew from pyproject.toml: versions pinned with hashes, no host named.
lock: .venv/dev.ok
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --generate-hashes \
		--extra agents --extra fast --extra languages --extra local --extra mcp --extra oidc --extra postgres \
		--extra push --extra python --extra telegram --group build pyproject.toml -o locks/base.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --generate-hashes \
		--all-extras --group build --group dev -c locks/base.txt pyproject.toml -o locks/dev.txt

clean:
	rm -rf .venv .demo site

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; say which: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/base.ok: .venv/bin/python locks/base.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/base.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev.ok: .venv/base.ok locks/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/dev.txt
	@touch $@
