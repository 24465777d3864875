"""Rollups in the ledger: many batches of offsets that Kafka no longer holds become one batch, with one range of each
Kafka partition and one landing in each window.

Only what no proof needs is lost: which of the batches read an offset. Each rollup is a transaction of its own. Batches
that overlap others keep their rows, and so do holes, rebuilt batches and releases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from onceover.ledger.columns import read_digest, read_range
from onceover.ledger.database import Connection, hold_lock
from onceover.ledger.frontiers import EXTRAS_ARE_SETTLED
from onceover.ledger.landed_offsets import insert_ranges
from onceover.ledger.windows import lock_windows
from onceover.model.batch import RangeRead
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rollup import OldBatch, OldLanding, join_ranges

_PAGE = 2_000
# Whether nothing will be proved of window w but what its certificate c says.
_IS_SETTLED = f"""
  w.is_certified AND w.blocked_at IS NULL AND coalesce(w.claimed_until < clock_timestamp(), true)
    AND {EXTRAS_ARE_SETTLED}
    AND NOT EXISTS (SELECT FROM onceover.finding f WHERE f.pipeline = w.pipeline AND f.window_start = w.window_start
      AND f.resolved_at IS NULL)"""


def hold_rollups(connection: Connection, pipeline: str, patience_ms: int = 10_000) -> None:
    """Lock the pipeline's rollups until the connection ends. Raises as `hold_lock`."""
    hold_lock(connection, f"onceover roll-up {pipeline}", f"rolls up batches of {pipeline}", patience_ms)


def keep_apart(connection: Connection, pipeline: str, offsets: Iterable[OffsetRange]) -> None:
    """Keep the landed batches that overlap these offsets, which were read again, as they are for ever: a repair proves
    the records of the one by the landings of the other, range by range."""
    for piece in offsets:
        connection.execute(
            """
            UPDATE onceover.batch SET rolled_up_at = clock_timestamp() WHERE pipeline = %s AND state = 'landed'
              AND rolled_up_at IS NULL AND batch_id IN (
                SELECT batch_id FROM onceover.batch_range WHERE generation = %s AND kafka_partition = %s
                  AND end_offset > %s AND start_offset < %s)
            """,
            [pipeline, piece.source.generation, piece.source.kafka_partition, piece.start, piece.end],
        )


def list_old_batches(connection: Connection, pipeline: str, starts: Mapping[KafkaPartition, int]) -> Iterator[OldBatch]:
    """Yield the landed batches that were not rolled up, in order; a batch is final once each of its ranges ends before
    these `starts` of Kafka's logs, and its windows are settled. A source without a log is of a topic that was deleted.
    Ends with a page of batches that Kafka holds."""
    last, is_old = 0, True
    while is_old and (page := _read_page(connection, pipeline, last, starts)):
        yield from (batch for batch, _ in page)
        last, is_old = page[-1][0].batch_id, any(below for _, below in page)


def _read_page(
    connection: Connection, pipeline: str, last: int, starts: Mapping[KafkaPartition, int]
) -> list[tuple[OldBatch, bool]]:
    """Return the next batches after the `last` one, each with whether it is below these starts of logs."""
    batches = connection.execute(
        "SELECT batch_id, epoch, contract_version, landed_at FROM onceover.batch WHERE pipeline = %s "
        "AND state = 'landed' AND scheduling_delay_ms IS NOT NULL AND rolled_up_at IS NULL "
        "AND committed_at IS NOT NULL AND batch_id > %s ORDER BY batch_id LIMIT %s",
        [pipeline, last, _PAGE],
    ).fetchall()
    ids = [row["batch_id"] for row in batches]
    ranges = _read_ranges(connection, ids)
    landings, settled = _read_landings(connection, ids)
    page: list[tuple[OldBatch, bool]] = []
    for row in batches:
        batch_id = row["batch_id"]
        read, landed = ranges.get(batch_id, ()), landings.get(batch_id, ())
        is_below = all(piece.offsets.end <= starts.get(piece.offsets.source, piece.offsets.end) for piece in read)
        is_plain = len({x.offsets.source for x in read}) == len(read) and len({x.place for x in landed}) == len(landed)
        is_final = is_below and is_plain and settled.get(batch_id, True)
        page.append((OldBatch(**row, ranges=read, landings=landed, is_final=is_final), is_below))
    return page


def _read_ranges(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[RangeRead, ...]]:
    rows = connection.execute("SELECT * FROM onceover.batch_range WHERE batch_id = ANY(%s) ORDER BY batch_id", [ids])
    return {
        batch_id: tuple(
            RangeRead(
                read_range(r),
                read_digest(r),
                r["max_event_time"],
                r["oldest_record"],
                tuple((epoch, first) for epoch, first in r["leader_epochs"]),
            )
            for r in of_batch
        )
        for batch_id, of_batch in groupby(rows, key=itemgetter("batch_id"))
    }


def _read_landings(
    connection: Connection, ids: Sequence[int]
) -> tuple[dict[int, tuple[OldLanding, ...]], dict[int, bool]]:
    """Return the landings of these batches, and whether all of a batch's are proved and in settled windows."""
    rows = connection.execute(
        f"""
        SELECT l.batch_id, l.window_start, l.quarantine_day, l.byte_start, l.byte_end, l.late AS is_late,
          coalesce(l.landing_id <= w.removed_to_landing, false) AS is_removed,
          l.proved AND (l.window_start IS NULL OR coalesce({_IS_SETTLED}, false)) AS is_settled
        FROM onceover.landing l
        LEFT JOIN onceover."window" w ON w.pipeline = l.pipeline AND w.window_start = l.window_start
        LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
        WHERE l.batch_id = ANY(%s) ORDER BY l.batch_id
        """,
        [ids],
    )
    landings: dict[int, tuple[OldLanding, ...]] = {}
    settled: dict[int, bool] = {}
    for batch_id, grouped in groupby(rows, key=itemgetter("batch_id")):
        of_batch = list(grouped)
        landings[batch_id] = tuple(
            OldLanding(place, r["byte_start"], r["byte_end"], (r["is_late"], r["is_removed"]))
            for r in of_batch
            for place in [r["window_start"] or r["quarantine_day"]]
        )
        settled[batch_id] = all(r["is_settled"] for r in of_batch)
    return landings, settled


