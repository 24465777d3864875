# Two commands matter: `make demo` and `make test`. `make` alone says what the rest do.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
BESIDE := --no-print-directory --jobs=3 --keep-going --output-sync=line
# Lanes that are about even: what needs Airflow on the stack and what goes beside it, what is about offsets and kills,
# what comes after months, and all the rest.
WITH_AIRFLOW := tests/onceover/cli tests/onceover_local/stack/test_airflow.py \
  $(addprefix tests/integration/test_,airflow.py lineage.py pace.py sasl_ssl.py)
AFTER_MONTHS := $(addprefix tests/integration/test_,cluster.py compact.py compacted.py deadlines.py \
  ledger_rebuild.py migrate.py migrate_refused.py quarantine.py release.py retention.py)
WITH_OFFSETS := tests/onceover/offset_stores tests/onceover_demo tests/faults \
  tests/integration/test_offsets.py tests/integration/test_checkpoint.py
export PYTHON
# Java reads no path with a letter beyond ASCII under a locale that lacks it; containers often name none.
export LC_ALL := C.UTF-8

.PHONY: help setup demo demo-faults experiments test test-quick test-airflow test-stack test-offsets test-months test-faults check fix up down bench

help: ## Say what there is
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv from the lock files (the others do it themselves; nothing to do when they have not changed)
	@requirements/install

demo: setup ## Replay real flights, crash, detect, repair, prove: the whole story, ending in a table
	@$(BIN)/python -m onceover_demo

demo-faults: setup ## Offsets that ran ahead, a topic created anew: lost, found, read again, proved
	@$(BIN)/python -m onceover_demo.faults

experiments: setup ## What each way to keep offsets loses and repeats, on the real broker; half an hour
	@$(BIN)/python -m onceover_demo.experiments

up: setup ## Start the embedded Kafka, HDFS, PostgreSQL and Airflow; they stay up
	@$(BIN)/onceover stack up

down: setup ## Stop what `make up` started; its data stays
	@$(BIN)/onceover stack down

test: setup ## Everything that must pass before landing: fastest tier first, then four lanes, three at a time
	@$(MAKE) $(BESIDE) check test-quick
	@$(MAKE) $(BESIDE) test-airflow test-offsets test-months test-stack # the shortest comes last

test-quick:
	@$(PYTEST) -q -m "not spark and not stack and not airflow and not faults"

test-airflow: # Airflow waits more than it works, so it has company beside it
	@$(PYTEST) -q -m "airflow and not stack" # a process of its own: it has another home and another Airflow
	@$(PYTEST) -q -m "stack and not rare" $(WITH_AIRFLOW)

test-stack: # one session, so that they share one stack
	@$(PYTEST) -q -m "stack and not rare" $(addprefix --ignore=,$(WITH_AIRFLOW) $(WITH_OFFSETS) $(AFTER_MONTHS))

test-offsets:
	@$(PYTEST) -q -m "spark and not stack and not airflow and not faults"
	@$(PYTEST) -q -m "stack and not rare" $(WITH_OFFSETS)

test-months:
	@$(PYTEST) -q -m "stack and not rare" $(AFTER_MONTHS)

test-faults: setup ## What seldom breaks and takes long to try: hard places to clone to
	@$(PYTEST) -q -m rare

check: setup ## Format, lint, types, import arrows: reads only
	@$(BIN)/ruff format --check --quiet . || { echo "make check: run \`make fix\`"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache >.local/imports.txt || { cat .local/imports.txt; exit 1; }

fix: setup ## Mend what format and lint can mend by themselves
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

bench: setup ## Measure: all, or one with NAME=x; BENCH=quick shortens
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps -r requirements/bench.txt
	@$(BIN)/python -m bench $(NAME)
