"""The signals of a scrape, from batches, windows and findings written by the ledger's own functions."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from bench.large_ledger import pipeline
from psycopg.types.json import Jsonb

from onceover.detection.holes import build_hole_finding
from onceover.ledger import batches, drivers, frontiers, repair_requests
from onceover.ledger.aggregates import NOTHING
from onceover.ledger.catalog import keep_log_retention, register_pipeline
from onceover.ledger.certificates import Certificate, certify
from onceover.ledger.columns import count_columns
from onceover.ledger.database import Connection
from onceover.ledger.findings import note_finding, record_findings
from onceover.ledger.windows import WindowState, list_windows
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest, sum_digests
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Gap, Reason
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.observability import metric_values
from onceover.observability.metric_values import DriverState, KafkaPartitionProgress, Signals

pytestmark = pytest.mark.stack

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
GENERATION = "0a1b2c3d"
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))
ZERO, ONE = KafkaPartition(GENERATION, 0), KafkaPartition(GENERATION, 1)


class Written:
    """A pipeline with two Kafka partitions, and the steps of its driver."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.name = connection, f"s{uuid.uuid4().hex[:10]}"
        self.known = register_pipeline(connection, pipeline(self.name), COLUMNS)
        self.epoch = drivers.acquire(connection, self.name, "test")
        self.see_ends(1000, 1000)

    def see_ends(self, zero: int, one: int) -> None:
        starts = {ZERO: Start(0, 0), ONE: Start(0, 0)}
        frontiers.register_kafka_partitions(self.connection, self.epoch, "topic", starts, {ZERO: zero, ONE: one})

    def land(self, ranges: dict[KafkaPartition, tuple[int, int]], minute: int = 0, *, quarantined: int = 0,
             waited: float | None = 0.0, oldest: datetime | None = None) -> int:  # fmt: skip
        """Land a batch of these offsets in the window of `minute`, the first `quarantined` of each in quarantine."""
        whole = [OffsetRange(source, *bounds) for source, bounds in ranges.items()]
        batch_id = batches.begin(self.connection, self.epoch, 1, whole, waited)
        start = NOON + timedelta(minutes=minute)
        self.connection.execute(
            'INSERT INTO onceover."window" (pipeline, window_start, window_end, day) VALUES (%s, %s, %s, %s) '
            "ON CONFLICT DO NOTHING",
            [self.name, start, start + timedelta(minutes=5), start.date()],
        )
        parts = [LandingPart(r.source, Digest(len(r) - quarantined)) for r in whole]
        landings = [Landing(start, None, 0, 1, True, tuple(parts))]
        if quarantined:
            bad = [LandingPart(r.source, Digest(quarantined)) for r in whole]
            landings.append(Landing(None, date(2026, 3, 1), 0, 1, True, tuple(bad)))
        read = [RangeRead(r, Digest(len(r)), start, oldest) for r in whole]
        batches.land_batch(self.connection, self.epoch, batch_id, read, landings)
        return batch_id

    def certify(self, minute: int) -> None:
        rows = self.windows(minute)
        stated = Certificate(rows["window_start"], rows["version"], (), 0, sum_digests(()),
                             NOTHING, "test", "a test")  # fmt: skip
        certify(self.connection, self.known, stated)

    def windows(self, minute: int) -> Any:
        start = NOON + timedelta(minutes=minute)
        (row,) = list_windows(self.connection, self.name, None, start, start + timedelta(minutes=1))
        return row

    def set_window(self, minute: int, change: str) -> None:
        self.connection.execute(
            f'UPDATE onceover."window" SET {change} WHERE pipeline = %s AND window_start = %s',
            [self.name, NOON + timedelta(minutes=minute)],
        )

    def close_before(self, minute: int) -> None:
        self.connection.execute(
            "UPDATE onceover.pipeline SET watermark = %s WHERE name = %s", [NOON + timedelta(minutes=minute), self.name]
        )

    def age(self, batch_id: int, by: timedelta) -> None:
        """As if the batch had landed so long ago."""
        self.connection.execute(
            "UPDATE onceover.batch SET landed_at = landed_at - %s WHERE batch_id = %s", [by, batch_id]
        )

    def read(self, overdue_after: timedelta = HOUR) -> Signals:
        return next(s for s in metric_values.read_signals(self.connection, overdue_after) if s.pipeline == self.name)


