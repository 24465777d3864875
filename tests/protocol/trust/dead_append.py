"""An append of a driver that dies before its batch lands, or of another environment's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from tests.integration.lane import NOON_MS, Lane
from tests.protocol.trust.held import MINUTES, minute_of
from tests.protocol.trust.state import FOREIGN, Line
from tests.raw_lines import date_record, encode_append

from onceover.config.endpoints import address
from onceover.kafka import Topic
from onceover.lines.contract_names import name_contract
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record
from onceover.model.window import from_ms

_ANOTHER = KafkaPartition("0badcafe", 0)


def append_lines(lane: Lane, window: int, contents: Mapping[Line, bytes]) -> None:
    """Append these records of the model to the file of its window, as the topic's living generation has them, and
    a foreign one under the same offset of another."""
    with closing(Topic(address("kafka"), lane.topic, "read_committed", {})) as topic:
        source = KafkaPartition(topic.facts().generation, 0)
    contract = name_contract(lane.pipeline.contract, 1)
    planted = [
        date_record(
            Record(_ANOTHER if line == FOREIGN else source, max(line >> 1, 0), NOON_MS, None, (), content),
            NOON_MS + minute_of(line) * 60_000,
            contract,
        )
        for line, content in contents.items()
    ]
    path = lane.layout.window_file(from_ms(NOON_MS + window * MINUTES * 60_000))
    is_there = lane.hdfs().status(path, strict=False) is not None
    lane.hdfs().write(path, encode_append(*planted), append=is_there)
