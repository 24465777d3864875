"""A large ledger whose windows have lost raw, and a double of the context that a person's commands judge it by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from bench.large_ledger import generation, start_of
from tests.onceover.ledger.driven_pipeline import change_window

from onceover.context import PipelineContext
from onceover.errors import OnceoverError
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.lost_windows import LostWindow
from onceover.ledger.windows import list_windows
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.repair_failure import RepairFailure
from onceover.raw.layout import Layout
from onceover.repair.lost_windows import list_lost

NAME = "lost"
OFFSETS_OF_5 = (250, 350)  # of its own five batches, and of the next five


@dataclass
class Context:
    """A double of a pipeline's context: `held` is what Kafka's log holds, None if Kafka does not answer."""

    ledger: Connection
    files: Any
    registered: RegisteredPipeline
    held: tuple[OffsetRange, ...] | None = ()
    away: bool = False
    unreadable: dict[datetime, OnceoverError] = field(default_factory=dict)
    put_back: bool = False
    unfinished: tuple[str, ...] = ()
    name: str = NAME
    layout: Layout = field(default_factory=lambda: Layout("/large", NAME))

    def require_own_root(self) -> None: ...
    def require_same_contract(self) -> RegisteredPipeline:
        return self.registered

    @property
    def raw_address(self) -> str:
        return "http://127.0.0.1:9"

    def read_held(self, wanted: str) -> tuple[OffsetRange, ...] | None:
        return self.held


def as_context(fake: Context) -> PipelineContext:
    return cast("PipelineContext", fake)


def holds(start: int, end: int) -> tuple[OffsetRange, ...]:
    return (OffsetRange(KafkaPartition(generation(NAME), 0), start, end),)


def fail_repair(
    fake: Context,
    reason: str,
    length: int | None,
    *failures: RepairFailure,
    window: int = 5,
) -> None:
    """Record a repair that failed for that reason, as the window is now; by default a line was lost."""
    fake.ledger.execute(
        """
        WITH request AS (INSERT INTO onceover.repair_request (pipeline, who, why) VALUES (%(name)s, 'me', 'a test')
          RETURNING request_id)
        INSERT INTO onceover.repair (request_id, pipeline, window_start, state, reason, failures, findings,
          started_at, finished_at, bytes_read)
        SELECT request_id, %(name)s, %(start)s, 'failed', %(reason)s, %(failures)s, '[]', clock_timestamp(),
          clock_timestamp(), %(length)s FROM request
        """,
        {
            "name": NAME,
            "start": start_of(window),
            "reason": reason,
            "length": length,
            "failures": list(failures) or [RepairFailure.LOST_LINE],
        },
    )
    change_window(fake.ledger, NAME, start_of(window), "tries = 1")


def age_repairs(fake: Context) -> None:
    """Have all repairs be more than an hour old."""
    fake.ledger.execute(
        "UPDATE onceover.repair SET started_at = started_at - interval '2 hours' WHERE pipeline = %s", [NAME]
    )


def reread(fake: Context, state: str) -> None:
    """Have the offsets of window 5 be read again, as far as `state` says."""
    fake.ledger.execute(
        """
        WITH request AS (INSERT INTO onceover.repair_request (pipeline, who, why) VALUES (%(name)s, 'me', 'a test')
          RETURNING request_id)
        INSERT INTO onceover.read_again (pipeline, window_start, contract_version, generation, kafka_partition,
          start_offset, end_offset, request_id, state, finished_at)
        SELECT %(name)s, %(at)s, 1, %(generation)s, 0, %(start)s, %(end)s, request_id, %(state)s, clock_timestamp()
        FROM request
        """,
        {"name": NAME, "at": start_of(5), "generation": generation(NAME), "start": OFFSETS_OF_5[0],
         "end": OFFSETS_OF_5[1], "state": state},
    )  # fmt: skip


def read_window(fake: Context) -> Any:
    """Return what a list of windows shows of window 5."""
    (row,) = list_windows(fake.ledger, NAME, None, start_of(5), start_of(6))
    return row


def list_declarable(fake: Context) -> Sequence[LostWindow]:
    return list_lost(as_context(fake)).declarable


def refusals(fake: Context) -> list[tuple[datetime, str]]:
    listed = list_lost(as_context(fake))
    assert listed.declarable == ()
    return [(lost.window_start, why) for lost, why in listed.others]
