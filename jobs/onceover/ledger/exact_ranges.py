"""Exact IDs of landed batches that read no offset range of Kafka: adopted from raw, or found by a rebuild.

Like the offset ranges of a batch they account for their IDs. The IDs of a release do not: its batch landed them before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from onceover.ledger.database import Connection
from onceover.model.offsets import KafkaPartition, OffsetRange

ACCOUNTING: Final = """
  (SELECT batch_id, generation, kafka_partition, start_offset, end_offset FROM onceover.batch_range
   UNION ALL
   SELECT x.batch_id, x.generation, x.kafka_partition, x.start_offset, x.end_offset FROM onceover.exact_range x
   WHERE NOT EXISTS (SELECT 1 FROM onceover.release e WHERE e.batch_id = x.batch_id))"""
"""Every range of IDs that a batch accounts for once it has landed."""


def read_exact_ranges(connection: Connection, batch_ids: Collection[int]) -> dict[int, tuple[OffsetRange, ...]]:
    """Return the exact IDs of those of these batches that have them and are no releases, in order."""
    if not batch_ids:
        return {}
    rows = connection.execute(
        """
        SELECT x.* FROM onceover.exact_range x WHERE x.batch_id = ANY(%s)
          AND NOT EXISTS (SELECT 1 FROM onceover.release e WHERE e.batch_id = x.batch_id)
        ORDER BY batch_id, generation, kafka_partition, start_offset
        """,
        [list(batch_ids)],
    )
    ranges: dict[int, list[OffsetRange]] = {}
    for row in rows:
        source = KafkaPartition(row["generation"], row["kafka_partition"])
        ranges.setdefault(row["batch_id"], []).append(OffsetRange(source, row["start_offset"], row["end_offset"]))
    return {batch_id: tuple(pieces) for batch_id, pieces in ranges.items()}


def insert_exact_ranges(connection: Connection, batch_id: int, ids: Iterable[OffsetRange]) -> None:
    """Record the exact IDs of a batch."""
    with connection.cursor().copy(
        "COPY onceover.exact_range (batch_id, generation, kafka_partition, start_offset, end_offset) FROM STDIN"
    ) as copy:
        for piece in ids:
            copy.write_row((batch_id, piece.source.generation, piece.source.kafka_partition, piece.start, piece.end))
