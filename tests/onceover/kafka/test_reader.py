from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.cut_logs import damage_batch, produce_compressed
from tests.slow_kafka import limit_client, slow_link

from onceover.errors import (
    OffsetRangeError,
    OnceoverError,
    TerminalError,
    TransientError,
    UnreachableError,
    UnreadableRecordError,
)
from onceover.kafka import reader, record_batch
from onceover.kafka.guarded_read import read_range
from onceover.kafka.headers import UNREADABLE_HEADERS
from onceover.kafka.log_probe import LogProbe
from onceover.kafka.reader import KafkaSource, LogReader
from onceover.kafka.record_batch import SCHEMA
from onceover.lines.escapes import escape_headers

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker

    from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


def rows(source: KafkaSource, start: int, end: int) -> list[dict[str, Any]]:
    return [row for batch in read_range(source, 0, start, end) for row in batch.to_pylist()]


def seen(source: KafkaSource, start: int, end: int) -> list[tuple[int, bytes]]:
    return [(row["offset"], row["value"]) for row in rows(source, start, end)]


def test_record_is_read_as_it_was_sent(broker: Broker, topic: str) -> None:
    headers = [("a", b"1"), ("a", None), ("tab\tname", b"\xff\x00\n\\"), ("", b"")]
    broker.produce(topic, [b"\xffv\n"], key=b"\x00k", headers=headers, timestamp=1_360_000_000_123)
    (batch,) = read_range(broker.source(topic), 0, 0, 1)
    assert batch.schema == SCHEMA
    assert batch.to_pylist() == [
        {
            "kafka_partition": 0,
            "offset": 0,
            "kafka_timestamp": 1_360_000_000_123,
            "key": b"\x00k",
            "headers": escape_headers(headers),
            "value": b"\xffv\n",
            "leader_epoch": 0,
        }
    ]


def test_null_and_empty_stay_apart(broker: Broker, topic: str) -> None:
    broker.produce(topic, [None, b""])
    broker.produce(topic, [b"v"], key=b"", headers=[])
    assert [(r["key"], r["value"], r["headers"]) for r in rows(broker.source(topic), 0, 3)] == [
        (None, None, b""),
        (None, b"", b""),
        (b"", b"v", b""),
    ]


def test_header_name_that_is_not_utf8_does_not_block_its_record(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"v"] * 1000)
    assert len(rows(broker.source(topic), 0, 1000)) == 1000, "the interpreter has specialized the call by now"
    broker.produce_header_name(topic, b"caf\xe9", b"1")
    broker.produce(topic, [b"next"], headers=[("ok", b"2")])
    assert [(r["headers"], r["value"]) for r in rows(broker.source(topic), 1000, 1002)] == [
        (escape_headers(UNREADABLE_HEADERS), b"v"),
        (rb"ok\=2", b"next"),
    ]


def test_empty_range_reads_nothing_and_connects_to_no_broker(broker: Broker, topic: str) -> None:
    assert seen(broker.source(topic), 0, 0) == []
    assert seen(KafkaSource("127.0.0.1:1", "no-such-topic", "id"), 5, 5) == []


def test_range_that_ends_in_a_marker_is_whole(broker: Broker, topic: str) -> None:
    broker.transact(topic, [b"a", b"b"])
    assert broker.facts(topic).end == {0: 3}
    assert seen(broker.source(topic), 0, 3) == [(0, b"a"), (1, b"b")]
    assert seen(broker.source(topic), 2, 3) == []


def test_aborted_records_are_not_read_and_leave_no_wait(broker: Broker, topic: str) -> None:
    broker.transact(topic, [b"a"])  # 0, marker 1
    broker.transact(topic, [b"x", b"x", b"x"], abort=True)  # 2 to 4, marker 5
    begun = time.monotonic()
    for end in (2, 3, 4, 5, 6):
        assert seen(broker.source(topic), 0, end) == [(0, b"a")]
    assert seen(broker.source(topic), 3, 5) == []
    broker.transact(topic, [b"b"])  # 6, marker 7
    assert seen(broker.source(topic), 0, 4) == [(0, b"a")]
    assert seen(broker.source(topic), 3, 8) == [(6, b"b")]
    assert time.monotonic() - begun < 10


def test_aborted_records_are_records_under_read_uncommitted(broker: Broker, topic: str) -> None:
    broker.transact(topic, [b"x"], abort=True)
    assert seen(broker.source(topic, isolation="read_uncommitted"), 0, 2) == [(0, b"x")]


def test_large_records_are_read_in_batches_bounded_by_bytes(broker: Broker, topic: str) -> None:
    large = [bytes([65 + i]) * (1 << 20) for i in range(24)] + [b"z" * (3 << 20)]
    broker.produce(topic, large)
    batches = list(read_range(broker.source(topic), 0, 0, 25))
    assert [row["value"] for batch in batches for row in batch.to_pylist()] == large
    assert len(batches) > 1


def test_record_that_raw_does_not_take_is_named(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "LARGEST_RECORD", 1000)
    broker.produce(topic, [b"a" * 999, b"b" * 1000, b"c" * 999], headers=[])
    broker.produce(topic, [b"d" * 990], headers=[("h", b"12345678")])
    assert len(rows(broker.source(topic), 0, 3)) == 3
    with pytest.raises(UnreadableRecordError, match=r"offset 3 has 1,001 bytes, and raw takes at most 1,000; limit"):
        rows(broker.source(topic), 0, 4)


def test_many_records_are_read_in_order_without_a_gap(broker: Broker, topic: str) -> None:
    broker.produce(topic, (b"%d" % i for i in range(25_000)))
    batches = list(read_range(broker.source(topic), 0, 0, 25_000))
    assert [offset for batch in batches for offset in batch["offset"].to_pylist()] == list(range(25_000))
    assert max(batch.num_rows for batch in batches) < 3 * reader.BATCH_RECORDS


