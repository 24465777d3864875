"""Where reading of each Kafka partition continues: by the offset store, the ledger, and the log as it is now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from onceover.kafka import TopicFacts
from onceover.kafka.reader import KafkaSource
from onceover.ledger import frontiers, landed_offsets
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, has_other_versions
from onceover.ledger.log_cuts import record_cuts
from onceover.ledger.log_limits import list_unreadable
from onceover.ledger.root import OwnedRoot
from onceover.model.batch_plan import Start, compute_starts
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.pipeline import IngestPolicy
from onceover.offset_stores.tracker import OffsetTracker

log = logging.getLogger(__name__)


class ReadPositions:
    """The next offset of each Kafka partition, for one driver. If its sink skips what has landed, so is it here, except
    what is past since the log was cut: there the log has other records.

    Once two versions of what evaluates have read the pipeline, nothing that landed is read again, whatever the sink:
    the other one may date a record into another window, and it would count in both.
    """

    def __init__(
        self,
        connection: Connection,
        epoch: Epoch,
        policy: IngestPolicy,
        offsets: OffsetTracker,
        root: OwnedRoot,
        open_log: Callable[[TopicFacts], KafkaSource],
    ) -> None:
        self._connection, self._epoch, self._policy, self._offsets = connection, epoch, policy, offsets
        self._root, self._open_log = root, open_log
        self._planned = False
        self._skips_landed = policy.skips_landed or has_other_versions(connection, epoch)

    def find(self, facts: TopicFacts) -> Mapping[int, int]:
        """Return each Kafka partition's next offset to read, after recording it in the ledger and the offset store."""
        seen = frontiers.list_generations(self._connection, self._epoch.pipeline)
        if seen and facts.generation not in seen:
            log.warning(
                "topic %s was deleted and recreated: generation %s is read from its start",
                facts.topic,
                facts.generation,
            )
            frontiers.retire_generations(self._connection, self._epoch, facts.generation)
        stored = self._offsets.load(facts.topic_id, facts.end.keys())
        remembers = self._policy.offset_store != "none"
        # A store may forget (Kafka drops the offsets of a group that is quiet for a week); the ledger does not.
        if remembers and facts.end.keys() - stored.keys():
            held = frontiers.read_committed_offsets(self._connection, self._epoch.pipeline, facts.generation)
            stored = {**held, **stored}
        # Only a first start may be at the end: a new incarnation or Kafka partition is read from its beginning.
        first = not stored and not self._planned and not (seen and remembers)
        at_end = first and self._policy.first_start == "latest"
        # The only way back of a stored offset besides a truncated log: other records are there than were read.
        cuts = record_cuts(self._connection, self._epoch.pipeline, facts, self._open_log(facts), self._epoch)
        stored = {**stored, **{p: min(offset, stored.get(p, offset)) for p, offset in cuts.items()}}
        starts = compute_starts(stored, facts.end if at_end else facts.earliest, facts.earliest, facts.end, facts.high)
        if seen:  # nothing new to the ledger may go unaccounted, whatever offsets were set by hand
            starts = {p: replace(start, origin=min(start.origin, facts.earliest[p])) for p, start in starts.items()}
        self._planned = True
        # The marker outlives the ledger: a ledger that lost a Kafka partition begins where the lost one began.
        marked = self._root.record_origins({KafkaPartition(facts.generation, p): s.origin for p, s in starts.items()})
        frontiers.register_kafka_partitions(
            self._connection,
            self._epoch,
            facts.topic_id,
            starts={
                source: replace(starts[source.kafka_partition], origin=origin) for source, origin in marked.items()
            },
            ends={KafkaPartition(facts.generation, p): end for p, end in facts.end.items()},
            high={KafkaPartition(facts.generation, p): facts.log_end(p) for p in facts.end},
        )
        _warn_of_loss(facts, stored, starts)
        at = self._skip_settled(facts, {p: start.at for p, start in starts.items()})
        self._offsets.begin(facts.topic_id, at)
        return at

    def list_landed(self, ranges: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        """Return which of these offsets have landed and are skipped: none unless what landed is."""
        if not self._skips_landed:
            return ()
        return landed_offsets.list_landed(self._connection, self._epoch.pipeline, ranges)

    def leave_fresh(self, ranges: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        """Return those of the offsets to be read that must not have landed: none unless what landed is skipped."""
        return tuple(ranges) if self._skips_landed else ()

    def _skip_settled(self, facts: TopicFacts, at: Mapping[int, int]) -> dict[int, int]:
        """Move each offset beyond the unreadable offsets that begin there, and beyond those that landed if these are
        skipped."""
        sources = {p: KafkaPartition(facts.generation, p) for p in at}
        settled = [*list_unreadable(self._connection, self._epoch.pipeline, facts.generation)]
        settled += self.list_landed([OffsetRange(sources[p], offset, facts.end[p]) for p, offset in at.items()])
        moved = dict(at)
        for piece in coalesce(settled):
            p = piece.source.kafka_partition
            if piece.source == sources.get(p) and piece.start <= moved[p] < piece.end:
                moved[p] = min(piece.end, facts.end[p])
                if self._skips_landed:
                    log.warning("%s-%d: offsets %d to %d are settled in the ledger, and are not read again",
                                facts.topic, p, at[p], moved[p] - 1)  # fmt: skip
        return moved


def _warn_of_loss(facts: TopicFacts, stored: Mapping[int, int], starts: Mapping[int, Start]) -> None:
    """Log stored offsets outside the topic's log; the ledger has each as a finding."""
    for kafka_partition, start in starts.items():
        if start.truncated_from is not None:
            what = "%s-%d was truncated: its log ends at %d, offsets up to %d were read before"
            log.warning(what, facts.topic, kafka_partition, facts.end[kafka_partition], start.truncated_from)
        elif stored.get(kafka_partition, start.at) < start.at:
            what = "%s-%d has expired up to %d: offsets from %d on were never read and are lost"
            log.warning(what, facts.topic, kafka_partition, start.at, stored[kafka_partition])
