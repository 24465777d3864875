"""Batches: steps 1, 2, 5 and 7 (supersede, begin, land, commit), each one transaction under the epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain, groupby

from psycopg.types.json import Jsonb

from onceover.errors import FencedError, TransientError
from onceover.ledger import losses
from onceover.ledger.columns import digest_arrays
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch, supersede_begun
from onceover.ledger.frontiers import advance, read_reach
from onceover.ledger.landed_offsets import list_landed
from onceover.ledger.read_again import mark_landed
from onceover.ledger.rollups import keep_apart
from onceover.ledger.windows import bump_versions, lock_rows, lock_windows, require_locked
from onceover.model.batch import Landing, RangeRead, require_all_landed
from onceover.model.offsets import KafkaPartition, OffsetRange


def supersede_own(connection: Connection, epoch: Epoch) -> int:
    """Supersede the batches that this epoch began and did not land (step 1); its takeover has superseded all others.
    Returns their number."""
    with connection.transaction():
        require_epoch(connection, epoch)
        return supersede_begun(connection, epoch.pipeline)


def begin(
    connection: Connection,
    epoch: Epoch,
    contract_version: int,
    ranges: Sequence[OffsetRange],
    waited: float | None = 0.0,
    sink: str = "append",
) -> int:
    """Record the batch, the ranges that it will read, and the sink of its rows (step 2). Returns its ID. `waited` is
    the seconds since its submission, None for a batch that is not submitted: it reads again, or releases."""
    with connection.transaction():
        require_epoch(connection, epoch)
        row = connection.execute(
            "INSERT INTO onceover.batch (pipeline, epoch, contract_version, scheduling_delay_ms, sink) "
            "VALUES (%s, %s, %s, %s, %s) RETURNING batch_id",
            [epoch.pipeline, epoch.number, contract_version, None if waited is None else round(waited * 1000), sink],
        ).fetchone()
        batch_id = int(row["batch_id"]) if row else 0
        connection.cursor().executemany(
            """
            INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset)
            VALUES (%s, %s, %s, %s, %s)
            """,
            [(batch_id, r.source.generation, r.source.kafka_partition, r.start, r.end) for r in ranges],
        )
    return batch_id


def land_batch(
    connection: Connection,
    epoch: Epoch,
    batch_id: int,
    read: Sequence[RangeRead],
    landings: Sequence[Landing],
    fresh: Sequence[OffsetRange] = (),
) -> None:
    """Make the landings count, for ever (step 5).

    Raises LandingMismatchError unless the landings hold exactly what the reader delivered, FencedError if the batch was
    superseded meanwhile, BusyError if an accepted loss concerns more windows meanwhile, TransientError if one of the
    offsets that are to be `fresh` has landed meanwhile. Bumps the windows' versions.
    """
    ids = [piece.offsets for piece in read]
    with connection.transaction():
        require_epoch(connection, epoch)
        own = [landing.window_start for landing in landings if landing.window_start]
        stating = losses.list_stating(connection, epoch.pipeline, ids)
        locked = lock_rows(connection, epoch.pipeline, chain(own, stating), {piece.source for piece in ids})
        stating = losses.list_stating(connection, epoch.pipeline, ids)
        require_locked(epoch.pipeline, locked, stating)
        _require_unlanded(connection, epoch.pipeline, fresh)
        count_landings(connection, epoch, batch_id, read, landings, read)
        if stating:  # a loss was accepted, and its records landed after all
            losses.reland(connection, epoch.pipeline, ids)
            bump_versions(connection, epoch.pipeline, stating)
        reach = read_reach(connection, epoch.pipeline)
        keep_apart(connection, epoch.pipeline, (piece for piece in ids if piece.start < reach.get(piece.source, 0)))
        _record_read(connection, batch_id, read)
        for _, pieces in groupby(sorted(ids), key=lambda piece: piece.source):
            advance(connection, epoch.pipeline, list(pieces))
        _note_read_until(connection, epoch.pipeline, read)
        mark_landed(connection, epoch.pipeline, batch_id)


def _record_read(connection: Connection, batch_id: int, read: Iterable[RangeRead]) -> None:
    """Record what was read of each of the batch's ranges: times, counts, digests and leader epochs."""
    connection.cursor().executemany(
        """
        UPDATE onceover.batch_range SET max_event_time = %s, oldest_record = %s, records = %s, high1 = %s, low1 = %s,
          high2 = %s, low2 = %s, leader_epochs = %s
        WHERE batch_id = %s AND generation = %s AND kafka_partition = %s AND start_offset = %s
        """,
        [
            (
                piece.max_event_time,
                piece.oldest_record,
                *piece.digest.as_tuple(),
                Jsonb(piece.leader_epochs),
                batch_id,
                piece.offsets.source.generation,
                piece.offsets.source.kafka_partition,
                piece.offsets.start,
            )
            for piece in read
        ],
    )


