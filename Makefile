# Everything a newcomer types. Each target sets up .venv first, works from a bare clone, again after a failure, and twice in a row.
#
#   make demo                        the whole way once, on real data
#   make test PYTEST_ARGS='-k name'  passes arguments on to pytest; WORKERS=0 runs in one process
#   make PYTHON=python3.12 install   builds .venv with another Python (3.11 or later); `make distclean` first if there is one

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
DEMO_ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PIP_INSTALL := $(PY) -m pip install --disable-pip-version-check --quiet --constraint constraints.txt
comma := ,
EXTRAS := aio,ray,spark,fast,cli,server,http,otel,jwt,demo,docs,dev

# Spark's workers must be this environment, Ray must not call home, and nobody's running cluster or other Spark may be picked up by accident.
export PYSPARK_PYTHON := $(CURDIR)/$(PY)
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(PY)
export RAY_USAGE_STATS_ENABLED := 0
export SPARK_LOCAL_IP := 127.0.0.1
unexport PYTHONHOME PYTHONPATH RAY_ADDRESS SPARK_HOME
# Members, commands and workers of Spark are processes, and the assertions of tests are rewritten in each worker: without
# what Python keeps of what it has compiled, each of them would compile all of secateur again.
unexport PYTHONDONTWRITEBYTECODE

# The stamp holds the path of the checkout. An environment whose Python is gone, or that was moved here with the folder, does not count as installed.
$(shell { [ -x $(PY) ] && [ "$$(cat $(STAMP) 2>/dev/null)" = "$(CURDIR)" ]; } || rm -f $(STAMP))

# A fresh seed for each night; `make nightly SEED=n` repeats one, or goes on where an interrupted run stopped: the seeds are printed as they pass.
ifndef SEED
SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
endif
STATEMENTS ?= 1000000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: demo check test test-slow test-long test-newest test-oldest test-pythons quick-round plans generated duckdb-tests nightly faults simulate mutations native wheel lint format types bench bench-peers bench-postgres bench-tpc docs lock clean distclean help install java browser pictures

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP) java ## real flights: Spark loads three Ray members, pruned SQL reads them back
	@$(PY) -m examples.flights $(DEMO_ARGS)

# Whole files go to one of the workers, so that what a module starts is started once. In which order, tests/conftest.py
# says: by number of tests, the last ones would be single tests of a minute.
# Tests wait for a third of their time, for members that are lost and processes that start: one of three workers begins
# with those that do little else, and the other two fill two cores. With a fourth it took as long, and each test longer.
WORKERS ?= 3
PYTEST_WORKERS := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Of a test with many cases it runs a half or a quarter, others each time: `make check` runs all cases of what a change touches,
# test-newest those of all unit tests and plans, and `make test CASES=all` all; so does who chooses tests by PYTEST_ARGS.
SAMPLE = $(if $(CASES)$(PYTEST_ARGS),,--sample=$(SEED))
test: $(STAMP) java ## all tests but the slow ones, on WORKERS=3 processes: some eight minutes on two cores; SEED=n CASES=all
	@echo "make test SEED=$(SEED)"
	@$(PY) -m pytest -m "not slow" $(SAMPLE) $(PYTEST_WORKERS) $(PYTEST_ARGS)

# What git says has changed since BASE decides; tests/check.py says which commit that is by default.
check: $(STAMP) ## what each commit is checked by, in minutes: lint, types, the touched rooms, plans, smoke; BASE=commit SEED=n
	@$(PY) tests/check.py --base "$(BASE)" --seed $(SEED)

# Of the slow ones, `make wheel` and `make nightly` have their own targets.
test-slow: $(STAMP) java ## the slow tests: all cases of those that are sampled, faults of Ray and Spark, TPC at scale factor 1: an hour or two
	@$(PY) -m pytest -m slow $(PYTEST_WORKERS) --ignore=tests/system/test_wheel.py $(PYTEST_ARGS)

test-long: $(STAMP) ## the property tests with many times the cases: an hour or two
	@SECATEUR_PROPERTY_FACTOR=80 SECATEUR_PRUNING_WORLDS=100 SECATEUR_DML_WORLDS=40 SECATEUR_INDEX_WORLDS=40 \
		SECATEUR_SCATTER_STATEMENTS=800 SECATEUR_STATEMENTS=20000 SECATEUR_TIGHTNESS_WORLDS=160 SECATEUR_FOLDER_STATEMENTS=600 $(PY) -m pytest -m "not ray and not spark" -o timeout=3600 tests/property tests/pitfalls/test_relational_products.py tests/unit/cluster/test_lease.py tests/system/test_tables_without_key.py tests/system/test_unused_tables.py $(PYTEST_ARGS)

