"""A large ledger as ingest would have left it, written by set-based SQL.

One batch a minute reads every Kafka partition and lands in two windows: most in its own, the rest in the one before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from psycopg import sql

from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection
from onceover.model.contract import Column, Columns, Contract, Key
from onceover.model.finding_kinds import Kind
from onceover.model.measures import Measure
from onceover.model.pipeline import IngestPolicy, Pipeline, RepairPolicy, StoragePolicy
from onceover.model.raw_file import CompactedFile

MINUTES = 5
START = datetime(2025, 1, 1, tzinfo=UTC)
YEAR = 365 * 24 * 60 // MINUTES  # windows
OWN, BEFORE = 8, 2  # records of a batch and Kafka partition: in its own window, in the one before
PARTITIONS = 2
LINE = 141  # bytes, with its newline; each append begins with one more
OWN_BYTES, BEFORE_BYTES = 1 + OWN * PARTITIONS * LINE, 1 + BEFORE * PARTITIONS * LINE
_TABLES = ("batch", "batch_range", "landing", "landing_part", "certificate", "window")

Planted = Literal[
    "duplicated", "duplicated since", "unaccounted bytes", "unproved", "gone", "shorter", "late", "digest", "count"
]
"""The planted findings: `duplicated` and `unproved` in windows never certified, the rest in certified ones."""

SHOWS: dict[Planted, frozenset[Kind]] = {
    "duplicated": frozenset({Kind.DUPLICATED}),
    "duplicated since": frozenset({Kind.DUPLICATED, Kind.LATE}),
    "unaccounted bytes": frozenset({Kind.UNACCOUNTED_BYTES}),
    "unproved": frozenset({Kind.UNACCOUNTED_BYTES}),
    "gone": frozenset({Kind.MISSING_FILE}),
    "shorter": frozenset({Kind.MISSING_FILE}),
    "late": frozenset({Kind.LATE}),
    "digest": frozenset({Kind.AGGREGATE_MISMATCH}),
    "count": frozenset({Kind.AGGREGATE_MISMATCH}),
}


class Lengths:
    """A double of HDFS's listings: the window files' lengths, and how many were requested."""

    def __init__(self, windows: int) -> None:
        whole = MINUTES * (OWN_BYTES + BEFORE_BYTES)
        self.held = {start_of(n): whole for n in range(windows - 1)}
        self.held[start_of(windows - 1)] = MINUTES * OWN_BYTES  # no window after it whose batches land here too
        self.asked = 0

    def read_lengths(self, window_starts: Iterable[datetime]) -> dict[datetime, int]:
        starts = list(window_starts)
        self.asked += len(starts)
        return {start: self.held[start] for start in starts if start in self.held}

    def find_compacted_files(self, compacted: Mapping[datetime, CompactedFile]) -> Mapping[datetime, str]:
        return dict.fromkeys(compacted, "")


@dataclass(slots=True)
class LargeLedger:
    """A built ledger: `planted` are the windows with the findings that each must have; other windows must have none."""

    known: RegisteredPipeline
    files: Lengths
    windows: int
    landings: int
    planted: dict[datetime, Planted] = field(default_factory=dict)

    def expected(self) -> dict[datetime, frozenset[Kind]]:
        return {start: SHOWS[what] for start, what in self.planted.items()}


def start_of(window: int) -> datetime:
    return START + window * timedelta(minutes=MINUTES)


def generation(name: str) -> str:
    """Return the generation of a pipeline's topic, its own."""
    return f"{zlib.crc32(name.encode()):08x}"


def pipeline(name: str) -> Pipeline:
    """Return a pipeline that was never run and needs no TOML."""
    contract = Contract(name, MINUTES, "json", "at BIGINT, kind STRING", ("at",), "value.at", "quarantine",
                        (Key("kind", "value.kind"),), (Measure("events", "count", "*"),), None, None)  # fmt: skip
    ingest = IngestPolicy(0, 1, 1, 1000, "kafka", "", name, "read_committed", "earliest")
    return Pipeline(name, contract, ingest, StoragePolicy("/large"), RepairPolicy(3))


def build(
    connection: Connection, name: str, windows: int, *, certified: bool = True, rows: bool = False
) -> LargeLedger:
    """Build a ledger with every window closed and, by default, certified; `rows` adds an aggregate row a window."""
    columns = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))
    known = register_pipeline(connection, pipeline(name), columns)
    batches = windows * MINUTES
    bases = connection.execute(
        "SELECT (SELECT coalesce(max(batch_id), 0) FROM onceover.batch) AS b, "
        "(SELECT coalesce(max(landing_id), 0) FROM onceover.landing) AS l"
    ).fetchone()
    values: dict[str, Any] = {
        "name": name, "start": START, "minutes": MINUTES, "windows": windows, "batches": batches,
        "b": bases["b"] if bases else 0, "l": bases["l"] if bases else 0, "generation": generation(name),
        "partitions": PARTITIONS, "own": OWN, "before": BEFORE, "own_bytes": OWN_BYTES, "before_bytes": BEFORE_BYTES,
    }  # fmt: skip
    with connection.transaction(), write_unchecked(connection):
        for statement in _STATEMENTS:
            connection.execute(statement, values)
        _analyze_tables(connection)
        if rows:
            connection.execute(
                sql.SQL(
                    "INSERT INTO {} (window_start, window_end, kind, events) "
                    "SELECT window_start, window_end, 'a', records FROM onceover.\"window\" WHERE pipeline = %s"
                ).format(known.table.table),
                [name],
            )
        if certified:
            _certify(connection, known, values, rows)
            _analyze_tables(connection)
    for table in _TABLES:
        connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier("onceover", table)))
    return LargeLedger(known, Lengths(windows), windows, 2 * batches - MINUTES)