def _note_read_until(connection: Connection, pipeline: str, read: Iterable[RangeRead]) -> None:
    """Note the oldest record of the ranges that reach furthest: those behind them are hardly older."""
    connection.cursor().executemany(
        """
        UPDATE onceover.kafka_partition SET read_until = greatest(read_until, %s)
        WHERE pipeline = %s AND generation = %s AND kafka_partition = %s AND reach = %s
        """,
        [
            (piece.oldest_record, pipeline, at.generation, at.kafka_partition, piece.offsets.end)
            for piece in read
            for at in (piece.offsets.source,)
            if piece.oldest_record
        ],
    )


def _require_unlanded(connection: Connection, pipeline: str, fresh: Sequence[OffsetRange]) -> None:
    """Raise TransientError if offsets among these have landed. Other landings wait at the Kafka partitions' locks."""
    if landed := list_landed(connection, pipeline, fresh):
        raise TransientError(
            f"{landed[0]} of {pipeline} has landed meanwhile; the batch does not count, and is planned again without it"
        )


def count_landings(
    connection: Connection,
    epoch: Epoch,
    batch_id: int,
    read: Sequence[RangeRead],
    landings: Sequence[Landing],
    of_log: Sequence[RangeRead] = (),
) -> None:
    """Record landings and bump their windows' versions, without the offset ranges. Raises as `land_batch`. Ranges
    `of_log` were read from Kafka, whose retention counts from their oldest records."""
    require_all_landed(read, landings)
    with connection.transaction():
        require_epoch(connection, epoch)
        windows = sorted({landing.window_start for landing in landings if landing.window_start})
        lock_windows(connection, epoch.pipeline, windows)
        changed = connection.execute(
            "UPDATE onceover.batch SET state = 'landed', landed_at = clock_timestamp() "
            "WHERE batch_id = %s AND epoch = %s AND state = 'begun'",
            [batch_id, epoch.number],
        )
        if changed.rowcount != 1:
            raise FencedError(f"batch {batch_id} of pipeline {epoch.pipeline} was superseded; it does not count")
        _insert_landings(connection, epoch.pipeline, batch_id, landings)
        # Records read again from Kafka may be those of rows that a rebuild of the ledger found without raw: the window
        # is judged again, and publishing compares the rows.
        connection.execute(
            """
            UPDATE onceover."window" w SET version = version + 1, oldest_record = least(w.oldest_record, o.oldest),
              expired_at = CASE WHEN w.kept_hash IS NULL OR b.scheduling_delay_ms IS NOT NULL OR NOT %s
                THEN w.expired_at END
            FROM onceover.batch b, unnest(%s::timestamptz[], %s::timestamptz[]) o (start, oldest)
            WHERE b.batch_id = %s AND w.pipeline = %s AND w.window_start = o.start
            """,
            [
                bool(of_log),
                windows,
                [_find_oldest(start, landings, of_log) for start in windows],
                batch_id,
                epoch.pipeline,
            ],
        )
        _add_totals(connection, epoch.pipeline, batch_id, landings)


def _find_oldest(start: datetime, landings: Sequence[Landing], of_log: Sequence[RangeRead]) -> datetime | None:
    sources = {part.source for landing in landings if landing.window_start == start for part in landing.parts}
    return min((r.oldest_record for r in of_log if r.oldest_record and r.offsets.source in sources), default=None)


def mark_committed(connection: Connection, epoch: Epoch, batch_id: int) -> None:
    """Record that the offset store holds the batch's ends (step 7)."""
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.execute(
            "UPDATE onceover.batch SET committed_at = clock_timestamp() WHERE batch_id = %s AND state = 'landed'",
            [batch_id],
        )