# The quick round in environments of their own, without Ray and Spark: what a user gets who installs secateur today, and
# who has the oldest of everything. A release of a dependency may cost a plan and no answer, so it is the plans that tell.
NEWEST := .venv-newest
OLDEST := .venv-oldest
VERSIONS ?=
test-newest: ## the quick round on the newest versions that pyproject.toml allows: VERSIONS='duckdb==2.0.0' for others
	@$(MAKE) --no-print-directory quick-round IN=$(NEWEST) RESOLUTION=highest SEED=$(SEED)

test-oldest: ## the quick round on the oldest versions that pyproject.toml allows
	@$(MAKE) --no-print-directory quick-round IN=$(OLDEST) RESOLUTION=lowest-direct SEED=$(SEED)

test-pythons: ## the quick round with Python 3.12 and 3.13, where they are installed
	@export PYENV_VERSION=$$(pyenv versions --bare 2>/dev/null | sort -rV | paste -sd:); for python in python3.12 python3.13; do \
		if $$python -c '' 2>/dev/null; then $(MAKE) --no-print-directory quick-round IN=.venv-$$python RESOLUTION=highest PYTHON=$$python SEED=$(SEED) || exit 1; \
		else echo "SKIPPED: $$python is not installed"; fi; done

# Tests of what is not installed there: other libraries, Spark and Ray.
NOT_THERE := '(import|from) (pandas|polars|opentelemetry|pyspark|secateur.connectors.spark)|secateur\.(connectors\.)?spark\b|member_actor|\.df\(\)'
quick-round: STATEMENTS = 200
quick-round: $(STAMP)
	@[ -x $(IN)/bin/python ] || $(PYTHON) -m venv $(IN)
	@$(PY) -m uv pip install --quiet --python $(IN)/bin/python --upgrade hypothesis psutil pytest pytest-timeout pytest-xdist trustme
	@$(PY) -m uv pip install --quiet --python $(IN)/bin/python --upgrade --resolution $(RESOLUTION) --editable '.[aio,cli,server,http,jwt,sqlalchemy]' $(VERSIONS)
	@$(PY) -m uv pip list --quiet --python $(IN)/bin/python | grep -E '^(cloudpickle|duckdb|fastapi|httpx|msgpack|msgspec|numpy|pyarrow|sqlalchemy|typer|xxhash) '
	@$(IN)/bin/python -m pytest -m "not slow and not ray and not spark" $(PYTEST_WORKERS) $(PYTEST_ARGS) tests/plans tests/sql tests/seeds \
		$$(grep -rLE $(NOT_THERE) tests/unit --include='test_*.py' | grep -ve benchmarks -e test_imports)
	@$(IN)/bin/python -m pytest -m "smoke and not slow and not ray and not spark" $(PYTEST_WORKERS) $(PYTEST_ARGS) \
		$$(grep -rl mark.smoke tests/system | xargs grep -LE $(NOT_THERE))
	@$(IN)/bin/python tests/property/placed_run.py --seed $(SEED) --statements $(STATEMENTS)

plans: $(STAMP) ## write what EXPLAIN answers today into tests/plans; read the difference before committing it
	@$(PY) tests/plans/rewrite.py

ALSO ?=
generated: STATEMENTS = 10000
generated: $(STAMP) ## random statements over several tables against DuckDB, 10,000 or STATEMENTS=n; SEED=n repeats a run
	@echo "make generated SEED=$(SEED) STATEMENTS=$(STATEMENTS) ALSO='$(ALSO)'"
	@$(PY) tests/property/placed_run.py --seed $(SEED) --statements $(STATEMENTS) --also $(ALSO)

duckdb-tests: $(STAMP) ## DuckDB's own tests on three members, for a person to read: CLONE=path of duckdb/duckdb FOLDERS='join window'
	@$(PY) tests/property/duckdb_tests.py $(CLONE) $(FOLDERS)

nightly: $(STAMP) ## a million random statements against DuckDB: an hour; SEED=n repeats or goes on
	@echo "make nightly SEED=$(SEED) STATEMENTS=$(STATEMENTS)"
	@SECATEUR_SEED=$(SEED) SECATEUR_STATEMENTS=$(STATEMENTS) $(PY) -m pytest -v -x --durations=0 --durations-min=60 tests/property/test_soundness_volume.py $(PYTEST_ARGS)

SECONDS ?= 180
faults: $(STAMP) ## four clients while members die, freeze and lose connections, then the controller dies: SECONDS=n SEED=n
	@$(PY) tests/faults/mixed_load.py --seconds $(SECONDS) --seed $(SEED)

SEEDS ?= 2000
simulate: $(STAMP) ## a cluster on a virtual clock and network while everything fails: SEEDS=n runs, SEED=first
	@echo "make simulate SEED=$(SEED) SEEDS=$(SEEDS) ALSO='$(ALSO)'"
	@$(PY) tests/simulation/run.py --seeds $(SEEDS) --seed $(SEED) --also $(ALSO)