@pytest.fixture
def written(connection: Connection) -> Written:
    return Written(connection)


def test_records_are_counted_by_kafka_partition_with_quarantine(written: Written) -> None:
    written.land({ZERO: (0, 100), ONE: (0, 50)}, quarantined=3)
    written.land({ZERO: (100, 110)})
    written.land({ZERO: (100, 110)})
    batches.begin(written.connection, written.epoch, 1, [OffsetRange(ONE, 50, 90)])
    batches.supersede_own(written.connection, written.epoch)

    signals = written.read()

    assert signals.kafka_partitions == {
        0: KafkaPartitionProgress(landed=120, quarantined=3, lag=890, largest_event_time=NOON),
        1: KafkaPartitionProgress(landed=50, quarantined=3, lag=950, largest_event_time=NOON),
    }
    assert (signals.landed, signals.superseded) == (3, 1)


def test_earlier_generation_counts_but_does_not_lag(written: Written) -> None:
    written.land({ZERO: (0, 100), ONE: (0, 50)})
    frontiers.retire_generations(written.connection, written.epoch, "ffffffff")
    recreated = KafkaPartition("ffffffff", 0)
    frontiers.register_kafka_partitions(
        written.connection, written.epoch, "recreated", {recreated: Start(0, 0)}, {recreated: 30}
    )
    written.land({recreated: (0, 10)})

    signals = written.read().kafka_partitions

    assert (signals[0].landed, signals[0].lag, signals[1].lag) == (110, 20, 0)


def test_last_batch_is_the_last_submitted_and_landed(written: Written) -> None:
    assert written.read().landed_at is None
    first = written.land({ZERO: (0, 10)}, waited=1.5)
    written.connection.execute(
        "UPDATE onceover.batch SET landed_at = begun_at + interval '2.25 seconds' WHERE batch_id = %s", [first]
    )
    written.land({ONE: (0, 10)}, waited=None)
    batches.begin(written.connection, written.epoch, 1, [OffsetRange(ZERO, 10, 20)], 9.0)

    last = written.read()

    assert (last.scheduling_delay, last.processing) == (1.5, 2.25)


def test_windows_are_counted_by_their_listed_states(written: Written) -> None:
    for minute in range(0, 45, 5):
        written.land({ZERO: (minute * 2, minute * 2 + 10)}, minute)
    written.close_before(30)
    for minute in (0, 5, 25):
        written.certify(minute)
    written.land({ONE: (0, 10)}, 5)
    note_finding(written.connection, written.name, NOON, Finding(Kind.UNACCOUNTED_BYTES))
    note_finding(written.connection, written.name, NOON + timedelta(minutes=25), Finding(Kind.MISSING_FILE))
    repair_requests.create_request(
        written.connection, written.name, "test", "a test", {NOON + timedelta(minutes=10): [Finding(Kind.LATE)]}
    )
    written.set_window(15, "blocked_at = now(), blocked_why = 'a test'")
    written.set_window(20, "claimed_by = 'a test', claimed_until = now() + interval '1 hour'")
    written.set_window(35, "expired_at = now()")

    listed = Counter(row["state"] for row in list_windows(written.connection, written.name))

    assert written.read().windows == {WindowState(str(state)): n for state, n in listed.items()}
    assert set(listed) == set(WindowState)


