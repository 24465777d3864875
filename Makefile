# Two commands matter: `make demo` and `make test`. `make` alone lists all.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
BESIDE := --no-print-directory --jobs=2 --keep-going
# Two lanes print at once: each line says which.
NAMED = 2>&1 | sed -u "s/^/$(@:test-%=%): /"
SAY_SECONDS = echo "make $@: $$SECONDS s"
export PYTHON
.ONESHELL: # so that SECONDS counts a whole recipe
# Java reads no path with a letter beyond ASCII under a locale that lacks it; containers often name none.
export LC_ALL := C.UTF-8
# Many containers set it. Without compiled files each task of Airflow starts 6 CPU seconds later, each command 2.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo demo-faults demo-registry experiments test test-quick test-model test-pipelines test-airflow test-faults test-rare-pipelines test-rare-parts test-rest test-containers model check fix scan up down screenshots bench

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv from the lock files if they have changed (the other targets do so themselves)
	@requirements/install

demo: setup ## Replay real flights, crash, detect, repair, prove: the whole story, ending in a table; RAW=hbase keeps raw there
	@$(BIN)/python -m onceover_demo --raw "$(or $(RAW),hdfs)"

demo-faults: setup ## Offsets that ran ahead, a recreated topic: records lost, found, read again, proved
	@$(BIN)/python -m onceover_demo.faults

demo-registry: setup ## Flights in Avro: a schema that evolves, one that cannot be read, a repair while the registry is gone
	@$(BIN)/python -m onceover_demo.registry

experiments: setup ## What each way to keep offsets loses and repeats, on the real broker; half an hour, less with NAME=sinks
	@$(BIN)/python -m onceover_demo.experiments $(NAME)

up: setup ## Start the embedded Kafka, HDFS, PostgreSQL and Airflow; they stay up
	@$(BIN)/onceover stack up

down: setup ## Stop what `make up` started; its data stays
	@$(BIN)/onceover stack down

test: setup ## Prove every main behaviour on the real parts, in ten minutes: two lanes side by side, each begins with its fast tests
	@$(MAKE) $(BESIDE) test-pipelines test-airflow
	@$(SAY_SECONDS)

test-quick:
	@$(PYTEST) -q -m "not spark and not stack and not airflow and not rare" --ignore=tests/protocol $(NAMED)
	@$(SAY_SECONDS)

test-model: check
	@$(PYTEST) -q -m "not spark and not stack and not airflow and not rare" tests/protocol $(NAMED)
	@$(SAY_SECONDS)

test-pipelines: test-quick # one session, so that its tests share one stack and one Spark
	@$(PYTEST) -q -m "stack and not airflow and not rare" $(NAMED)
	@$(SAY_SECONDS)

test-airflow: test-model # Airflow waits more than it works, so it shares the cores with the other lane
	@$(PYTEST) -q -m "airflow and not stack and not rare" $(NAMED) # a process of its own, with another home and another Airflow
	@$(PYTEST) -q -m "spark and not stack and not rare" $(NAMED)
	@$(PYTEST) -q -m "airflow and stack and not rare" $(NAMED)
	@$(SAY_SECONDS)

test-faults: setup ## The rest, half an hour: kills and outages one by one, clusters, each other way to fail
	@$(MAKE) $(BESIDE) test-rare-pipelines test-rare-parts
	@$(SAY_SECONDS)

test-rare-pipelines:
	@$(PYTEST) -q -m "rare and not airflow and not largest" $(OWN_SERVERS:%=--ignore=%) tests/integration tests/protocol $(NAMED)
	@$(PYTEST) -q -m "rare and not airflow and not largest" $(OWN_SERVERS) $(NAMED)
	@$(SAY_SECONDS)

# They share neither stack nor Spark with the other pipelines.
OWN_SERVERS := tests/integration/test_cluster.py tests/integration/test_sasl_ssl.py

test-rare-parts:
	@$(PYTEST) -q -m "rare and not largest" --ignore=tests/integration --ignore=tests/protocol $(NAMED)
	@$(PYTEST) -q -m "rare and airflow and not largest" tests/integration $(NAMED)
	@$(SAY_SECONDS)

test-rest: setup ## What neither has time for: a window of 2 GB, a million shuffled sketches, folders hard to clone to, the other offset stores, all hostile texts, compacted windows in each way; two hours
	@$(PYTEST) -q -m largest --ignore=tests/protocol $(NAMED)

test-containers: setup ## Run docker-compose.yml on this machine's Docker, with kills, down and up: as root, twenty minutes
	@$(BIN)/python -m tests.compose

model: setup ## Explore the larger worlds of the protocol's model, and replay some 200 walks: three hours, and 10 GB of memory
	@$(PYTEST) -q -m largest tests/protocol $(NAMED)
	@$(SAY_SECONDS)

check: setup ## Format, lint, types, import arrows: reads only
	@$(BIN)/ruff format --check --quiet . || { echo "make check: run \`make fix\`"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@said=$$($(BIN)/lint-imports --no-cache) || { echo "$$said"; exit 1; }

fix: setup ## Fix what ruff can fix by itself
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

scan: setup ## Ask the advisories on Python packages about each locked one; needs the net
	@requirements/scan

screenshots: setup ## Draw the screens of docs/page.md again, in a real browser on a real Airflow: three minutes
	@ONCEOVER_SCREENSHOTS=docs/screens $(PYTEST) -q -m rare -k six_screens tests/integration/test_page.py

bench: setup ## Run all benchmarks, or one with NAME=x; BENCH=quick shortens them
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps -r requirements/bench.txt
	@$(BIN)/python -m bench $(NAME)