MUTATIONS_ARGS ?=
mutations: $(STAMP) java ## plant faults, one after the other, and say which test finds each: an hour or two; MUTATIONS_ARGS='--only NAME --whole'
	@$(PY) tests/mutations/run.py $(MUTATIONS_ARGS)

wheel: $(STAMP) ## build the wheel and try it in empty environments, of each Python that is installed
	@$(PY) -m pytest -m slow tests/system/test_wheel.py $(PYTEST_ARGS)

# pip gets maturin for it, and cargo the two crates. Without cargo everything works, and CI says so.
native: $(STAMP) ## build the optional native executor of short statements, where cargo is
	@if command -v cargo >/dev/null; then $(PIP_INSTALL) ./native; \
		else echo "SKIPPED: cargo is not installed, so short statements run in Python: https://rustup.rs" >&2; fi

lint: $(STAMP) types ## ruff and mypy --strict
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(STAMP)
	@$(PY) -m mypy

format: $(STAMP) ## rewrite the sources in the project's format
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format .

browser: $(STAMP) ## a Chromium for the tests of the dashboard, which are skipped without one
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name >/dev/null && exit 0; done; \
		{ [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null; } \
		|| $(PY) -m playwright install chromium || { \
		echo "There is no Chromium, and none could be installed. Install it (Debian: apt-get install chromium; macOS: brew install --cask chromium)" >&2; exit 1; }

bench: $(STAMP) java ## latency and load rate; writes build/bench/*.json and prints the tables
	@$(PY) -m benchmarks.planning
	@$(PY) -m benchmarks.serving $(BENCH_ARGS)

bench-peers: $(STAMP) java ## the same statements on Hazelcast, Ignite, Spark, Ray Data, Daft, Polars and DuckDB; fetches them into build/peers
	@$(PY) -m benchmarks.peers $(BENCH_ARGS)

bench-postgres: $(STAMP) ## short statements beside PostgreSQL and Redis, where their packages are installed; --pin two, one or no
	@$(PY) -m benchmarks.beside_postgres $(BENCH_ARGS)

bench-tpc: $(STAMP) java ## TPC-H at scale factor 1 on three Ray members, in one DuckDB process and in Spark
	@$(PY) -m benchmarks.tpch $(BENCH_ARGS)

docs: $(STAMP) ## the documentation as a web site in build/docs
	@$(PY) -m sphinx --fail-on-warning --keep-going --quiet -d build/doctrees docs build/docs
	@echo "open build/docs/index.html"

pictures: $(STAMP) browser ## the pictures of docs/dashboard.md, of a cluster under load
	@$(PY) -m docs.pictures.dashboard

lock: $(STAMP) ## resolve pyproject.toml anew into constraints.txt, for every supported Python and platform
	@printf '%s\n' '# What the tests and the demo run with. Made by `make lock` from pyproject.toml; do not edit.' > constraints.txt.new
	@$(PY) -m uv pip compile --quiet --universal --python-version 3.11 $(patsubst %,--extra %,$(subst $(comma), ,$(EXTRAS))) --upgrade \
		--no-annotate --no-header --no-emit-index-url --no-emit-find-links pyproject.toml >> constraints.txt.new
	@mv constraints.txt.new constraints.txt

clean: ## remove what the targets wrote, but keep .venv
	@rm -rf build dist native/target spark-warehouse metastore_db derby.log constraints.txt.new .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name '$(VENV)*' -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## remove the environments as well
	@rm -rf $(VENV) $(NEWEST) $(OLDEST) .venv-python*

install: $(STAMP) ## set up .venv only

# An installation that did not finish leaves no stamp; the next one starts from an empty environment, because pip cannot repair a half-written package.
# The build tools come first and from the constraints, so that building a source package downloads nothing that is not pinned.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "secateur needs Python 3.11 or later, but '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo missing). Name another one: make PYTHON=python3.11" >&2; exit 1; }
	@if [ ! -f $@ ]; then rm -rf $(VENV); echo "Creating $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv $(VENV); fi
	@rm -f $@
	@echo "Installing into $(VENV): Ray and Spark are large, the first time takes a few minutes"
	@$(PIP_INSTALL) editables hatchling setuptools wheel
	@$(PIP_INSTALL) --no-build-isolation --use-pep517 --editable '.[$(EXTRAS)]'
	@printf '%s' "$(CURDIR)" > $@

java:
	@java -version 2>&1 | awk -F '[."]' '/version/ { found = 1; exit !($$2 >= 17) } END { if (!found) exit 1 }' || { \
		echo "Spark needs Java 17 or later, and 'java -version' does not show one. Install it (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)" \
			"and put it first on PATH." >&2; exit 1; }