def test_window_is_overdue_by_event_time_and_by_the_clock(written: Written) -> None:
    old = [written.land({ZERO: (minute * 2, minute * 2 + 10)}, minute) for minute in range(0, 30, 5)]
    written.close_before(25 + 60)
    assert written.read().overdue == 0, "all windows have only just landed"
    for batch_id in old:
        written.age(batch_id, 2 * HOUR)
    written.certify(0)
    written.set_window(5, "blocked_at = now(), blocked_why = 'a test'")
    written.set_window(10, "claimed_by = 'a test', claimed_until = now() + interval '1 hour'")
    written.land({ONE: (0, 10)}, 15)

    assert written.read().overdue == 2, "10 is being repaired, 20 was never judged; 25 has not been closed for an hour"
    assert written.read(2 * HOUR).overdue == 0, "the watermark is not two hours beyond their ends"
    written.connection.execute(
        "UPDATE onceover.pipeline SET every_window_closed = true WHERE name = %s", [written.name]
    )
    assert written.read().overdue == 3, "the topic is idle: 25 too, but 15 was only just landed in"


def test_driver_that_died_differs_from_one_that_was_stopped(written: Written) -> None:
    assert written.read().driver is DriverState.ALIVE
    written.connection.execute(
        "UPDATE onceover.driver SET expires_at = now() - interval '1 second' WHERE pipeline = %s", [written.name]
    )
    assert written.read().driver is DriverState.DEAD
    drivers.end_epoch(written.connection, written.epoch)
    assert written.read().driver is DriverState.STOPPED


def test_log_is_needed_until_an_uncertified_windows_first_record(written: Written) -> None:
    for minute in (0, 5, 10):
        oldest = NOON + timedelta(minutes=minute, seconds=1)
        written.land({ZERO: (minute * 2, minute * 2 + 10)}, minute, oldest=oldest)
    assert written.read().log_until is None
    keep_log_retention(written.connection, written.name, 7 * 24 * 3_600_000)
    written.close_before(10)
    written.certify(0)

    signals = written.read()

    assert signals.log_retention == 7 * 24 * 3600
    assert signals.log_until == written.windows(5)["log_until"].timestamp()
    for minute in (5, 10):
        written.certify(minute)
    assert written.read().log_until is None


def test_open_findings_are_counted_and_holes_by_their_offsets(written: Written) -> None:
    gaps = [Gap(OffsetRange(ZERO, 10, 30), Reason.EXPIRED), Gap(OffsetRange(ZERO, 30, 35), Reason.LOST),
            Gap(OffsetRange(ONE, 0, 7), Reason.EXPIRED)]  # fmt: skip
    hole = build_hole_finding(written.connection, written.name, gaps)
    assert hole is not None
    record_findings(written.connection, written.name, {None: [hole]})
    for minute in (0, 5):
        at = NOON + timedelta(minutes=minute)
        record_findings(written.connection, written.name, {at: [Finding(Kind.LATE), Finding(Kind.DUPLICATED)]})
    record_findings(written.connection, written.name, {NOON: [Finding(Kind.LATE)]})

    signals = written.read()

    assert signals.findings == {Kind.LATE: 2, Kind.DUPLICATED: 1, Kind.HOLE: 1}
    assert signals.holes == {Reason.EXPIRED: 27, Reason.LOST: 5}
    record_findings(written.connection, written.name, {None: []})
    assert (written.read().findings.get(Kind.HOLE), written.read().holes) == (None, {})


def test_error_before_repair_is_summed_by_its_direction(written: Written) -> None:
    requested = {NOON + timedelta(minutes=5 * n): [Finding(Kind.LATE)] for n in range(5)}
    request = repair_requests.create_request(written.connection, written.name, "test", "a test", requested)
    counts = ((120, 100, "confirmed"), (105, 100, "published"), (93, 100, "revoked"), (None, 100, "confirmed"),
              (500, 100, "restored"))  # fmt: skip
    for start, (before, after, state) in zip(sorted(requested), counts, strict=True):
        written.connection.execute(
            "UPDATE onceover.repair SET state = %s, before = %s, after = %s "
            "WHERE request_id = %s AND window_start = %s",
            [state, *(Jsonb({"control": count_columns(None if n is None else Digest(n))}) for n in (before, after)),
             request, start],
        )  # fmt: skip

    signals = written.read()

    assert (signals.too_many, signals.too_few) == (25, 7)
