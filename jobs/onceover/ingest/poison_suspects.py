"""Ranges in which a record makes each batch fail: their Kafka partitions are stopped while a search finds it.

batch fails -> its Kafka partitions are read one by one -> that which fails alone is stopped, and searched beside ingest
-> the record is known as poison: it goes to quarantine without its SQL being evaluated, and the Kafka partition goes
on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from time import monotonic
from typing import Final

from onceover.errors import OnceoverError
from onceover.ingest.batch_limit import BatchLimit
from onceover.ingest.stopped_partitions import StoppedPartitions
from onceover.kafka import TopicFacts
from onceover.kafka.reader import KafkaSource
from onceover.ledger.catalog import RegisteredPipeline, read_registered
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.log_limits import end_suspect, list_stopped, record_stopped
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.poison import PoisonRecord
from onceover.model.stopped_range import StopCause, StoppedRange
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.poison_probe import ProbeRequest
from onceover.spark.poison_search import search

log = logging.getLogger(__name__)
RETRY_SECONDS: Final = 30.0
"""Until a search that failed, as Kafka did not answer, is begun again."""
_Found = tuple[OffsetRange, list[PoisonRecord]]


class SuspectRanges:
    """Those of one driver's pipeline. The ledger keeps them, so that the next driver does not die of them either."""

    def __init__(
        self,
        connection: Connection,
        epoch: Epoch,
        registered: RegisteredPipeline,
        open_log: Callable[[TopicFacts], KafkaSource],
        schemas: SchemaFiles,
    ) -> None:
        self._connection, self._epoch, self._registered, self._open_log = connection, epoch, registered, open_log
        self._schemas = schemas
        self.limit = BatchLimit()
        self._poison = registered.poison
        self._alone: set[KafkaPartition] = set()
        self._searched: set[tuple[KafkaPartition, int]] = set()  # where ranges begin that have no such record
        self._search: _Search | None = None
        self._again_at = 0.0
        self.stopped = StoppedPartitions()

    def look(self, facts: TopicFacts, at: Mapping[int, int]) -> None:
        """Take what the search has found, and begin one if there is something to search. Reading continues at `at`."""
        self._take_found()
        suspect = list_stopped(self._connection, self._epoch.pipeline, StopCause.SUSPECT)
        for gone in [each for each in suspect if not _is_held(each.offsets, facts)]:
            end_suspect(self._connection, self._epoch, gone.offsets.source)
            suspect.remove(gone)
        if suspect and self._search is None and monotonic() >= self._again_at:
            self._begin(facts, suspect)
        self.stopped = StoppedPartitions.at((each.offsets for each in suspect), at)

    def clip(self, ranges: Sequence[OffsetRange]) -> Sequence[OffsetRange]:
        """Return the ranges, or if a batch of theirs has failed, one of those that are to be read alone."""
        alone = [each for each in ranges if each.source in self._alone]
        return alone[:1] or ranges

    def add_poison(self, registered: RegisteredPipeline, ranges: Sequence[OffsetRange]) -> RegisteredPipeline:
        """Return the pipeline with the poison records of these ranges."""
        known = (p for p in self._poison if any(r.source == p.source and r.start <= p.offset < r.end for r in ranges))
        return replace(registered, poison=tuple(known))

    def blame(self, ranges: Sequence[OffsetRange], why: str) -> bool:
        """Have these ranges, whose batch failed by a record, read alone, or searched if it was one. Return whether to
        go on. If not, half as much is to be read at once: it was searched before, or a search has blamed no record, and
        only a single offset is worth another."""
        if len(ranges) > 1:
            log.warning("a batch of %d Kafka partitions failed, reading one by one: %s", len(ranges), why)
            self._alone |= {each.source for each in ranges}
            return True
        if (ranges[0].source, ranges[0].start) in self._searched or (self._searched and len(ranges[0]) > 1):
            return False
        self.hold(ranges, why)
        return True

    def hold(self, ranges: Sequence[OffsetRange], why: str) -> None:
        """Have the Kafka partitions of these ranges stopped until they are searched."""
        found = [StoppedRange(each, why) for each in ranges]
        record_stopped(self._connection, self._epoch, StopCause.SUSPECT, found)
        self._alone -= {each.source for each in ranges}
        for each in ranges:
            log.warning("%s may have a record that ends Spark, or never lets it end (%s). Its Kafka partition waits "
                        "while the record is searched for, ingest goes on with the others", each, why)  # fmt: skip

    def note_landed(self, ranges: Sequence[OffsetRange]) -> None:
        """Note that a batch of these ranges landed."""
        self._alone -= {each.source for each in ranges}

    def _begin(self, facts: TopicFacts, suspect: Sequence[StoppedRange]) -> None:
        """Begin a search of those ranges whose contract is that of the first."""
        versions = [self._registered.cutovers.version(each.offsets.source, each.offsets.start) for each in suspect]
        registered = self._registered.select_version(versions[0])
        asked = ProbeRequest(self._open_log(facts), registered.contract, self._list_of(versions[0]), self._schemas)
        same = [each.offsets for each, version in zip(suspect, versions, strict=True) if version == versions[0]]
        self._search = _Search(asked, versions[0], same)
        self._search.start()

    def _list_of(self, version: int) -> tuple[PoisonRecord, ...]:
        return tuple(record for record in self._poison if record.version == version)

    def _take_found(self) -> None:
        running = self._search
        if running is None:
            return
        is_over = not running.is_alive()
        while not running.found.empty():
            offsets, records = running.found.get()
            end_suspect(self._connection, self._epoch, offsets.source, records)
            self._poison = read_registered(self._connection, self._epoch.pipeline).poison
            for record in records:
                log.error("%s, offset %d goes to quarantine as `%s`: %s",
                          record.source, record.offset, record.reason, record.error)  # fmt: skip
            running.taken.append(len(records))
        is_done = len(running.taken) == len(running.ranges)
        if is_done and not any(running.taken):
            self._searched |= {(each.source, each.start) for each in running.ranges}
            self.limit.halve(running.ranges, "no record alone is to blame")
        if is_done or is_over:
            self._search, self._again_at = None, 0.0 if is_done else monotonic() + RETRY_SECONDS


def _is_held(offsets: OffsetRange, facts: TopicFacts) -> bool:
    p = offsets.source.kafka_partition
    return offsets.source.generation == facts.generation and offsets.start >= facts.earliest.get(p, offsets.end)


@dataclass(eq=False)
class _Search(threading.Thread):
    """One search in a thread, which only waits for its process."""

    asked: ProbeRequest
    version: int
    ranges: Sequence[OffsetRange]
    found: SimpleQueue[_Found] = field(default_factory=SimpleQueue)
    taken: list[int] = field(default_factory=list)  # numbers of records, of the ranges that were taken

    def __post_init__(self) -> None:
        threading.Thread.__init__(self, name="search for poison records", daemon=True)

    def run(self) -> None:
        try:
            with closing(search(self.asked, self.version, self.ranges)) as results:
                for each in results:
                    self.found.put(each)
        except OnceoverError as error:
            log.warning("%s; the search begins again", error)
