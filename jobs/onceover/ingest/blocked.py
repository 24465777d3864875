"""Kafka partitions that wait before offsets which no reader gets, while ingest goes on with the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from onceover.ingest.waiting import WaitingPartitions
from onceover.kafka import TopicFacts
from onceover.kafka.reader import READ_AHEAD, KafkaSource
from onceover.kafka.unreadable_search import find_unreadable, is_unreadable
from onceover.ledger.blocked import end_blocked, list_blocked, record_blocked
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.model.blocked import Blocked
from onceover.model.offsets import KafkaPartition, OffsetRange

log = logging.getLogger(__name__)


class BlockedPartitions:
    """The waiting Kafka partitions of one driver's pipeline. The ledger keeps them, so that a person sees them and the
    next driver does not die of them."""

    def __init__(self, connection: Connection, epoch: Epoch, open_log: Callable[[TopicFacts], KafkaSource]) -> None:
        self._connection, self._epoch, self._open_log = connection, epoch, open_log
        self.waiting = WaitingPartitions()
        self._careful: dict[KafkaPartition, int] = {}  # up to that offset

    def look(self, facts: TopicFacts, at: Mapping[int, int]) -> None:
        """Read again what is due, and end what reading, which continues at `at`, has passed."""
        waiting: dict[KafkaPartition, OffsetRange] = {}
        for each in list_blocked(self._connection, self._epoch.pipeline):
            source, reading = each.offsets.source, at.get(each.offsets.source.kafka_partition, 0)
            left = OffsetRange(source, max(each.offsets.start, reading), max(each.offsets.end, reading))
            if source.generation != facts.generation or not len(left):
                end_blocked(self._connection, self._epoch.pipeline, source)
            elif not each.is_due or self._is_still_there(replace(each, offsets=left), facts):
                waiting[source] = left
            else:
                log.info("%s can be read again", each.offsets)
                end_blocked(self._connection, self._epoch.pipeline, source)
        self.waiting = WaitingPartitions.at(waiting.values(), at)

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
            each.source in self.waiting.sources or each.start < self._careful.get(each.source, 0) for each in ranges
        )

    def _is_still_there(self, blocked: Blocked, facts: TopicFacts) -> bool:
        """Read the first offset alone: where the others end was searched before."""
        source, start = blocked.offsets.source, blocked.offsets.start
        return is_unreadable(self._open_log(facts), source.kafka_partition, start) and self._record([blocked])

    def _probe(self, ranges: Iterable[OffsetRange], facts: TopicFacts) -> list[Blocked]:
        source = self._open_log(facts)
        found = [find_unreadable(source, each, facts.end[each.source.kafka_partition]) for each in ranges]
        return [each for each in found if each is not None]

    def _record(self, found: Sequence[Blocked]) -> bool:
        if found:
            record_blocked(self._connection, self._epoch, found)
        return bool(found)
