"""Kafka partitions that wait before a record until a schema registry says what wrote it; ingest goes on with others."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from time import monotonic
from typing import Final

from onceover.errors import RegistryAwayError
from onceover.ingest.stopped_partitions import StoppedPartitions
from onceover.kafka import TopicFacts
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.log_limits import end_stopped, list_stopped, record_stopped
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.stopped_range import StopCause, StoppedRange

log = logging.getLogger(__name__)
AGAIN_SECONDS: Final = 5.0
"""Until the registry is asked again."""
_PLACE: Final = re.compile(r"Kafka partition (\d+), offset (\d+) waits: ([^\n]{1,400})")


class SchemaWaits:
    """Those of one driver's pipeline. The ledger keeps them for people to see."""

    def __init__(self, connection: Connection, epoch: Epoch) -> None:
        self._connection, self._epoch = connection, epoch
        self._asked_at = 0.0
        self.stopped = StoppedPartitions()

    def look(self, facts: TopicFacts, at: Mapping[int, int]) -> None:
        """End what reading, which continues at `at`, has passed; have all others tried when it is time."""
        waiting = []
        for each in list_stopped(self._connection, self._epoch.pipeline, StopCause.UNKNOWN_SCHEMA):
            source = each.offsets.source
            if source.generation == facts.generation and at.get(source.kafka_partition, 0) <= each.offsets.start:
                waiting.append(each.offsets)
            else:
                log.info("%s goes on", source)
                end_stopped(self._connection, self._epoch.pipeline, StopCause.UNKNOWN_SCHEMA, source)
        is_due = monotonic() >= self._asked_at + AGAIN_SECONDS
        self.stopped = StoppedPartitions() if is_due else StoppedPartitions.at(waiting, at)

    def hold(self, facts: TopicFacts, error: RegistryAwayError) -> None:
        """Have the Kafka partition that the error names wait. Raise the error if it names none."""
        place = _PLACE.search(str(error))
        if place is None:
            raise error
        source, offset = KafkaPartition(facts.generation, int(place[1])), int(place[2])
        waits = OffsetRange(source, offset, offset + 1)
        if not any(waits.source == each.source for each in self.stopped.ranges):
            log.warning("%s waits before offset %d, ingest goes on with the others: %s", source, offset, place[3])
        record_stopped(self._connection, self._epoch, StopCause.UNKNOWN_SCHEMA, [StoppedRange(waits, place[3])])
        self._asked_at = monotonic()
