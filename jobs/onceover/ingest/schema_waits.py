"""Kafka partitions that wait before a record until a schema registry says what wrote it; ingest goes on with others."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from time import monotonic
from typing import Final

from onceover.errors import RegistryAwayError
from onceover.formats.undecodable import UndecodableError
from onceover.ingest.stopped_partitions import StoppedPartitions
from onceover.kafka import TopicFacts
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.log_limits import end_stopped, list_stopped, record_stopped
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.stopped_range import StopCause, StoppedRange
from onceover.raw.schema_files import SchemaFiles

log = logging.getLogger(__name__)
AGAIN_SECONDS: Final = 15.0
"""Until the registry is asked again, which takes 3 where it hangs, while nothing else is read."""
_PLACE: Final = re.compile(r"Kafka partition (\d+), offset (\d+) waits: (schema \S+ [^\n]{1,400})")
_SCHEMA: Final = re.compile(r"schema (?:(\d+)|(\S+)) ")


class SchemaWaits:
    """Those of one driver's pipeline. The ledger keeps them for people to see."""

    def __init__(self, connection: Connection, epoch: Epoch, schemas: SchemaFiles) -> None:
        self._connection, self._epoch, self._schemas = connection, epoch, schemas
        self._asked_at = 0.0
        self.stopped = StoppedPartitions()

    def look(self, facts: TopicFacts, at: Mapping[int, int]) -> None:
        """End what the registry now knows, and what reading, which continues at `at`, has passed."""
        waiting, was_due = [], monotonic() >= self._asked_at + AGAIN_SECONDS
        is_due = was_due
        for each in list_stopped(self._connection, self._epoch.pipeline, StopCause.UNKNOWN_SCHEMA):
            source = each.offsets.source
            is_held = source.generation == facts.generation and at.get(source.kafka_partition, 0) <= each.offsets.start
            if is_held and not (is_due and self._is_known(each.why)):
                waiting.append(each.offsets)
                is_due = False  # what does not answer once is not asked for the others
            else:
                log.info("%s goes on", source)
                end_stopped(self._connection, self._epoch.pipeline, StopCause.UNKNOWN_SCHEMA, source)
        if was_due and waiting:
            self._asked_at = monotonic()
        self.stopped = StoppedPartitions.at(waiting, at)

    def _is_known(self, why: str) -> bool:
        """Ask the registry, here and not in a task, whose failure fills the log."""
        asked = _SCHEMA.match(why)
        try:
            if asked is not None:
                self._schemas.read(int(asked[1]) if asked[1] else asked[2])
        except RegistryAwayError:
            return False
        except UndecodableError:
            log.info("%s: the registry does not have it", why)
        return True

    def hold(self, facts: TopicFacts, error: RegistryAwayError) -> None:
        """Have the Kafka partition that the error names wait. Raise the error if it names none."""
        place = _PLACE.search(str(error))
        if place is None:
            raise error
        source, offset = KafkaPartition(facts.generation, int(place[1])), int(place[2])
        waits = OffsetRange(source, offset, offset + 1)
        if waits not in self.stopped.ranges:
            log.warning("%s waits before offset %d, ingest goes on with the others: %s", source, offset, place[3])
        record_stopped(self._connection, self._epoch, StopCause.UNKNOWN_SCHEMA, [StoppedRange(waits, place[3])])
        self._asked_at = monotonic()
