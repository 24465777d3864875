"""How much a pipeline has landed so far, added up as it lands: who asks reads a row a Kafka partition, not a year."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from onceover.ledger.database import Connection
from onceover.model.batch import Landing
from onceover.model.offsets import KafkaPartition


def add(connection: Connection, pipeline: str, landings: Sequence[Landing]) -> None:
    """Count one batch and its records, inside the transaction that lands it. What lands twice counts twice."""
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
    connection.execute("UPDATE onceover.pipeline SET batches_landed = batches_landed + 1 WHERE name = %s", [pipeline])