@contextmanager
def uncertified(connection: Connection, ledger: LargeLedger, starts: Sequence[datetime]) -> Iterator[None]:
    """Make these windows closed and never judged, as after their first landings, until the context ends."""
    name = ledger.known.name
    rows = connection.execute(
        'SELECT window_start, certificate_id FROM onceover."window" WHERE pipeline = %s AND window_start = ANY(%s)',
        [name, list(starts)],
    ).fetchall()
    change = (
        'UPDATE onceover."window" w SET certificate_id = c.id '
        "FROM unnest(%s::timestamptz[], %s::bigint[]) c (start, id) WHERE w.pipeline = %s AND w.window_start = c.start"
    )
    held = [row["window_start"] for row in rows]
    connection.execute(change, [held, [None] * len(held), name])
    try:
        yield
    finally:
        connection.execute(change, [held, [row["certificate_id"] for row in rows], name])


# What `build` writes, and what detection, repairs and tests of the ledger write later: what refers to others first.
_EMPTIED = (
    "landing", "batch", "revision_row", '"window"', "certificate", "kafka_partition", "driver", "finding",
    "read_again", "repair", "repair_request", "action",
)  # fmt: skip


def drop(connection: Connection, ledger: LargeLedger) -> None:
    """Delete the ledger's rows and tables."""
    drop_pipeline(connection, ledger.known)


def drop_pipeline(connection: Connection, known: RegisteredPipeline) -> None:
    """Delete a built pipeline's rows and tables."""
    name = known.name
    with connection.transaction(), write_unchecked(connection):
        of = "(SELECT {0}_id FROM onceover.{0} WHERE pipeline = %s)"
        for table, key in (("batch_range", "batch"), ("landing_part", "landing")):
            connection.execute(f"DELETE FROM onceover.{table} WHERE {key}_id IN {of.format(key)}", [name])
        for table in _EMPTIED:
            connection.execute(f"DELETE FROM onceover.{table} WHERE pipeline = %s", [name])
        connection.execute(sql.SQL("DELETE FROM {}").format(known.table.table))
    for table in _TABLES:  # else later reads go through the deleted rows
        connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier("onceover", table)))