def roll_up(connection: Connection, pipeline: str, batches: Sequence[OldBatch]) -> bool:
    """Join these batches to the last of them, in one transaction. Returns False, and changes nothing, if one of them or
    of their windows has changed since they were listed."""
    ids, kept = [batch.batch_id for batch in batches], batches[-1].batch_id
    key: dict[str, object] = {"pipeline": pipeline, "ids": ids, "kept": kept}
    windows = sorted({x.place for batch in batches for x in batch.landings if isinstance(x.place, datetime)})
    with connection.transaction():
        lock_windows(connection, pipeline, windows)
        connection.execute("SELECT 1 FROM onceover.batch WHERE batch_id = ANY(%(ids)s) ORDER BY 1 FOR UPDATE", key)
        if not _is_unchanged(connection, {**key, "windows": windows}):
            return False
        if len(batches) > 1:
            _join_landings(connection, key)
            connection.execute("DELETE FROM onceover.batch_range WHERE batch_id = ANY(%(ids)s)", key)
            insert_ranges(connection, kept, join_ranges(piece for batch in batches for piece in batch.ranges))
        connection.execute(
            """
            UPDATE onceover.batch SET rolled_up_at = clock_timestamp(), batches = s.batches, begun_at = s.begun_at
            FROM (SELECT sum(batches) AS batches, min(begun_at) AS begun_at FROM onceover.batch
              WHERE batch_id = ANY(%(ids)s)) s WHERE batch_id = %(kept)s
            """,
            key,
        )
        connection.execute("DELETE FROM onceover.batch WHERE batch_id = ANY(%(ids)s) AND batch_id <> %(kept)s", key)
    return True


def _is_unchanged(connection: Connection, key: Mapping[str, object]) -> bool:
    """Return whether these locked windows are all settled, no batch has landed offsets of these batches again, and
    none that read them before Kafka dropped them may still land."""
    row = connection.execute(
        f"""
        SELECT cardinality(%(windows)s::timestamptz[]) = (
            SELECT count(*) FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
            WHERE w.pipeline = %(pipeline)s AND w.window_start = ANY(%(windows)s) AND {_IS_SETTLED})
          AND NOT EXISTS (SELECT FROM onceover.batch WHERE batch_id = ANY(%(ids)s) AND rolled_up_at IS NOT NULL)
          AND NOT EXISTS (
            SELECT FROM onceover.batch b JOIN onceover.batch_range begun USING (batch_id)
            JOIN onceover.batch_range r USING (generation, kafka_partition)
            WHERE b.pipeline = %(pipeline)s AND b.state = 'begun' AND r.batch_id = ANY(%(ids)s)
              AND r.start_offset < begun.end_offset AND begun.start_offset < r.end_offset) AS is_unchanged
        """,
        key,
    ).fetchone()
    return bool(row and row["is_unchanged"])


# One row for each window and day of quarantine that these batches landed in: the last landing, with all of their sums.
_JOINED = """
joined AS (
  SELECT window_start, quarantine_day, max(landing_id) AS landing_id, min(byte_start) AS byte_start,
    max(byte_end) AS byte_end, sum(records)::bigint AS records, sum(high1)::bigint AS high1, sum(low1)::bigint AS low1,
    sum(high2)::bigint AS high2, sum(low2)::bigint AS low2
  FROM onceover.landing WHERE batch_id = ANY(%(ids)s) GROUP BY 1, 2)"""
_OF_PLACE = (
    "l.window_start IS NOT DISTINCT FROM j.window_start AND l.quarantine_day IS NOT DISTINCT FROM j.quarantine_day"
)


def _join_landings(connection: Connection, key: Mapping[str, object]) -> None:
    connection.execute(
        f"""
        WITH {_JOINED}, gone AS (
          DELETE FROM onceover.landing_part p USING onceover.landing l JOIN joined j ON {_OF_PLACE}
          WHERE l.batch_id = ANY(%(ids)s) AND p.landing_id = l.landing_id
          RETURNING j.landing_id AS kept, p.*)
        INSERT INTO onceover.landing_part (landing_id, generation, kafka_partition, records, high1, low1, high2, low2)
        SELECT kept, generation, kafka_partition, sum(records), sum(high1), sum(low1), sum(high2), sum(low2)
        FROM gone GROUP BY 1, 2, 3
        """,
        key,
    )
    connection.execute(
        f"""
        WITH {_JOINED}, gone AS (
          DELETE FROM onceover.landing l USING joined j
          WHERE l.batch_id = ANY(%(ids)s) AND {_OF_PLACE} AND l.landing_id <> j.landing_id)
        UPDATE onceover.landing l SET batch_id = %(kept)s, byte_start = j.byte_start, byte_end = j.byte_end,
          records = j.records, high1 = j.high1, low1 = j.low1, high2 = j.high2, low2 = j.low2
        FROM joined j WHERE l.landing_id = j.landing_id
        """,
        key,
    )
