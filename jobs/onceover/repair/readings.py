"""The ranges of a window's landings by leader epoch. Where a landing of a Kafka partition has no epochs, as leaders
changed while its batch was read, all records of that Kafka partition are judged by their IDs alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from onceover.model.claim import ClaimedLanding
from onceover.model.log_history import NO_EPOCH
from onceover.model.offsets import KafkaPartition, OffsetRange

BLIND: Final = NO_EPOCH
"""The epoch of all records of a Kafka partition that is judged by IDs alone."""


def find_blind(landings: Iterable[ClaimedLanding]) -> frozenset[KafkaPartition]:
    """Return the Kafka partitions whose records are judged by their IDs alone."""
    readings = (reading for landing in landings if not landing.release for reading in landing.readings)
    return frozenset(each.offsets.source for each in readings if each.leader_epoch is None)


def list_readings(landing: ClaimedLanding, blind: Collection[KafkaPartition]) -> list[tuple[OffsetRange, int]]:
    """Return the landing's ranges, each with its leader epoch, or BLIND."""
    return [
        (each.offsets, BLIND if each.leader_epoch is None or each.offsets.source in blind else each.leader_epoch)
        for each in landing.readings
    ]
