"""A pipeline's log compared with what landed of it, by the leader epochs of its records.

A log that lost its end and has grown again holds other records under offsets that landed. Both count, under their
leader epochs. Reading starts over at the first, and no window is certified until that is done. Offsets that landed
without known epochs, as leaders changed during a read, are read again once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing

from onceover.kafka.log_probe import LogProbe
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import TopicFacts
from onceover.ledger import log_cuts
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.unreadable import list_unreadable
from onceover.model.log_history import find_divergence, find_unknown, skip_unreadable
from onceover.model.offsets import KafkaPartition, OffsetRange, intersect

log = logging.getLogger(__name__)


class LogComparison:
    """The comparisons of one process. A log is compared once for each leader epoch; again while it is shorter than what
    landed, or while records of it have to be read again."""

    def __init__(self, connection: Connection, pipeline: str, driver: Epoch | None = None) -> None:
        self._connection, self._pipeline, self._driver = connection, pipeline, driver
        self._compared: dict[KafkaPartition, tuple[int, int]] = {}  # leader epoch and end
        self._diverged: dict[KafkaPartition, int] = {}
        self._unknown: dict[KafkaPartition, Sequence[OffsetRange]] = {}

    def list_unknown(self, generation: str) -> list[OffsetRange]:
        """Return the first offsets of each Kafka partition that landed without leader epochs, and that the log held at
        the last comparison: they are to be read again."""
        return [of_source[0] for at, of_source in sorted(self._unknown.items()) if at.generation == generation]

    def compare(self, facts: TopicFacts, source: KafkaSource) -> Mapping[int, int]:
        """Return by Kafka partition the first landed offset under which the log has another record.

        Records it. Costs one query while no leader epoch has changed.
        """
        for at, known in log_cuts.read_compared_logs(self._connection, self._pipeline, facts.generation).items():
            if at.kafka_partition in facts.leader_epochs and self._may_differ(at, known, facts):
                self._compare_one(at, facts, source)
        return {at.kafka_partition: o for at, o in self._diverged.items() if at.generation == facts.generation}

    def _may_differ(self, at: KafkaPartition, known: log_cuts.ComparedLog, facts: TopicFacts) -> bool:
        if at in self._diverged or at in self._unknown or known.diverged_from is not None:
            return True
        leader_epoch = facts.leader_epochs[at.kafka_partition]
        if known.compared_epoch == log_cuts.NOT_WHOLE:
            return self._compared.get(at) != (leader_epoch, facts.end[at.kafka_partition])
        return known.compared_epoch != leader_epoch

    def _compare_one(self, at: KafkaPartition, facts: TopicFacts, source: KafkaSource) -> None:
        leader_epoch, end = facts.leader_epochs[at.kafka_partition], facts.end[at.kafka_partition]
        held = OffsetRange(at, min(facts.earliest[at.kafka_partition], end), end)
        landed = log_cuts.list_landed_epochs(self._connection, self._pipeline, held)
        diverged = None
        if landed:
            with closing(LogProbe(source, at.kafka_partition)) as probe:
                unreadable = list_unreadable(self._connection, self._pipeline, at.generation)
                find_epoch = skip_unreadable(probe.find_epoch, intersect(unreadable, [held]))
                diverged = find_divergence(landed, held, find_epoch)
        unknown = find_unknown(landed, held)
        if diverged is not None:  # from there on all is read again
            unknown = intersect(unknown, [OffsetRange(at, held.start, diverged)])
        # What landed beyond the log's end is compared once the log has grown over it.
        is_final = diverged is None and not unknown and all(span.offsets.end <= end for span in landed)
        compared = log_cuts.Comparison(
            held,
            landed,
            diverged_from=diverged,
            unknown_from=unknown[0].start if unknown else None,
            compared_epoch=leader_epoch if is_final else log_cuts.NOT_WHOLE,
        )
        is_new = log_cuts.record_comparison(self._connection, self._pipeline, compared, self._driver)
        self._compared[at] = (leader_epoch, end)
        if unknown and at not in self._unknown:
            log.warning(
                "%s-%d: %d offsets landed while leaders changed, so that their epochs are unknown; they are read again "
                "from Kafka, and until then no window is certified",
                facts.topic, at.kafka_partition, sum(map(len, unknown)),
            )  # fmt: skip
        self._unknown.pop(at, None)
        if unknown:
            self._unknown[at] = unknown
        if diverged is None:
            self._diverged.pop(at, None)
            return
        self._diverged[at] = diverged
        if is_new:
            log.warning(
                "%s-%d was cut and has grown again: other records than landed are in its log from offset %d on; both "
                "count, and reading starts over there",
                facts.topic, at.kafka_partition, diverged,
            )  # fmt: skip
