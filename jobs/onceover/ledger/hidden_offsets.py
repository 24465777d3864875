"""What open transactions hide, as ingest saw it last."""

from __future__ import annotations

from onceover.ledger.database import Connection
from onceover.model.hidden_offsets import HiddenOffsets


def list_hidden(connection: Connection, pipeline: str, generation: str) -> list[HiddenOffsets]:
    """Return the hidden offsets of each Kafka partition of that generation that has some, in order."""
    rows = connection.execute(
        """
        SELECT kafka_partition, end_offset AS first, high_watermark - end_offset AS count, hidden_since AS since
        FROM onceover.kafka_partition
        WHERE pipeline = %s AND generation = %s AND high_watermark > end_offset ORDER BY kafka_partition
        """,
        [pipeline, generation],
    )
    return [HiddenOffsets(**row) for row in rows]
