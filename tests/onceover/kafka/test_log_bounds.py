"""The part of a range that a topic's log holds."""

from __future__ import annotations

import pytest

from onceover.kafka.log_bounds import clip_to_held
from onceover.kafka.topic import TopicFacts
from onceover.model.offsets import KafkaPartition, OffsetRange

SOURCE, GENERATION = KafkaPartition("0a1b2c3d", 0), "0a1b2c3d"
FACTS = TopicFacts("events", "topic", GENERATION, {0: 10}, {0: 20})


@pytest.mark.parametrize(
    ("start", "end", "held"),
    [
        (12, 15, (12, 15)),
        (5, 25, (10, 20)),
        (5, 12, (10, 12)),
        (15, 25, (15, 20)),
        (0, 5, (5, 5)),
        (20, 30, (20, 20)),
        (25, 30, (25, 25)),
    ],
)
def test_range_is_clipped_to_what_the_log_holds(start: int, end: int, held: tuple[int, int]) -> None:
    assert clip_to_held(OffsetRange(SOURCE, start, end), FACTS) == OffsetRange(SOURCE, *held)


@pytest.mark.parametrize("other", [KafkaPartition("ffffffff", 0), KafkaPartition(GENERATION, 1)])
def test_log_of_another_source_holds_nothing(other: KafkaPartition) -> None:
    assert not len(clip_to_held(OffsetRange(other, 12, 15), FACTS))
