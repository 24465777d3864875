"""Adoptions: batches of intact lines that raw holds, no landing accounts for, and Kafka no longer holds.

An adoption reads and appends nothing. Its exact IDs account for themselves as the offset ranges of a batch do, and its
landing, of no bytes, is proved by the lines that the window's file held before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from onceover.ledger import frontiers, landed_offsets, losses
from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.digest_columns import digest_columns
from onceover.ledger.exact_ranges import insert_exact_ranges
from onceover.ledger.file_lengths import read_expected_count
from onceover.ledger.increments import add_count
from onceover.ledger.landed_bytes import list_covering
from onceover.ledger.locks import lock_rows, require_locked
from onceover.ledger.windows import bump_versions
from onceover.model.batch import LandingPart
from onceover.model.digest import sum_digests
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, intersect


@dataclass(frozen=True, slots=True)
class Orphans:
    """Lines to adopt of one window, or of one day of quarantine: their IDs, and their counts and digests by Kafka
    partition. They were read in a file of `length` bytes, a window's under the claim of that `token` and `version`. The
    `stage` holds their rows if the window has expired, so that no repair can rebuild its aggregates."""

    window_start: datetime | None
    quarantine_day: date | None
    ids: Sequence[OffsetRange]
    parts: Sequence[LandingPart]
    length: int
    token: UUID | None = None
    version: int | None = None
    stage: str | None = None
    # Landings whose ranges cover these IDs, and whose bytes do not hold them; None: no landing's range covers them.
    covering: frozenset[int] | None = None


def adopt(
    connection: Connection, registered: RegisteredPipeline, orphans: Sequence[Orphans], who: str, why: str
) -> list[Orphans]:
    """Land these lines, in one transaction; return those that were adopted.

    Leaves out a window that changed since its claim, or whose claim was lost, and a file of whose IDs one landed
    meanwhile; of an expired window also one that a batch may still land, for no repair would notice that it counts
    twice. Adds rows in a stage to the aggregates.
    Bumps the versions of the windows, and of all that state one of these IDs as an accepted loss. Raises BusyError if
    another such loss was accepted meanwhile.
    """
    pipeline, ids = registered.name, [piece for each in orphans for piece in each.ids]
    with connection.transaction():
        own = {each.window_start for each in orphans if each.window_start}
        locked = lock_rows(connection, pipeline, own.union(losses.list_stating(connection, pipeline, ids)))
        accounted = list(landed_offsets.read_accounted(connection, pipeline))
        adopted: list[Orphans] = []
        for each in orphans:
            if _is_current(connection, pipeline, each) and not _has_landed(connection, pipeline, each, accounted):
                if each.stage is not None and not _count(connection, registered.table, each):
                    continue
                _insert(connection, pipeline, registered.contract_version, each, who, why)
                adopted.append(each)
        ids = [piece for each in adopted for piece in each.ids]
        starts = [each.window_start for each in adopted if each.window_start]
        stating = losses.list_stating(connection, pipeline, ids)
        require_locked(pipeline, locked, stating)
        losses.reland(connection, pipeline, ids)
        bump_versions(connection, pipeline, sorted({*starts, *stating}))
        frontiers.extend(connection, pipeline, ids)
    return adopted


def _is_current(connection: Connection, pipeline: str, orphans: Orphans) -> bool:
    if orphans.window_start is None:
        return True
    row = connection.execute(
        'SELECT token, version FROM onceover."window" WHERE pipeline = %s AND window_start = %s',
        [pipeline, orphans.window_start],
    ).fetchone()
    return row is not None and (row["token"], row["version"]) == (orphans.token, orphans.version)


def _count(connection: Connection, table: AggregateTable, orphans: Orphans) -> bool:
    """Add an expired window's orphans to its rows, unless the batch that appended them has. Returns whether they count
    now, and not once more: False while a batch may still land them."""
    pipeline, start = table.name, orphans.window_start
    if start is None or orphans.stage is None:
        raise ValueError("only the orphans of a window have rows")
    if intersect(orphans.ids, _list_begun(connection, pipeline)):
        return False
    added = sum_digests(part.digest for part in orphans.parts)
    counted, expected = read_expected_count(connection, pipeline, start)
    if counted != expected + added:
        table.increment(connection, orphans.stage)
        add_count(connection, pipeline, start, added)
    return True


def _list_begun(connection: Connection, pipeline: str) -> tuple[OffsetRange, ...]:
    """Return the offsets of batches that may still land."""
    rows = connection.execute(
        "SELECT r.generation, r.kafka_partition, r.start_offset, r.end_offset FROM onceover.batch b "
        "JOIN onceover.batch_range r USING (batch_id) WHERE b.pipeline = %s AND b.state = 'begun'",
        [pipeline],
    )
    return coalesce(
        OffsetRange(KafkaPartition(row["generation"], row["kafka_partition"]), row["start_offset"], row["end_offset"])
        for row in rows
    )


def _has_landed(connection: Connection, pipeline: str, orphans: Orphans, accounted: Sequence[OffsetRange]) -> bool:
    """Return whether a landing may hold one of these IDs that was not there when they were found."""
    if orphans.covering is None:
        return _find_overlap(orphans.ids, accounted) is not None
    return not list_covering(connection, pipeline, orphans.ids).landing_ids <= orphans.covering


def _find_overlap(ids: Sequence[OffsetRange], accounted: Sequence[OffsetRange]) -> OffsetRange | None:
    """Return the first of these IDs' ranges that overlaps an accounted one. Both are in order and disjoint."""
    at = 0
    for piece in ids:
        while at < len(accounted) and (accounted[at].source, accounted[at].end) <= (piece.source, piece.start):
            at += 1
        if at < len(accounted) and accounted[at].overlaps(piece):
            return piece
    return None


