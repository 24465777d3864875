"""What a topic's log holds now: the offsets that ingest can still read, by Kafka partition."""

from __future__ import annotations

from onceover.errors import MissingTopicError
from onceover.kafka.topic import Topic, TopicFacts
from onceover.model.offsets import KafkaPartition, OffsetRange


def read_held(topic: Topic) -> tuple[OffsetRange, ...]:
    """Ask Kafka for the bounds of the topic's log. A topic that does not exist holds nothing; raise as `Topic.facts`
    for everything else that keeps Kafka from answering."""
    try:
        return held_ranges(topic.facts())
    except MissingTopicError:
        return ()


def held_ranges(facts: TopicFacts) -> tuple[OffsetRange, ...]:
    """Return the log of each Kafka partition as an offset range.

    An offset within it counts as held, though a compacted topic may have no record there any more: ingest accounts
    for it by reading past it. An earlier generation of the topic holds nothing.
    """
    return tuple(
        OffsetRange(KafkaPartition(facts.generation, number), start, max(start, facts.end[number]))
        for number, start in sorted(facts.earliest.items())
    )
