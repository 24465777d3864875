"""The entry of `make bench`: runs all benchmarks, or one with NAME=x, on a stack of its own; BENCH=quick shortens."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping

from bench import (
    bursts,
    compact,
    detect,
    durability,
    formats,
    growth,
    ingest,
    ledger,
    offset_stores,
    on_call,
    page,
    partitioner,
    publishing,
    raw_stores,
    repair,
    sharding,
    sinks,
)
from bench.table import Row, results, show
from onceover.config.endpoints import address
from onceover.ledger.database import upgrade_schema
from onceover_local.stack import Stack, surroundings

BENCHES: Mapping[str, Callable[[], tuple[list[Row], list[str]]]] = {
    "ingest": ingest.run,
    "formats": formats.run,
    "durability": durability.run,
    "detect": detect.run,
    "ledger": ledger.run,
    "offset_stores": offset_stores.run,
    "partitioner": partitioner.run,
    "sharding": sharding.run,
    "bursts": bursts.run,
    "compact": compact.run,
    "repair": repair.run,
    "on_call": on_call.run,
    "growth": growth.run,
    "publishing": publishing.run,
    "sinks": sinks.run,
    "raw_stores": raw_stores.run,
    "page": page.run,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"unknown benchmark {unknown[0]}; choose one of: {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    surroundings.leave()
    place = results() / "stack"
    os.environ["ONCEOVER_LOCAL"] = str(place)
    stack = Stack(place)
    stack.down()
    shutil.rmtree(place, ignore_errors=True)
    try:
        stack.up(("kafka", "hdfs", "postgres"), say=lambda part, what: print(f"  {part} {what}"))
        upgrade_schema(address("postgres"))
        correct = True
        for name in names or BENCHES:
            rows, notes = BENCHES[name]()
            show(name, rows, notes)
            correct = correct and all(row.correct for row in rows)
    finally:
        stack.down()
    return 0 if correct else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
