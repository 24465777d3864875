"""Ranges that no reader gets: their Kafka partitions are stopped, while ingest goes on with the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from onceover.ingest.stopped_partitions import StoppedPartitions
from onceover.kafka import TopicFacts
from onceover.kafka.reader import READ_AHEAD, KafkaSource
from onceover.kafka.unreadable_search import find_unreadable, is_unreadable
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.log_limits import end_stopped, list_stopped, record_stopped
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.stopped_range import StopCause, StoppedRange

log = logging.getLogger(__name__)


class UnreadableRanges:
    """Those of one driver's pipeline. The ledger keeps them, so that a person sees them and the next driver does not
    die of them."""

    def __init__(self, connection: Connection, epoch: Epoch, open_log: Callable[[TopicFacts], KafkaSource]) -> None:
        self._connection, self._epoch, self._open_log = connection, epoch, open_log
        self.stopped = StoppedPartitions()
        self._careful: dict[KafkaPartition, int] = {}  # up to that offset

    def look(self, facts: TopicFacts, at: Mapping[int, int]) -> None:
        """Read again what is due, and end what reading, which continues at `at`, has passed."""
        stopped: dict[KafkaPartition, OffsetRange] = {}
        for each in list_stopped(self._connection, self._epoch.pipeline, StopCause.UNREADABLE):
            source, reading = each.offsets.source, at.get(each.offsets.source.kafka_partition, 0)
            left = OffsetRange(source, max(each.offsets.start, reading), max(each.offsets.end, reading))
            if source.generation != facts.generation or not len(left):
                end_stopped(self._connection, self._epoch.pipeline, StopCause.UNREADABLE, source)
            elif not each.is_due or self._is_still_there(replace(each, offsets=left), facts):
                stopped[source] = left
            else:
                log.info("%s can be read again", each.offsets)
                end_stopped(self._connection, self._epoch.pipeline, StopCause.UNREADABLE, source)
        self.stopped = StoppedPartitions.at(stopped.values(), at)

    def find(self, ranges: Sequence[OffsetRange], facts: TopicFacts) -> bool:
        """Record which of these ranges, whose read failed, have offsets that no reader gets. Return whether to go on:
        there are some, or there may be some that were read ahead, and the next read of these ranges will not."""
        found = self._probe(ranges, facts)
        for each in found:
            log.warning(
                "%s cannot be read: %s. Its Kafka partition waits there, ingest goes on with the others; see "
                "`onceover doctor`",
                *(each.offsets, each.why),
            )
        if not found and not self.is_careful(ranges):
            self._careful |= {each.source: each.end + READ_AHEAD for each in ranges}
            return True
        return self._record(found)

    def is_careful(self, ranges: Iterable[OffsetRange]) -> bool:
        """Return whether nothing may be read ahead of these ranges: a reader might die of it."""
        return any(
            each.source in self.stopped.sources or each.start < self._careful.get(each.source, 0) for each in ranges
        )

    def _is_still_there(self, stopped: StoppedRange, facts: TopicFacts) -> bool:
        """Read the first offset alone: where the others end was searched before."""
        source, start = stopped.offsets.source, stopped.offsets.start
        return is_unreadable(self._open_log(facts), source.kafka_partition, start) and self._record([stopped])

    def _probe(self, ranges: Iterable[OffsetRange], facts: TopicFacts) -> list[StoppedRange]:
        source = self._open_log(facts)
        found = [find_unreadable(source, each, facts.end[each.source.kafka_partition]) for each in ranges]
        return [each for each in found if each is not None]

    def _record(self, found: Sequence[StoppedRange]) -> bool:
        if found:
            record_stopped(self._connection, self._epoch, StopCause.UNREADABLE, found)
        return bool(found)
