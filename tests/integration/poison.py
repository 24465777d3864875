"""What quarantine says of the records that no SQL is evaluated for."""

from __future__ import annotations

from tests.integration.lane import Lane


def read_reasons(lane: Lane) -> dict[tuple[int, int], str]:
    """Return the reason of each record in quarantine, by Kafka partition and offset."""
    return {
        (line.record.source.kafka_partition, line.record.offset): line.reason
        for name, line in lane.lines()
        if line.reason is not None
    }
