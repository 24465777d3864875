"""What a batch read of each of its ranges, as it lands."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg.types.json import Jsonb

from onceover.ledger.database import Connection
from onceover.model.batch import RangeRead


def record_read(connection: Connection, batch_id: int, read: Iterable[RangeRead]) -> None:
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


def note_read_until(connection: Connection, pipeline: str, read: Iterable[RangeRead]) -> None:
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
