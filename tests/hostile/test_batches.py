"""Some hundred hostile batches, on the real broker: their records land unchanged, or a read ends naming the offset."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from tests.hostile.codecs import EVENT, Try, make_bodies, make_families
from tests.hostile.damaged import make_unreadable, plant
from tests.hostile.test_codecs import BOMB, LARGE, list_waiting, produce
from tests.hostile.tries import bounded_memory
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified
from tests.kafka_batches import CODECS, NOON_MS, RawRecord, encode_records, make_batch, make_bomb, send, split_gzip
from tests.programs import run_python

from onceover.config.endpoints import address
from onceover.errors import UnreadableRecordError
from onceover.kafka.guarded_read import read_range
from onceover.kafka.memory_limit import MAX_PROBE_BYTES
from onceover.kafka.reader import KafkaSource
from onceover.model.record import LARGEST_RECORD, Record
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
few_or_all = pytest.mark.parametrize(
    "is_small",
    [pytest.param(True, id="few"), pytest.param(False, id="all", marks=pytest.mark.largest)],
)
ANY_TIME = {**LARGE, "message.timestamp.after.max.ms": str(2**63 - 1)}
SOUND = [RawRecord(b"a", EVENT), RawRecord(None, EVENT)]
Row = tuple[int, bytes | None, tuple[tuple[str | bytes, bytes | None], ...], bytes | None]


def expect(record: RawRecord) -> Row:
    """Return what raw must hold. The client library hands out no header of a record if one name is not UTF-8."""
    try:
        headers = tuple((name.decode(), value) for name, value in record.headers)
    except UnicodeDecodeError:
        return record.timestamp, record.key, ((b"\xff", None),), record.value
    return record.timestamp, record.key, headers, record.value


def as_row(record: Record) -> Row:
    return record.kafka_timestamp, record.key, record.headers, record.value


def read_raw(lane: Lane) -> dict[tuple[int, int], Row]:
    lines = [line.record for _, line in lane.lines()]
    rows = {(record.source.kafka_partition, record.offset): as_row(record) for record in lines}
    assert len(rows) == len(lines), "no record landed twice"
    return rows


def send_tries(lane: Lane, tries: Iterable[Try]) -> dict[tuple[int, int], tuple[str, Row]]:
    """Send each batch to the Kafka partition of its codec; return name and row by the place of each record."""
    account: dict[tuple[int, int], tuple[str, Row]] = {}
    for each in tries:
        kafka_partition = CODECS.index(each.codec)
        first = send(address("kafka"), lane.topic, kafka_partition, each.batch)
        for offset, record in enumerate(each.records, first):
            account[kafka_partition, offset] = (f"{each.codec}, {each.name}", expect(record))
    return account


@contextmanager
def open_source(lane: Lane) -> Iterator[KafkaSource]:
    with lane.open() as context, context.open_own_topic() as topic:
        yield context.build_source(topic.facts())


def read_values(source: KafkaSource, start: int, end: int, kafka_partition: int = 0) -> list[bytes]:
    batches = read_range(source, kafka_partition, start, end)
    return [value.as_py() for batch in batches for value in batch.column("value")]


@few_or_all
def test_hostile_batches_land_unchanged(lanes: Lanes, is_small: bool) -> None:
    lane = lanes(partitions=len(CODECS), topic_config=ANY_TIME)
    bodies = [each for each in make_bodies() if each.is_readable]
    account = send_tries(lane, [*make_families(is_small=is_small), *(bodies[::4] if is_small else bodies)])
    lane.ingest()
    landed = read_raw(lane)
    assert {account.get(at, ("not sent",))[0] for at in landed.keys() ^ account.keys()} == set()
    assert {name for at, (name, row) in account.items() if landed[at] != row} == set()
    events = sum(row[3] == EVENT for _, row in account.values())
    assert lane.aggregates() == {(0.0, "a"): (events, events, 1)}
    assert lane.detect().findings == ()
    assert count_certified(lane) == 1


def send_unreadable(lane: Lane, stack: Stack, tries: Iterable[Try]) -> None:
    """Send each batch, between two sound ones, to a Kafka partition of its own."""
    for kafka_partition, each in enumerate(tries):
        send(address("kafka"), lane.topic, kafka_partition, make_batch(SOUND))
        if each.is_on_disk_only:
            plant(stack, lane.topic, kafka_partition, each)
        else:
            send(address("kafka"), lane.topic, kafka_partition, each.batch)
        send(address("kafka"), lane.topic, kafka_partition, make_batch(SOUND))


def test_unreadable_batch_is_named_and_no_other(lanes: Lanes, stack: Stack) -> None:
    tries = [each for each in make_unreadable() if not each.is_fatal]
    lane = lanes(partitions=len(tries))
    send_unreadable(lane, stack, tries)
    sound = [record.value for record in SOUND]
    with open_source(lane) as source, bounded_memory():
        for kafka_partition, each in enumerate(tries):
            where = f"Kafka partition {kafka_partition}, .* offset 2 cannot be read"
            with pytest.raises(UnreadableRecordError, match=where) as named:
                read_values(source, 0, 6, kafka_partition)
            assert named.value.offset == 2, each.name
            assert read_values(source, 4, 6, kafka_partition) == sound, each.name
            assert read_values(source, 0, 2, kafka_partition) == sound, each.name


@few_or_all
def test_unreadable_batches_stop_only_their_partitions(lanes: Lanes, stack: Stack, is_small: bool) -> None:
    one_a_codec = {each.codec: each for each in make_unreadable()}
    tries = [one_a_codec["lz4"]] if is_small else list(one_a_codec.values())
    lane = lanes(partitions=len(tries) + 1)
    send_unreadable(lane, stack, tries)
    send(address("kafka"), lane.topic, len(tries), make_batch(SOUND * 50))
    lane.turn(4)
    waiting = {each.source.kafka_partition: (each.start, each.end) for each in list_waiting(lane)}
    assert waiting == dict.fromkeys(range(len(tries)), (2, 4)), [each.name for each in tries]
    before = {(at, offset) for at in range(len(tries)) for offset in (0, 1)}
    assert read_raw(lane).keys() == before | {(len(tries), offset) for offset in range(100)}


BOUND_TRIES = [(codec, is_random) for codec in CODECS for is_random in (False, True)]
IN_TEST = (("zstd", False),)
NAMED = r"Kafka partition 0, .* offset 3 has 33,554,433 bytes"


@pytest.mark.parametrize(
    ("codec", "is_random"),
    [pytest.param(*each, marks=() if each in IN_TEST else pytest.mark.largest) for each in BOUND_TRIES],
)
def test_value_beyond_32_mib_is_named_and_no_other(lanes: Lanes, codec: str, is_random: bool) -> None:
    lane = lanes(partitions=2, topic_config=LARGE)
    whole = Random(codec).randbytes(LARGEST_RECORD + 1) if is_random else bytes(LARGEST_RECORD + 1)
    for value in (b"a", whole[:-2], whole[:-1], whole, b"z"):
        produce(lane.topic, value, codec)
    produce(lane.topic, b"other", codec, 1)
    with open_source(lane) as source, bounded_memory(400):
        assert read_values(source, 0, 3) == [b"a", whole[:-2], whole[:-1]]
        with pytest.raises(UnreadableRecordError, match=NAMED) as named:
            read_values(source, 0, 5)
        assert named.value.offset == 3
        assert read_values(source, 4, 5) == [b"z"]
        assert read_values(source, 0, 1, 1) == [b"other"]


def test_append_time_is_the_brokers_under_every_codec(lanes: Lanes) -> None:
    lane = lanes(partitions=len(CODECS), topic_config={"message.timestamp.type": "LogAppendTime"})
    stamps = (NOON_MS, -1, 2**63 - 1)
    begun = int(time.time() * 1000) - 1
    for kafka_partition, codec in enumerate(CODECS):
        batch = make_batch([RawRecord(b"k", b"v", timestamp=stamp) for stamp in stamps], codec)
        assert send(address("kafka"), lane.topic, kafka_partition, batch) == 0
    with open_source(lane) as source:
        for kafka_partition in range(len(CODECS)):
            (batch,) = read_range(source, kafka_partition, 0, 3)
            (stamp,) = set(batch.column("kafka_timestamp").to_pylist())
            assert begun <= stamp <= time.time() * 1000 + 1
            assert batch.column("value").to_pylist() == [b"v"] * 3


def test_broker_that_packs_batches_again_reads_each_gzip_member(lanes: Lanes) -> None:
    lane = lanes(topic_config={"compression.type": "zstd"})
    records = [RawRecord(b"k", b"%d" % number) for number in range(4)]
    for at in (len(encode_records(records[:2])), 5):
        send(address("kafka"), lane.topic, 0, split_gzip(records, at))
    with open_source(lane) as source:
        assert read_values(source, 0, 8) == [b"0", b"1", b"2", b"3"] * 2


def read_apart(lane: Lane, end: int) -> dict[str, Any]:
    """Search and read the Kafka partition as the product does near what no reader gets, and measure the readers."""
    with open_source(lane) as source:
        command = [source.bootstrap, source.topic, source.topic_id, str(end)]
    read: dict[str, Any] = json.loads(run_python("-m", "tests.hostile.bomb_read", *command))
    return read


@pytest.mark.rare
@pytest.mark.parametrize(
    "codec", ["gzip", pytest.param("lz4", marks=pytest.mark.largest), pytest.param("zstd", marks=pytest.mark.largest)]
)
def test_bomb_is_named_within_bounded_memory(lanes: Lanes, codec: str) -> None:
    lane = lanes(topic_config=LARGE)
    produce(lane.topic, b"before")
    assert send(address("kafka"), lane.topic, 0, make_bomb(BOMB, codec=codec)) == 1
    produce(lane.topic, b"after")
    found = read_apart(lane, 3)
    assert found["unreadable"] == [1, 2]
    assert found["mebibytes"] <= (MAX_PROBE_BYTES >> 20) + 100


@pytest.mark.rare
def test_batches_that_unpack_to_much_are_read_one_by_one(lanes: Lanes) -> None:
    lane = lanes(topic_config=LARGE)
    batch = make_bomb(30 << 20)
    for offset in range(40):  # of 30 KiB each: one fetch would hold them all, 1.2 GiB
        assert send(address("kafka"), lane.topic, 0, batch) == offset
    found = read_apart(lane, 40)
    assert (found["unreadable"], found["read"]) == (None, list(range(40)))
    assert found["mebibytes"] <= 400
