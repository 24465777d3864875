"""Rows of a rebuilt ledger: windows, Kafka partitions, batches and compacted files, as found in raw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from onceover.ledger import batches
from onceover.ledger.aggregates import WITHOUT_RAW
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.compactions import set_compacted
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.landed_offsets import insert_ranges
from onceover.model.batch import Landing, RangeRead
from onceover.model.offsets import KafkaPartition
from onceover.model.raw_file import CompactedFile

EXPIRED_WHY = "its rows were there, and their raw or a part of it was gone, when the ledger was rebuilt"


def count_landed_batches(connection: Connection, pipeline: str) -> int:
    """Count the batches that landed."""
    row = connection.execute(
        "SELECT sum(batches)::bigint AS n FROM onceover.batch WHERE pipeline = %s AND state = 'landed'", [pipeline]
    ).fetchone()
    return int(row["n"] or 0) if row else 0


def insert_windows(connection: Connection, registered: RegisteredPipeline, starts: Iterable[datetime]) -> None:
    """Record these windows with unknown counts; of windows that exist already, too."""
    windowing = registered.windowing
    connection.cursor().executemany(
        """
        INSERT INTO onceover."window" AS w (pipeline, window_start, window_end, day, records, high1, low1, high2,
          low2)
        VALUES (%s, %s, %s, %s, NULL, NULL, NULL, NULL, NULL)
        ON CONFLICT (pipeline, window_start) DO UPDATE SET version = w.version + 1, records = NULL, high1 = NULL,
          low1 = NULL, high2 = NULL, low2 = NULL
        """,
        [
            (registered.name, start, windowing.window_at(start).end, windowing.local_day(start))
            for start in sorted(starts)
        ],
    )


def skip_expiry_ids(connection: Connection) -> None:
    """Number later expiries beyond those of any lost ledger, by the clock: its files may still wait for their deletion,
    under their numbers, and one of this ledger's would be taken for moved."""
    connection.execute(
        "SELECT setval(s, greatest(nextval(s), extract(epoch FROM clock_timestamp())::bigint)) "
        "FROM pg_get_serial_sequence('onceover.expiry', 'expiry_id') s"
    )


def expire_rows_without_raw(
    connection: Connection, registered: RegisteredPipeline, with_raw: Iterable[datetime]
) -> list[datetime]:
    """Record the windows that have aggregates but not their raw, now or at an earlier rebuild, as expired, with the
    fingerprint of their rows, which no repair replaces by others. Returns these windows."""
    table = registered.table
    without_raw = set(table.list_filled(connection)) - set(with_raw)
    expired = sorted(without_raw.union(table.list_without_raw(connection)))
    table.set_revision(connection, expired, WITHOUT_RAW)
    insert_windows(connection, registered, expired)
    found = table.fingerprints(connection, expired)
    connection.cursor().executemany(
        'UPDATE onceover."window" SET expired_at = clock_timestamp(), expired_why = %s, kept_rows = %s, kept_hash = %s '
        "WHERE pipeline = %s AND window_start = %s",
        [(EXPIRED_WHY, found[start].rows, found[start].hash, registered.name, start) for start in expired],
    )
    return expired


def put_partition(
    connection: Connection,
    epoch: Epoch,
    source: KafkaPartition,
    topic_id: str,
    *,
    origin: int,
    frontier: int,
    reach: int,
    max_event_time: datetime | None,
) -> None:
    """Record one Kafka partition, or correct one that was registered before raw was read. Its log may hold other
    records than raw: no window is certified until it has been compared."""
    connection.execute(
        """
        INSERT INTO onceover.kafka_partition AS k (pipeline, generation, kafka_partition, topic_id, origin, frontier,
          reach, end_offset, max_event_time)
        VALUES (%(pipeline)s, %(generation)s, %(partition)s, %(topic_id)s, %(origin)s, %(frontier)s, %(reach)s,
          %(reach)s, %(newest)s)
        ON CONFLICT (pipeline, generation, kafka_partition) DO UPDATE SET origin = excluded.origin,
          frontier = excluded.frontier, reach = greatest(k.reach, excluded.reach),
          end_offset = greatest(k.end_offset, excluded.end_offset), max_event_time = excluded.max_event_time,
          caught_up_since = NULL, compared_epoch = NULL, cut_from = NULL
        """,
        {
            "pipeline": epoch.pipeline,
            "generation": source.generation,
            "partition": source.kafka_partition,
            "topic_id": topic_id,
            "origin": origin,
            "frontier": frontier,
            "reach": reach,
            "newest": max_event_time,
        },
    )


def forget_losses(connection: Connection, pipeline: str) -> None:
    """Delete losses that were accepted before raw was read: it may hold those records. They are holes again."""
    connection.execute("DELETE FROM onceover.accepted_loss WHERE pipeline = %s", [pipeline])
    connection.execute("UPDATE onceover.kafka_partition SET frontier = origin WHERE pipeline = %s", [pipeline])


def land_found(
    connection: Connection, epoch: Epoch, contract_version: int, read: Sequence[RangeRead], landings: Sequence[Landing]
) -> None:
    """Record one landed batch of the ranges that raw holds. Raises as `batches.count_landings`."""
    row = connection.execute(
        "INSERT INTO onceover.batch (pipeline, epoch, contract_version) VALUES (%s, %s, %s) RETURNING batch_id",
        [epoch.pipeline, epoch.number, contract_version],
    ).fetchone()
    batch_id = int(row["batch_id"]) if row else 0
    insert_ranges(connection, batch_id, read)
    batches.count_landings(connection, epoch, batch_id, read, landings, read)
    batches.mark_committed(connection, epoch, batch_id)


def record_compacted_files(
    connection: Connection, pipeline: str, files: Mapping[datetime, CompactedFile], replacing: Iterable[datetime]
) -> None:
    """Record the compacted file of each window; those `replacing` a text hold records that the text does not."""
    set_compacted(connection, pipeline, files)
    connection.execute(
        'UPDATE onceover."window" SET text_replaced = true WHERE pipeline = %s AND window_start = ANY(%s)',
        [pipeline, sorted(replacing)],
    )
