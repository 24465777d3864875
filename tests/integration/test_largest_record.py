"""A record of 32 MiB, each byte of which raw escapes, goes all the way; a larger one is refused by its offset."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.integration.compaction import expire_text
from tests.integration.cutover import assert_proved
from tests.integration.lane import Lane, event
from tests.integration.planted_failures import count_certified, minutes

from onceover.config.endpoints import address
from onceover.errors import OnceoverError
from onceover.kafka.reader import read_range
from onceover.lines.chunks import LONGEST
from onceover.model.record import LARGEST_RECORD

pytestmark = [pytest.mark.stack, pytest.mark.rare]


def make_escaped(size: int) -> bytes:
    """Return a record of that many bytes, nearly all of which are backslashes and take two in raw."""
    head = event(1, "b", 7)[:-1] + b', "pad": "'
    rest = size - len(head) - 2
    return head + b"\\" * (rest - rest % 2) + b"x" * (rest % 2) + b'"}'


def test_record_of_32_mib_is_landed_repaired_compacted_verified(lanes: Callable[..., Lane]) -> None:
    lane = lanes(topic_config={"max.message.bytes": str(40 << 20)})
    producer = Producer({"bootstrap.servers": address("kafka"), "message.max.bytes": 40 << 20})
    values = [event(0, amount=2), make_escaped(LARGEST_RECORD), event(2, amount=3)]
    for value in values:
        producer.produce(lane.topic, value, partition=0)
    assert producer.flush(60) == 0
    right = {(0.0, "a"): (2, 5, 3), (0.0, "b"): (1, 7, 7)}
    lane.ingest()
    (path,) = lane.raw()
    length = lane.files().read_lengths([minutes(0, 5).start])[minutes(0, 5).start]
    assert 2 * LARGEST_RECORD - 1_000 < length < LONGEST, path
    assert (lane.detect().certified, lane.aggregates()) == (1, right)
    repair_again(lane, right)
    assert [line.record.value for _, line in lane.lines()] == values

    assert [one.why for one in lane.compact()] == [None]
    assert expire_text(lane) == 1
    repair_again(lane, right)

    producer.produce(lane.topic, make_escaped(LARGEST_RECORD + 1), partition=0)
    assert producer.flush(60) == 0
    with lane.open() as context, context.open_own_topic() as topic, pytest.raises(OnceoverError, match="33,554,433"):
        list(read_range(context.build_source(topic.facts()), 0, 0, 4))


def repair_again(lane: Lane, right: object) -> None:
    with lane.ledger() as ledger:
        ledger.execute(f"UPDATE aggregates.{lane.name} SET events = events + 1")  # a name of the test's own making
    assert lane.repair(lane.detect(minutes(0, 5), force=True).request_id or 0).failed == ()
    assert (lane.aggregates(), count_certified(lane)) == (right, 1)
    assert_proved(lane, 0)