# What ingest writes. Batch n (from 1) reads minute n-1; its landing in its own window is 2n-1, the other one 2n.
_DIGEST = "h, (h * 7919) %% 4294967296, (h * 104729) %% 4294967296, (h * 1299709) %% 4294967296"
_STATEMENTS = (
    "UPDATE onceover.pipeline SET every_window_closed = false, watermark = %(start)s + interval '100 years' "
    "WHERE name = %(name)s",
    """
    INSERT INTO onceover.batch (batch_id, pipeline, epoch, contract_version, state, begun_at, landed_at, committed_at)
    OVERRIDING SYSTEM VALUE
    SELECT %(b)s + n, %(name)s, 1, 1, 'landed', t, t, t
    FROM generate_series(1, %(batches)s) n, LATERAL (SELECT %(start)s + n * interval '1 minute' AS t) x
    """,
    f"""
    INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset, max_event_time,
      records, high1, low1, high2, low2)
    SELECT %(b)s + n, %(generation)s, p, (n - 1) * %(own)s::bigint + (n - 1) * %(before)s,
      n * (%(own)s::bigint + %(before)s), %(start)s + n * interval '1 minute', %(own)s + %(before)s, {_DIGEST}
    FROM generate_series(1, %(batches)s) n, generate_series(0, %(partitions)s - 1) p,
      LATERAL (SELECT ((n * 10 + p) * 2654435761) %% 4294967296 AS h) x
    """,
    f"""
    INSERT INTO onceover.landing (landing_id, batch_id, pipeline, window_start, byte_start, byte_end, proved,
      records, high1, low1, high2, low2)
    OVERRIDING SYSTEM VALUE
    SELECT %(l)s + 2 * n - own, %(b)s + n, %(name)s, %(start)s + w * %(minutes)s * interval '1 minute', at, at + size,
      true, %(partitions)s * CASE own WHEN 1 THEN %(own)s ELSE %(before)s END, {_DIGEST}
    FROM generate_series(1, %(batches)s) n, generate_series(0, 1) own,
      LATERAL (SELECT (n - 1) / %(minutes)s - 1 + own AS w, (n - 1) %% %(minutes)s AS i) x,
      LATERAL (SELECT CASE own WHEN 1 THEN i * %(own_bytes)s ELSE %(minutes)s * %(own_bytes)s + i * %(before_bytes)s END
        AS at, CASE own WHEN 1 THEN %(own_bytes)s ELSE %(before_bytes)s END AS size,
        ((n * 2 + own) * 2654435761) %% 4294967296 AS h) y
    WHERE w >= 0
    """,
    f"""
    INSERT INTO onceover.landing_part (landing_id, generation, kafka_partition, records, high1, low1, high2, low2)
    SELECT landing_id, %(generation)s, p, records / %(partitions)s, {_DIGEST}
    FROM onceover.landing, generate_series(0, %(partitions)s - 1) p, LATERAL (SELECT (high1 + p) / 2 AS h) x
    WHERE pipeline = %(name)s
    """,
    """
    INSERT INTO onceover."window" (pipeline, window_start, window_end, day, version, records, high1, low1, high2,
      low2)
    SELECT %(name)s, window_start, window_start + %(minutes)s * interval '1 minute',
      (window_start AT TIME ZONE 'UTC')::date,
      2 * count(*) + extract(epoch FROM window_start)::bigint / 60 %% 37, sum(records),
      sum(high1), sum(low1), sum(high2), sum(low2)
    FROM onceover.landing WHERE pipeline = %(name)s GROUP BY window_start
    """,
    """
    INSERT INTO onceover.kafka_partition (pipeline, generation, kafka_partition, topic_id, origin, frontier, reach,
      end_offset, records_landed)
    SELECT %(name)s, %(generation)s, p, 'topic', 0, e, e, e, e
    FROM generate_series(0, %(partitions)s - 1) p, (SELECT %(batches)s::bigint * (%(own)s + %(before)s) AS e) x
    """,
    "SELECT setval(pg_get_serial_sequence('onceover.batch', 'batch_id'), %(b)s + %(batches)s)",
    "SELECT setval(pg_get_serial_sequence('onceover.landing', 'landing_id'), %(l)s + 2 * %(batches)s)",
)


def _analyze_tables(connection: Connection) -> None:
    """Analyze the tables, as autovacuum has done with real ones long before they are this large."""
    for table in _TABLES:
        connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier("onceover", table)))


def _certify(connection: Connection, known: RegisteredPipeline, values: dict[str, Any], rows: bool) -> None:
    connection.execute(
        """
        INSERT INTO onceover.certificate (pipeline, window_start, version, basis, contract_version,
          code_version, last_landing, landings, frozen_length, records, high1, low1, high2, low2, who, why)
        SELECT %(name)s, w.window_start, w.version, 'ledger', 1, 'bench', l.last, l.landings, l.bytes,
          w.records, w.high1, w.low1, w.high2, w.low2, 'bench', 'bench'
        FROM onceover."window" w JOIN (
          SELECT window_start, max(landing_id) AS last, count(*) AS landings, max(byte_end) AS bytes
          FROM onceover.landing WHERE pipeline = %(name)s GROUP BY window_start) l USING (window_start)
        WHERE w.pipeline = %(name)s
        """,
        values,
    )
    connection.execute(
        'UPDATE onceover."window" w SET certificate_id = c.certificate_id, certified_version = c.version, '
        "certified_basis = c.basis "
        "FROM onceover.certificate c "
        "WHERE w.pipeline = %(name)s AND c.pipeline = w.pipeline AND c.window_start = w.window_start",
        values,
    )
    if rows:
        found = known.table.fingerprints(connection, [start_of(n) for n in range(values["windows"])])
        connection.execute(
            "UPDATE onceover.certificate c SET aggregate_rows = f.rows, aggregate_hash = f.hash "
            "FROM unnest(%s::timestamptz[], %s::bigint[], %s::text[]) AS f (start, rows, hash) "
            "WHERE c.pipeline = %s AND c.window_start = f.start",
            [list(found), [f.rows for f in found.values()], [f.hash for f in found.values()], known.name],
        )


@contextmanager
def write_unchecked(connection: Connection) -> Iterator[None]:
    """Check foreign keys once for all rows instead of once a row, as everything is written in one transaction."""
    keys = connection.execute(
        "SELECT conrelid::regclass::text AS holder, conname, pg_get_constraintdef(oid) AS definition "
        "FROM pg_constraint WHERE contype = 'f' AND connamespace = 'onceover'::regnamespace "
        "AND conrelid = ANY(%s::regclass[])",
        [[f'onceover."{table}"' for table in _TABLES]],
    ).fetchall()
    for key in keys:
        connection.execute(f'ALTER TABLE {key["holder"]} DROP CONSTRAINT "{key["conname"]}"')
    yield
    for key in keys:
        connection.execute(f'ALTER TABLE {key["holder"]} ADD CONSTRAINT "{key["conname"]}" {key["definition"]}')
