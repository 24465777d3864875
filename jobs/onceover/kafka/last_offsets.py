"""The last records of a topic, to look at."""

from __future__ import annotations

from onceover.kafka.topic import TopicFacts
from onceover.model.batch_plan import plan_ranges
from onceover.model.offsets import OffsetRange


def plan_sample(facts: TopicFacts, most: int) -> tuple[OffsetRange, ...]:
    """Return the last offsets of each Kafka partition, together at most `most`, shared as a batch's are."""
    held = {p: facts.end[p] - facts.earliest[p] for p in facts.end}
    shares = plan_ranges(facts.generation, dict.fromkeys(held, 0), held, most)
    ends = [facts.end[share.source.kafka_partition] for share in shares]
    return tuple(OffsetRange(share.source, end - len(share), end) for share, end in zip(shares, ends, strict=True))
