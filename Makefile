# Every target sets up what it needs, once: a virtual environment in .venv with the package in it, and
# beside it only what the target uses. They may be made in any order, and after each other.

PYTHON ?= $(shell for p in python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
BIN := .venv/bin
DEMO := .venv/.demo
SHOP := .venv/.shop
SPARK := .venv/.spark
DOCS := .venv/.docs
READY := .venv/.ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
CHECKED := optimizer reactive spark_backend tests examples asv_benchmarks docs/conf.py docs/reference.py docs/figures/pictures.py

.PHONY: demo demo-monitor demo-spark demo-shop test test-all test-room test-process test-spark check lint types services soak bench report docs clean

demo: $(DEMO)  ## lint the standard library live, and edit it 200 times; then a quarter of an hour of a monitor, in seconds
	$(BIN)/python -m examples.live_lint
	$(BIN)/python -m examples.monitor --fast --seconds 900

demo-monitor: $(DEMO)  ## sensors, alerts and acknowledgements on a page: http://127.0.0.1:8010
	$(BIN)/python -m examples.monitor

demo-spark: $(SPARK)  ## a view outgrows the process, moves to Spark, loses its JVM, and is right; needs Java 17
	$(BIN)/python -m examples.hot_view

demo-shop: $(SHOP)  ## a web shop with a leaderboard that moves in browsers: http://127.0.0.1:8000
	$(BIN)/python -m examples.shop

test: lint  ## the quick gate: tests of every part, and types; those that need Spark run beside the others, which take what cores these leave
	@$(MAKE) --no-print-directory -j2 WHICH='not long' test-spark test-process types

test-all: $(READY)  ## what `make test` leaves out: tests that take long, most of those on Spark, processes that are killed
	@$(MAKE) --no-print-directory -j2 WHICH=long test-spark test-process

ROOM ?= engine/operators
test-room: $(READY)  ## the tests of one room: make test-room ROOM=languages/sql
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not long' tests/$(ROOM)

test-process: $(READY)
	nice -n 5 $(BIN)/python -m pytest -n auto --dist worksteal --ignore tests/spark -m '$(WHICH)'

test-spark: $(READY)
	$(BIN)/python -m pytest tests/spark -p no:cacheprovider --durations 15 -m '$(WHICH)'

check: lint types  ## format, lint, types

lint: $(READY)
	$(BIN)/ruff format --check --quiet $(CHECKED)
	$(BIN)/ruff check --quiet $(CHECKED)

types: $(READY)
	$(BIN)/mypy

services:  ## install the servers that tests talk to, on Debian and as root; without them these tests are skipped
	tests/services.sh

SEED ?= 1
soak: $(READY)  ## all examples of which `make test` takes a sample, five times over; and 100,000 random histories on two cores, 100,000 broken SQL texts and 20,000 broken Datalog programs, some hours, which go on where they were stopped (.soak.json, .soak.sql.json, .soak.datalog.json), after 200 flushes on Spark in which processes are killed, and 1,000,000 commits with 10,000 queries and classes that end at the memory they began with
	test -f .soak.json || EXAMPLES=5 $(BIN)/python -m pytest -n auto --ignore tests/spark
	$(BIN)/python -m tests.kills --seed $(SEED) --folder .soak.kills/local
	$(BIN)/python -m tests.kills --seed $(SEED) --folder .soak.kills/cluster --master 'local-cluster[2,1,512]'
	$(BIN)/python -m tests.growth.memory --rounds 10000 --commits 100
	$(BIN)/python -m tests.languages.sql.broken_texts 100000 $(SEED) .soak.sql.json
	$(BIN)/python -m tests.languages.datalog.test_broken_programs 20000 $(SEED) .soak.datalog.json
	$(BIN)/python -m tests.soak --histories 100000 --seed $(SEED) --workers 2 --every 30 --state .soak.json

bench: $(READY)  ## all benchmarks once, quickly; fails if a ratio to a twin is 1.3 times that of the run before, in two runs running
	cd asv_benchmarks && ../$(BIN)/asv machine --yes >/dev/null && ../$(BIN)/asv run --python=same --quick --show-stderr
	$(BIN)/python -m asv_benchmarks.regressions

report: $(READY)  ## the benchmark tables of asv_benchmarks/figures.md, several runs each
	$(BIN)/python -m asv_benchmarks.report

docs: $(DOCS)  ## the site, in build/site: links or references that lead nowhere are errors
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs build/site
	@echo build/site/index.html

$(BIN)/pip:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv .venv

$(DEMO): pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[demo]'
	@touch $(DEMO)

$(SPARK): pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[demo,spark]'
	@touch $(DEMO) $(SPARK)

$(SHOP): pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[shop]'
	@touch $(SHOP)

$(DOCS): pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[docs]'
	@touch $(DOCS)

$(READY): pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[dev,demo]'
	@touch $(DEMO) $(SPARK) $(SHOP) $(DOCS) $(READY)

clean:
	rm -rf .soak.json .soak.sql.json .soak.datalog.json .soak.kills .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis asv_benchmarks/.asv