def _insert(connection: Connection, pipeline: str, contract_version: int, orphans: Orphans, who: str, why: str) -> None:
    row = connection.execute(
        """
        WITH fresh AS (
          INSERT INTO onceover.batch (pipeline, epoch, contract_version, state, refill, landed_at, committed_at)
          VALUES (%(pipeline)s, coalesce((SELECT epoch FROM onceover.driver WHERE pipeline = %(pipeline)s), 0),
            %(version)s, 'landed', true, clock_timestamp(), clock_timestamp()) RETURNING batch_id
        ), adopted AS (
          INSERT INTO onceover.adoption (batch_id, pipeline, window_start, quarantine_day, who, why)
          SELECT batch_id, %(pipeline)s, %(start)s, %(day)s, %(who)s, %(why)s FROM fresh)
        INSERT INTO onceover.landing (batch_id, pipeline, window_start, quarantine_day, byte_start, byte_end, proved,
          records, high1, low1, high2, low2)
        SELECT batch_id, %(pipeline)s, %(start)s, %(day)s, %(length)s, %(length)s, true, %(records)s,
          %(high1)s, %(low1)s, %(high2)s, %(low2)s FROM fresh RETURNING landing_id, batch_id
        """,
        {
            "pipeline": pipeline,
            "version": contract_version,
            "start": orphans.window_start,
            "day": orphans.quarantine_day,
            "length": orphans.length,
            "who": who,
            "why": why,
            **digest_columns(sum_digests(part.digest for part in orphans.parts)),
        },
    ).fetchone()
    landing_id, batch_id = (row["landing_id"], row["batch_id"]) if row else (0, 0)
    connection.cursor().executemany(
        """
        INSERT INTO onceover.landing_part (landing_id, generation, kafka_partition, records, high1, low1, high2, low2)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
        """,
        [
            (landing_id, part.source.generation, part.source.kafka_partition, *part.digest.as_tuple())
            for part in orphans.parts
        ],
    )
    insert_exact_ranges(connection, batch_id, orphans.ids)