def test_expired_range_is_an_error_and_no_jump(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"a", b"b", b"c"])
    broker.expire(topic, before=2)
    with pytest.raises(OffsetRangeError, match=r"\[0, 3\).*does not hold offset 0.*expired"):
        seen(broker.source(topic), 0, 3)
    assert seen(broker.source(topic), 2, 3) == [(2, b"c")]


def test_log_that_ends_before_the_range_is_an_error(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"a", b"b"])
    source = broker.source(topic, stall_seconds=1)
    with pytest.raises(OffsetRangeError, match=r"the log ends at offset 2"):
        seen(source, 0, 3)
    with pytest.raises(OffsetRangeError, match="does not hold offset 500"):
        seen(source, 500, 501)


def test_recreated_topic_is_noticed_before_the_first_record(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"old"])
    source = broker.source(topic)
    broker.recreate(topic)
    broker.produce(topic, [b"new"])
    with pytest.raises(OffsetRangeError, match="was recreated"):
        seen(source, 0, 1)


def test_topic_recreated_during_a_read_is_noticed_at_its_end(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.produce(topic, [b"old"])
    source = broker.source(topic)
    check = LogReader._check_incarnation
    checks: list[str] = []

    def check_then_recreate(log: LogReader) -> None:
        check(log)
        if not checks:
            checks.append("checked")
            broker.recreate(topic)
            broker.produce(topic, [b"new"])

    monkeypatch.setattr(LogReader, "_check_incarnation", check_then_recreate)
    with pytest.raises(OffsetRangeError, match="was recreated"):
        seen(source, 0, 1)


def test_unknown_topic_and_an_unreachable_broker_are_errors(broker: Broker, topic: str) -> None:
    source = broker.source(topic)
    with pytest.raises(TerminalError, match="does not exist"):
        seen(replace(source, topic="no-such-topic"), 0, 1)
    with pytest.raises(OnceoverError, match="Kafka partition 7"):
        list(read_range(replace(source, stall_seconds=1), 7, 0, 1))


def test_damaged_batch_behind_a_range_fails_no_later_one(broker: Broker, stack: Stack) -> None:
    topic = broker.create(2)
    broker.produce(topic, [b"a", b"b"])
    produce_compressed(topic, 3)
    damage_batch(stack, topic)
    broker.produce(topic, [b"c", b"d"])
    broker.produce(topic, [b"e"], kafka_partition=1)
    with closing(LogReader(broker.source(topic))) as log:

        def read(kafka_partition: int, start: int, end: int) -> list[bytes]:
            return [value for batch in log.read(kafka_partition, start, end) for value in batch["value"].to_pylist()]

        for _ in range(20):
            assert [read(*wanted) for wanted in ((0, 0, 2), (0, 5, 7), (0, 0, 2), (0, 1, 2), (1, 0, 1))] == [
                [b"a", b"b"], [b"c", b"d"], [b"a", b"b"], [b"b"], [b"e"],
            ]  # fmt: skip
        with pytest.raises(UnreadableRecordError, match=r"Kafka partition 0, offset range \[0, 3\): offset 2 cannot"):
            read(0, 0, 3)


@pytest.mark.rare
@pytest.mark.faults
def test_broker_that_freezes_during_a_read_fails_it_in_time(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"x" * (1 << 20)] * 64)
    batches = read_range(broker.source(topic, stall_seconds=2), 0, 0, 64)
    first = next(batches)
    with broker.frozen():
        begun = time.monotonic()
        with pytest.raises(UnreachableError, match="nothing arrived for 2 s"):
            for _ in batches:
                pass
        assert time.monotonic() - begun < 15
    assert first.num_rows < 64


@pytest.mark.rare
def test_record_that_a_quota_holds_back_is_read(broker: Broker, topic: str) -> None:
    """Of 440 kB within eleven seconds, one record passes at once; the next waits for as long as its source's patience
    takes several times."""
    values = [bytes([65 + number]) * 330_000 for number in range(2)]
    for value in values:  # each a batch of its own: no quota of this size lets both pass in one
        broker.produce(topic, [value])
    limit_client(broker.address, topic, 40_000)
    source = broker.source(topic, stall_seconds=2, properties={"client.id": topic})
    assert [row["value"] for row in rows(source, 0, 2)] == values


@pytest.mark.rare
def test_record_that_no_quota_lets_pass_is_not_unreadable(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_SECONDS", 5.0)
    broker.produce(topic, [b"v" * 900_000])
    limit_client(broker.address, topic, 20_000)
    source = broker.source(topic, stall_seconds=1, properties={"client.id": topic})
    with pytest.raises(TransientError, match=r"a quota of Kafka's holds this client back.*raise that") as caught:
        rows(source, 0, 1)
    assert not isinstance(caught.value, UnreadableRecordError)


@pytest.mark.rare
def test_record_over_a_slow_link_is_read_and_probed(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"v" * 300_000])
    with slow_link(broker.address, 60_000) as address:
        source = replace(broker.source(topic, stall_seconds=2), bootstrap=address)
        assert [len(row["value"]) for row in rows(source, 0, 1)] == [300_000]
        with closing(LogProbe(source, 0, 1)) as probe:
            assert probe.find_epoch(0) == (0, 0)


def test_aborted_records_over_a_slow_link_are_passed_over(broker: Broker, topic: str) -> None:
    with slow_link(broker.address, 300_000) as address:
        broker.transact(topic, [b"x" * 300_000] * 3, abort=True)
        broker.produce(topic, [b"v"])
        source = replace(broker.source(topic, stall_seconds=2), bootstrap=address)
        assert seen(source, 0, 5) == [(4, b"v")]
