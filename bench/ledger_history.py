"""The ledger as months of ingest would have left it, written by set-based SQL: a batch every few seconds reads all
Kafka partitions and lands in two windows, most of it in its own, the rest in the one before.

What Kafka no longer holds is rolled up by the hour, as the product does it, the rest is as the product wrote it: a test
compares both with rows of the product, one by one. All sums have closed forms, so that the time to write a history
depends on the rows that are left of it, not on its batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from psycopg import sql
from psycopg.types.numeric import Int8

from bench.large_ledger import pipeline, write_unchecked
from onceover import __version__
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.pipeline import Pipeline
from onceover.model.raw_file import CompactedFile

START: Final = datetime(2025, 1, 1, tzinfo=UTC)
WINDOW: Final = timedelta(minutes=5)
TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
OWN, BEFORE = 8, 2  # records of a batch and Kafka partition: in its own window, in the one before
LINE = 130  # bytes, with its newline; each append begins with one more
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))
TABLES = ("batch", "batch_range", "landing", "landing_part", "certificate", "window")
_FACTORS = {"high1": 7, "low1": 11, "high2": 13, "low2": 17}


@dataclass(frozen=True, slots=True)
class History:
    """The shape of a history of `windows` windows of five minutes; of the first `rolled_hours`, batches are joined."""

    name: str
    windows: int
    rolled_hours: int = 0
    batch_seconds: int = 5
    kafka_partitions: int = 8
    generation: str = "0a1b2c3d"

    @property
    def batches_a_window(self) -> int:
        return int(WINDOW.total_seconds()) // self.batch_seconds

    @property
    def batches(self) -> int:
        """The number of batches that ingest landed."""
        return self.windows * self.batches_a_window

    @property
    def own_bytes(self) -> int:
        return 1 + OWN * self.kafka_partitions * LINE

    @property
    def before_bytes(self) -> int:
        return 1 + BEFORE * self.kafka_partitions * LINE

    def read_lengths(self, window_starts: Iterable[datetime]) -> dict[datetime, int]:
        """Return the lengths of window files, as HDFS would list them."""
        whole = self.batches_a_window * (self.own_bytes + self.before_bytes)
        return dict.fromkeys(window_starts, whole)

    def find_compacted_files(self, compacted: Mapping[datetime, CompactedFile]) -> Mapping[datetime, str]:
        return dict.fromkeys(compacted, "")

    def moment(self, batch: int) -> datetime:
        """Return when the batch of that number, from 1, ends by event time; it landed then."""
        return START + batch * timedelta(seconds=self.batch_seconds)

    def start_of(self, window: int) -> datetime:
        return START + window * WINDOW

    def source(self, kafka_partition: int) -> KafkaPartition:
        return KafkaPartition(self.generation, kafka_partition)

    def read_of(self, batch: int, kafka_partition: int) -> OffsetRange:
        """Return the offsets that the batch read."""
        each = OWN + BEFORE
        return OffsetRange(self.source(kafka_partition), (batch - 1) * each, batch * each)


def piece_of(batch: int, kafka_partition: int, *, own: bool) -> Digest:
    """Return what a batch lands of one Kafka partition in its own window, or in the one before."""
    halves = {name: factor * batch + kafka_partition + own for name, factor in _FACTORS.items()}
    return Digest(OWN if own else BEFORE, **halves)


def build(connection: Connection, history: History, of: Pipeline | None = None) -> RegisteredPipeline:
    """Write the history of a pipeline, by default one without a TOML: every window but the last is closed and
    certified."""
    known = register_pipeline(connection, of or pipeline(history.name), COLUMNS)
    bases = connection.execute(
        "SELECT (SELECT coalesce(max(batch_id), 0) FROM onceover.batch) AS b, "
        "(SELECT coalesce(max(landing_id), 0) FROM onceover.landing) AS l"
    ).fetchone()
    values: dict[str, object] = {
        "name": history.name, "start": START, "seconds": history.batch_seconds, "windows": history.windows,
        "batches": history.batches, "size": history.batches_a_window, "partitions": history.kafka_partitions,
        "rolled": history.rolled_hours, "hour": 3600 // history.batch_seconds, "own": OWN, "before": BEFORE,
        "own_bytes": history.own_bytes, "before_bytes": history.before_bytes, "generation": history.generation,
        "topic": TOPIC_ID, "code": __version__, **(bases or {}),
    }  # fmt: skip
    wide = {name: Int8(value) if isinstance(value, int) else value for name, value in values.items()}
    with connection.transaction(), write_unchecked(connection):
        for statement in _STATEMENTS:
            connection.execute(statement, wide)
        connection.execute(
            sql.SQL(
                "INSERT INTO {} (window_start, window_end, kind, events) "
                "SELECT window_start, window_end, 'a', records FROM onceover.\"window\" WHERE pipeline = %s"
            ).format(known.table.table),
            [history.name],
        )
    for table in TABLES:
        connection.execute(sql.SQL("VACUUM ANALYZE {}").format(sql.Identifier("onceover", table)))
    return known


def _sum_halves(first: str, last: str, constant: str) -> str:
    """Return the columns with the sums of `piece_of` over batches from `first` to `last`; `constant`: p + own."""
    number = f"({last} - {first} + 1)"
    return ", ".join(
        f"{number} * ({factor} * ({first} + {last}) + 2 * ({constant})) / 2 AS {name}"
        for name, factor in _FACTORS.items()
    )


_SUMS = "sum(records)::bigint AS records, " + ", ".join(f"sum({name})::bigint AS {name}" for name in _FACTORS)
_DIGEST = "records, high1, low1, high2, low2"
_MOMENT = "%(start)s::timestamptz + {} * %(seconds)s * interval '1 second'"

_STATEMENTS = (
    "UPDATE onceover.pipeline SET batches_landed = %(batches)s, watermark = "
    f"{_MOMENT.format('(%(batches)s - %(size)s)')} WHERE name = %(name)s",
    # What one batch of the ledger holds: of the base batches, which are numbered from 1, those from first to last.
    """
    CREATE TEMPORARY TABLE unit ON COMMIT DROP AS
    SELECT row_number() OVER (ORDER BY first) AS number, first, last FROM (
      SELECT (h - 1) * %(hour)s::bigint + 1 AS first, h * %(hour)s::bigint AS last
      FROM generate_series(1, %(rolled)s) h
      UNION ALL
      SELECT n, n FROM generate_series(%(rolled)s * %(hour)s::bigint + 1, %(batches)s) n) units
    """,
    f"""
    INSERT INTO onceover.batch (batch_id, pipeline, epoch, contract_version, state, begun_at, landed_at, committed_at,
      scheduling_delay_ms, batches, rolled_up_at)
    OVERRIDING SYSTEM VALUE
    SELECT %(b)s + number, %(name)s, 1, 1, 'landed', {_MOMENT.format("first")}, {_MOMENT.format("last")},
      {_MOMENT.format("last")}, 0, last - first + 1, CASE WHEN first < last THEN now() END
    FROM unit
    """,
    # The stretches of base batches, from x to y, that a unit landed in a window w, where own: as the batches' own one.
    """
    CREATE TEMPORARY TABLE stretch ON COMMIT DROP AS
    SELECT * FROM (
      SELECT number, w, own, greatest(first, (w + 1 - own) * %(size)s + 1) AS x,
        least(last, (w + 2 - own) * %(size)s) AS y
      FROM unit, LATERAL generate_series((first - 1) / %(size)s - 1, (last - 1) / %(size)s) w, generate_series(0, 1) own
      ) cut WHERE w >= 0 AND x <= y
    """,
    "ANALYZE unit",
    "ANALYZE stretch",
    f"""
    CREATE TEMPORARY TABLE part ON COMMIT DROP AS
    SELECT dense_rank() OVER (ORDER BY number, w) AS landing, number, w, p, {_SUMS} FROM (
      SELECT number, w, p, (y - x + 1) * CASE own WHEN 1 THEN %(own)s ELSE %(before)s END AS records,
        {_sum_halves("x", "y", "p + own")}
      FROM stretch, generate_series(0, %(partitions)s - 1) p) pieces
    GROUP BY number, w, p
    """,
    "ANALYZE part",
    f"""
    INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset, max_event_time,
      oldest_record, leader_epochs, {_DIGEST})
    SELECT %(b)s + number, %(generation)s, p, (first - 1) * (%(own)s + %(before)s), last * (%(own)s + %(before)s),
      {_MOMENT.format("last")}, {_MOMENT.format("(first - 1)")},
      jsonb_build_array(jsonb_build_array(0, (first - 1) * (%(own)s + %(before)s))), {_DIGEST}
    FROM unit JOIN (SELECT number, p, {_SUMS} FROM part GROUP BY 1, 2) s USING (number)
    """,
    f"""
    INSERT INTO onceover.landing (landing_id, batch_id, pipeline, window_start, byte_start, byte_end, proved, {_DIGEST})
    OVERRIDING SYSTEM VALUE
    SELECT %(l)s + l.landing, %(b)s + number, %(name)s, {_MOMENT.format("w * %(size)s")}, s.byte_start, s.byte_end,
      true, {", ".join(f"l.{name}" for name in _DIGEST.split(", "))}
    FROM (SELECT landing, number, w, {_SUMS} FROM part GROUP BY 1, 2, 3) l JOIN (
      SELECT number, w,
        min(CASE own WHEN 1 THEN (x - 1 - w * %(size)s) * %(own_bytes)s
          ELSE %(size)s * %(own_bytes)s + (x - 1 - (w + 1) * %(size)s) * %(before_bytes)s END) AS byte_start,
        max(CASE own WHEN 1 THEN (y - w * %(size)s) * %(own_bytes)s
          ELSE %(size)s * %(own_bytes)s + (y - (w + 1) * %(size)s) * %(before_bytes)s END) AS byte_end
      FROM stretch GROUP BY 1, 2) s USING (number, w)
    """,
    f"""
    INSERT INTO onceover.landing_part (landing_id, generation, kafka_partition, {_DIGEST})
    SELECT %(l)s + landing, %(generation)s, p, {_DIGEST} FROM part
    """,
    # Each batch that touched a window counted twice: its increment, and its landing.
    f"""
    INSERT INTO onceover."window" (pipeline, window_start, window_end, day, version, oldest_record, {_DIGEST})
    SELECT %(name)s, {_MOMENT.format("w * %(size)s")}, {_MOMENT.format("(w + 1) * %(size)s")},
      (({_MOMENT.format("w * %(size)s")}) AT TIME ZONE 'UTC')::date,
      2 * %(size)s * CASE WHEN w < %(windows)s - 1 THEN 2 ELSE 1 END, {_MOMENT.format("w * %(size)s")}, {_SUMS}
    FROM part GROUP BY w
    """,
    f"""
    INSERT INTO onceover.kafka_partition (pipeline, generation, kafka_partition, topic_id, origin, frontier, reach,
      end_offset, high_watermark, max_event_time, caught_up_since, records_landed, compared_epoch)
    SELECT %(name)s, %(generation)s, p, %(topic)s, 0, e, e, e, e,
      {_MOMENT.format("%(batches)s")}, now(), s.records, NULL
    FROM (SELECT p, sum(records)::bigint AS records FROM part GROUP BY p) s,
      (SELECT %(batches)s * (%(own)s + %(before)s) AS e) x
    """,
    "ANALYZE onceover.landing",
    'ANALYZE onceover."window"',
    # Certified as soon as the last of its records had landed.
    f"""
    INSERT INTO onceover.certificate (pipeline, window_start, version, basis, contract_version,
      code_version, last_landing, landings, frozen_length, {_DIGEST},
      aggregate_rows, aggregate_hash, who, why)
    SELECT %(name)s, w.window_start, w.version, 'ledger', 1, %(code)s, l.last, 2 * %(size)s,
      l.bytes, w.records, w.high1, w.low1, w.high2, w.low2, 1,
      ('x' || left(h, 16))::bit(64)::bigint || ':' || ('x' || right(h, 16))::bit(64)::bigint, 'bench', 'bench'
    FROM onceover."window" w JOIN (
      SELECT window_start, max(landing_id) AS last, max(byte_end) AS bytes
      FROM onceover.landing WHERE pipeline = %(name)s GROUP BY 1) l USING (window_start),
      LATERAL (SELECT md5(ROW('a'::text, w.records)::text) AS h) c
    WHERE w.pipeline = %(name)s AND w.window_end <= {_MOMENT.format("(%(batches)s - %(size)s)")}
    """,
    """
    UPDATE onceover."window" w SET certificate_id = c.certificate_id, certified_version = c.version,
      certified_basis = c.basis
    FROM onceover.certificate c
    WHERE w.pipeline = %(name)s AND c.pipeline = w.pipeline AND c.window_start = w.window_start
    """,
    "UPDATE onceover.pipeline SET last_batch = (SELECT max(batch_id) FROM onceover.batch WHERE pipeline = %(name)s) "
    "WHERE name = %(name)s",
    "SELECT setval(pg_get_serial_sequence('onceover.batch', 'batch_id'), max(batch_id)) FROM onceover.batch",
    "SELECT setval(pg_get_serial_sequence('onceover.landing', 'landing_id'), max(landing_id)) FROM onceover.landing",
)
