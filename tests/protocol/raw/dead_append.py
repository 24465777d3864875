"""An append of a driver that dies before its batch lands, or of another environment's."""

from __future__ import annotations

from contextlib import closing

from tests.integration.events import NOON_MS
from tests.integration.lane import Lane
from tests.protocol.raw.held import minute_of, start_of, value_of
from tests.protocol.raw.lines import FOREIGN, FRAGMENT, OFFSETS, Line, Lines, record_of
from tests.raw_lines import date_record, encode_append

from onceover.config.endpoints import address
from onceover.kafka import Topic
from onceover.lines.contract_names import name_contract
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record

_ANOTHER = KafkaPartition("0badcafe", 0)
_TORN = 10  # bytes at the end of an append, of which a line lacks its hash


def append_lines(lane: Lane, window: int, lines: Lines) -> None:
    """Append these lines of the model to the file of its window, as the topic's living generation has them, a foreign
    one under the first offset of another. A fragment is the last, and is a line that was torn."""
    with closing(Topic(address("kafka"), lane.topic, "read_committed", {})) as topic:
        generation = topic.facts().generation
    contract = name_contract(lane.pipeline.contract, 1)
    planted = []
    for line in lines:
        source, offset, known = _place(generation, line)
        record = Record(source, offset, NOON_MS, None, (), value_of(known))
        planted.append(date_record(record, NOON_MS + minute_of(known) * 60_000, contract))
    content = encode_append(*planted)
    path = lane.layout.window_file(start_of(window))
    is_there = lane.hdfs().status(path, strict=False) is not None
    lane.hdfs().write(path, content[:-_TORN] if FRAGMENT in lines else content, append=is_there)


def _place(generation: str, line: Line) -> tuple[KafkaPartition, int, Line]:
    if line in (FOREIGN, FRAGMENT):
        return _ANOTHER, 0, FOREIGN
    partition, offset = divmod(record_of(line), OFFSETS)
    return KafkaPartition(generation, partition), offset, line
