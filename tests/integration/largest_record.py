"""A record of 32 MiB on its whole way, in a process of its own: drivers of such topics need 2 GiB of heap."""

from __future__ import annotations

import sys
from pathlib import Path

from confluent_kafka import Producer
from tests.integration.compaction import expire_text, spoil_rows
from tests.integration.cutover import assert_proved
from tests.integration.events import event, moment
from tests.integration.lane import Lane
from tests.integration.planted_failures import count_certified, minutes

from onceover.config.endpoints import address
from onceover.errors import OnceoverError
from onceover.kafka.guarded_read import read_range
from onceover.lines.chunks import LONGEST
from onceover.model.record import LARGEST_RECORD
from onceover.spark.session import build

RIGHT = {(0.0, "a"): (2, 5, 3), (0.0, "b"): (1, 7, 7)}


def make_escaped(size: int) -> bytes:
    """Return a record of that many bytes, nearly all of which are backslashes and take two in raw."""
    head = event(1, "b", 7)[:-1] + b', "pad": "'
    rest = size - len(head) - 2
    return head + b"\\" * (rest - rest % 2) + b"x" * (rest % 2) + b'"}'


def main(name: str, toml: str) -> None:
    """Land, repair, compact and verify the record, and see that a larger one is refused."""
    lane = Lane(name, name, build("largest record"), Path(toml))
    producer = Producer({"bootstrap.servers": address("kafka"), "message.max.bytes": 40 << 20})
    values = [event(0, amount=2), make_escaped(LARGEST_RECORD), event(2, amount=3)]
    for value in values:
        producer.produce(lane.topic, value, partition=0)
    assert producer.flush(60) == 0
    lane.ingest()
    (path,) = lane.raw()
    length = lane.files().read_lengths([moment(0)])[moment(0)]
    assert 2 * LARGEST_RECORD - 1_000 < length < LONGEST, path
    assert (lane.detect().certified, lane.aggregates()) == (1, RIGHT)
    repair_again(lane)
    assert [line.record.value for _, line in lane.lines()] == values

    if lane.pipeline.storage.raw_store == "hdfs":  # no other is compacted
        assert [one.why for one in lane.compact()] == [None]
        assert expire_text(lane) == 1
        repair_again(lane)

    producer.produce(lane.topic, make_escaped(LARGEST_RECORD + 1), partition=0)
    assert producer.flush(60) == 0
    refused = ""
    try:
        with lane.open() as context, context.open_own_topic() as topic:
            list(read_range(context.build_source(topic.facts()), 0, 0, 4))
    except OnceoverError as error:
        refused = str(error)
    assert "33,554,433" in refused


def repair_again(lane: Lane) -> None:
    spoil_rows(lane)
    assert lane.repair_detected(minutes(0, 5), force=True).failed == ()
    assert (lane.aggregates(), count_certified(lane)) == (RIGHT, 1)
    assert_proved(lane, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