def _insert_landings(connection: Connection, pipeline: str, batch_id: int, landings: Sequence[Landing]) -> None:
    """Insert the landings with their parts: two statements, however many windows the batch has."""
    ids = connection.execute(
        "SELECT nextval(pg_get_serial_sequence('onceover.landing', 'landing_id')) AS id FROM generate_series(1, %s)",
        [len(landings)],
    ).fetchall()
    digests = digest_arrays([landing.digest for landing in landings])
    # A landing is late if its window had closed before, by the watermark at the time the batch was read.
    connection.execute(
        """
        INSERT INTO onceover.landing (landing_id, batch_id, pipeline, window_start, quarantine_day, byte_start,
          byte_end, proved, late, records, high1, low1, high2, low2) OVERRIDING SYSTEM VALUE
        SELECT g.landing_id, %s, p.name, g.window_start, g.quarantine_day, g.byte_start, g.byte_end, g.proved,
          w.window_start IS NOT NULL AND coalesce(p.every_window_closed OR p.watermark >= w.window_end, false),
          g.records, g.high1, g.low1, g.high2, g.low2
        FROM unnest(%s::bigint[], %s::timestamptz[], %s::date[], %s::bigint[], %s::bigint[], %s::boolean[],
            %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
          AS g (landing_id, window_start, quarantine_day, byte_start, byte_end, proved, records, high1, low1, high2,
            low2)
        JOIN onceover.pipeline p ON p.name = %s
        LEFT JOIN onceover."window" w ON w.pipeline = p.name AND w.window_start = g.window_start
        """,
        [
            batch_id,
            [row["id"] for row in ids],
            [landing.window_start for landing in landings],
            [landing.quarantine_day for landing in landings],
            [landing.byte_start for landing in landings],
            [landing.byte_end for landing in landings],
            [landing.proved for landing in landings],
            *digests,
            pipeline,
        ],
    )
    parts = [(row["id"], part) for row, landing in zip(ids, landings, strict=True) for part in landing.parts]
    connection.execute(
        """
        INSERT INTO onceover.landing_part (landing_id, generation, kafka_partition, records, high1, low1, high2, low2)
        SELECT * FROM unnest(%s::bigint[], %s::text[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[],
          %s::bigint[], %s::bigint[])
        """,
        [
            [landing_id for landing_id, _ in parts],
            [part.source.generation for _, part in parts],
            [part.source.kafka_partition for _, part in parts],
            *digest_arrays([part.digest for _, part in parts]),
        ],
    )


def list_in_flight(connection: Connection, pipeline: str) -> frozenset[int]:
    """Return the batches that were begun under a live epoch: they may still land."""
    rows = connection.execute(
        """
        SELECT b.batch_id FROM onceover.batch b JOIN onceover.driver d USING (pipeline)
        WHERE b.pipeline = %s AND b.state = 'begun' AND b.epoch = d.epoch
          AND d.superseded_at IS NULL AND d.expires_at >= clock_timestamp()
        """,
        [pipeline],
    )
    return frozenset(row["batch_id"] for row in rows)


def _add_totals(connection: Connection, pipeline: str, batch_id: int, landings: Sequence[Landing]) -> None:
    """Add one batch to its pipeline's running totals, so that reading the totals costs one row a Kafka partition.

    Runs inside the transaction that lands the batch. Records that land twice count twice.
    """
    landed: Counter[KafkaPartition] = Counter()
    quarantined: Counter[KafkaPartition] = Counter()
    for landing in landings:
        for part in landing.parts:
            landed[part.source] += part.digest.records
            if landing.quarantine_day is not None:
                quarantined[part.source] += part.digest.records
    connection.cursor().executemany(
        """
        UPDATE onceover.kafka_partition SET records_landed = records_landed + %s,
          records_quarantined = records_quarantined + %s
        WHERE pipeline = %s AND generation = %s AND kafka_partition = %s
        """,
        [(n, quarantined[at], pipeline, at.generation, at.kafka_partition) for at, n in sorted(landed.items())],
    )
    connection.execute(
        "UPDATE onceover.pipeline p SET batches_landed = p.batches_landed + 1, "
        "last_batch = CASE WHEN b.scheduling_delay_ms IS NULL THEN p.last_batch ELSE b.batch_id END "
        "FROM onceover.batch b WHERE p.name = %s AND b.batch_id = %s",
        [pipeline, batch_id],
    )
