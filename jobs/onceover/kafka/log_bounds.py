"""What a topic's log holds now: the offsets that ingest can still read, by Kafka partition, and of a given range."""

from __future__ import annotations

from onceover.errors import MissingTopicError
from onceover.kafka.topic import Topic, TopicFacts
from onceover.model.offsets import KafkaPartition, OffsetRange


def read_held(topic: Topic) -> tuple[OffsetRange, ...]:
    """Ask Kafka for the log of each Kafka partition as an offset range. A topic that does not exist holds nothing;
    raise as `Topic.facts` for everything else that keeps Kafka from answering.

    An offset within it counts as held, though a compacted topic may have no record there any more: ingest accounts
    for it by reading past it. An earlier generation of the topic holds nothing.
    """
    try:
        facts = topic.facts()
    except MissingTopicError:
        return ()
    return tuple(
        OffsetRange(KafkaPartition(facts.generation, number), start, max(start, facts.end[number]))
        for number, start in sorted(facts.earliest.items())
    )


def clip_to_held(offsets: OffsetRange, facts: TopicFacts) -> OffsetRange:
    """Return the part of the range that the log holds, perhaps empty: the rest is below its start, beyond its end,
    or of another incarnation of the topic."""
    at, source = offsets.source.kafka_partition, offsets.source
    if source.generation != facts.generation or at not in facts.end:
        return OffsetRange(source, offsets.start, offsets.start)
    start = min(max(offsets.start, facts.earliest[at]), offsets.end)
    return OffsetRange(source, start, max(min(offsets.end, facts.end[at]), start))
