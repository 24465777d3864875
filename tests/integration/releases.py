"""Releases on the real stack: records that one contract refuses and the next accepts, and what they sum up to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from tests.integration.cutover import MINUTE_MS
from tests.integration.events import NOON_MS, Rows, count_events, event
from tests.integration.lane import Lane
from tests.integration.program import as_json

from onceover.context import open_pipeline
from onceover.fault_points import FaultPoint
from onceover.ledger.database import Connection
from onceover.ledger.drivers import as_driver
from onceover.quarantine.release_job import ReleasePlan, ReleaseRun


def make_nameless(minute: float, amount: int = 1) -> bytes:
    """Return a record that the first contract refuses."""
    return json.dumps({"at": NOON_MS + int(minute * MINUTE_MS), "amount": amount}).encode()


def produce_mixed(lane: Lane, start: int, end: int) -> None:
    """Produce a record a minute in both Kafka partitions; every third is nameless, every tenth unreadable."""
    for kafka_partition in (0, 1):
        made = [
            b"{" if n % 10 == 9 else make_nameless(n, n % 7) if n % 3 == kafka_partition else event(n, amount=n % 7)
            for n in range(start, end)
        ]
        lane.produce(made, kafka_partition)


def accept_nameless(lane: Lane, name: str = "none") -> None:
    """Cut over to a contract that accepts nameless records."""
    text = lane.toml.read_text()
    for old, new in (
        ('required = ["at", "kind"]', 'required = ["at"]'),
        ('kind = "value.kind"', f"kind = \"coalesce(value.kind, '{name}')\""),
    ):
        text = text.replace(old, new)
    lane.toml.write_text(text)
    lane.migrate()


def look(lane: Lane, reason: str | None = None) -> ReleasePlan:
    with open_release(lane) as (_, run):
        return run.plan(lane.files().list_quarantine_days(), reason)


@contextmanager
def open_release(lane: Lane, most: int = 100) -> Iterator[tuple[Connection, ReleaseRun]]:
    """Open a release that lands at most so many records a batch."""
    pipeline = lane.pipeline
    limited = replace(pipeline, ingest=replace(pipeline.ingest, max_records_per_batch=most))
    with (
        open_pipeline(limited, "test") as context,
        closing(ReleaseRun(lane.spark, context, context.read_registration())) as run,
    ):
        yield context.ledger, run


def release(lane: Lane, most: int = 100, reason: str | None = None) -> ReleasePlan:
    """Do as `jobs/release.py` does, on this process's session."""
    with open_release(lane, most) as (ledger, run), as_driver(ledger, lane.name, "test") as epoch:
        found = run.plan(lane.files().list_quarantine_days(), reason)
        run.carry_out(epoch, found.ids, "me", "a test", FaultPoint())
    return found


def compute_expected(lane: Lane) -> Rows:
    """Compute the log's aggregates without SQL, nameless records included."""
    return count_events(value for _, value in lane.log().values() if value and value != b"{")


def count_quarantined(lane: Lane) -> tuple[int, int]:
    """Return the counts of quarantined and released records by `onceover quarantine list`."""
    found = as_json("quarantine", lane.name, "list")
    return found["records"], sum(day["released"] for day in found["days"])


def produce_mixed_in_one(lane: Lane) -> None:
    """Produce a record a minute; every third is nameless, every tenth unreadable."""
    lane.produce(
        [b"{" if n % 10 == 9 else make_nameless(n, n % 7) if n % 3 == 0 else event(n, amount=n % 7) for n in range(20)]
    )
