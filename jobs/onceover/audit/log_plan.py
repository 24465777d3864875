"""The offsets of Kafka's log that an audit reads, and those that it leaves to ingest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onceover.audit.store import LedgerStatement
from onceover.errors import MissingTopicError
from onceover.kafka.topic import Topic, TopicFacts
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, intersect, subtract
from onceover.model.root_marker import join_origins


@dataclass(frozen=True, slots=True)
class LogPlan:
    """Offset ranges of the log as it is now: those `to_audit`, and those that ingest is still `to_read`."""

    to_audit: tuple[OffsetRange, ...]
    to_read: tuple[OffsetRange, ...]

    def list_still_held(self, facts: TopicFacts) -> list[OffsetRange]:
        """Return the audited ranges without what the log has dropped by now."""
        return [
            OffsetRange(piece.source, start, piece.end)
            for piece in self.to_audit
            if (start := max(piece.start, facts.earliest[piece.source.kafka_partition])) < piece.end
        ]


def read_facts(topic: Topic) -> TopicFacts:
    """Return the topic's facts; a topic that was deleted holds nothing. Raise as `Topic.facts` for other failures."""
    try:
        return topic.facts()
    except MissingTopicError:
        return TopicFacts(topic.topic, topic_id="", generation="", earliest={}, end={})


def plan_log(facts: TopicFacts, statement: LedgerStatement, marked: Mapping[KafkaPartition, int]) -> LogPlan:
    """Plan to read the log from the origin, or from its start where no marker names one, up to the ledger's reach.

    What is beyond the reach, or in a batch that has not landed, ingest is still to read.
    """
    to_audit: list[OffsetRange] = []
    to_read: list[OffsetRange] = []
    for number, end in facts.end.items():
        source, earliest = KafkaPartition(facts.generation, number), facts.earliest[number]
        reach = min(max(statement.reaches.get(source, earliest), earliest), end)
        log = OffsetRange(source, earliest, reach)
        begun = intersect(statement.begun, [log])
        to_read += [*begun, OffsetRange(source, reach, end)]
        start = max(earliest, join_origins([marked, statement.origins])[source]) if source in marked else earliest
        if start < reach:
            to_audit += subtract([OffsetRange(source, start, reach)], [*begun, *statement.unreadable])
    return LogPlan(tuple(to_audit), coalesce(to_read))


def is_cut_short(facts: TopicFacts, marked: Mapping[KafkaPartition, int]) -> bool:
    """Return whether the log begins before a marked origin, so that `plan_log` would leave records out."""
    return any(
        earliest < marked.get(KafkaPartition(facts.generation, number), 0)
        for number, earliest in facts.earliest.items()
    )


def list_before_origin(
    statement: LedgerStatement, marked: Mapping[KafkaPartition, int], first: Mapping[KafkaPartition, int]
) -> list[OffsetRange]:
    """Return the offsets before reading began: before the ledger's origin, the marker's, and the `first` one in raw."""
    origins = join_origins([statement.origins, marked, first])
    return [OffsetRange(source, 0, origin) for source, origin in origins.items()]


def is_log_whole(facts: TopicFacts, statement: LedgerStatement, marked: Mapping[KafkaPartition, int]) -> bool:
    """Return whether the log begins where reading began, for certain, and no earlier incarnation of the topic was
    read."""
    known = {*statement.origins, *marked}
    return all(source.generation == facts.generation for source in known) and all(
        earliest <= marked.get(KafkaPartition(facts.generation, number), 0)
        for number, earliest in facts.earliest.items()
    )
