"""Which offsets are named as unreadable: those on which every read fails, and none of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.integration.cut_logs import damage_batch, produce_compressed
from tests.kafka_batches import RawRecord, send, split_gzip

from onceover.errors import UnreadableRecordError
from onceover.kafka.guarded_read import read_range
from onceover.kafka.reader import KafkaSource
from onceover.kafka.unreadable_search import explain, find_end, find_unreadable
from onceover.model.offsets import KafkaPartition, OffsetRange

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker

    from onceover_local.stack import Stack


@dataclass
class Log:
    """A log as batches: the first offset of each, its end, and whether nothing, an error, or a death comes of it."""

    batches: list[tuple[int, int, str]]
    reads: list[int] = field(default_factory=list)

    def fail(self, offset: int) -> UnreadableRecordError | None:
        (batch,) = (each for each in self.batches if each[0] <= offset < each[1])
        return {
            "read": None,
            "error": UnreadableRecordError("bad", batch=batch[0]),
            "death": UnreadableRecordError("too large"),
        }[batch[2]]

    def read(self, start: int, end: int) -> tuple[int, UnreadableRecordError | None]:
        self.reads.append(start)
        found = next(((at, why) for at in range(start, end) if (why := self.fail(at))), None)
        return found or (end, None)


def find(source: KafkaSource, start: int, end: int, log_end: int) -> tuple[int, int] | None:
    """Return where the offsets of the range begin and end that no reader gets, if there are any."""
    found = find_unreadable(source, OffsetRange(KafkaPartition("0a1b2c3d", 0), start, end), log_end)
    return (found.offsets.start, found.offsets.end) if found else None


def make_log(random: Random) -> Log:
    batches, at = [], 0
    while at < 60:
        end = at + random.choice((1, 1, 2, 7, 20))
        batches.append((at, end, random.choice(("read", "error", "death"))))
        at = end
    return Log(batches)


@pytest.mark.parametrize("seed", range(50))
def test_search_names_all_bad_offsets_in_a_row_and_no_other(seed: int) -> None:
    log = make_log(Random(seed))
    log_end = log.batches[-1][1]
    for start in range(log_end):
        if failure := log.fail(start):
            run = list(takewhile(log.fail, range(start, log_end)))
            assert find_end(log.read, start, failure, log_end, lambda: False) == run[-1] + 1


@pytest.mark.parametrize("seed", range(20))
def test_search_that_is_over_early_names_bad_offsets_only(seed: int) -> None:
    log = make_log(Random(seed))
    log_end = log.batches[-1][1]
    for most in range(12):
        for start in filter(log.fail, range(log_end)):
            log.reads.clear()
            failure = log.fail(start) or UnreadableRecordError("")
            end = find_end(log.read, start, failure, log_end, lambda most=most: len(log.reads) >= most)  # type: ignore[misc]
            assert start < end
            assert all(map(log.fail, range(start, end)))
            assert len(log.reads) <= most + 2


def test_search_skips_through_a_large_batch() -> None:
    log = Log([(0, 2, "read"), (2, 1_000_002, "error"), (1_000_002, 9_000_000, "read")])
    assert find_end(log.read, 2, UnreadableRecordError("bad", batch=2), 9_000_000, lambda: False) == 1_000_002
    assert len(log.reads) < 50


def test_death_of_the_batch_behind_proves_nothing() -> None:
    deaths = [UnreadableRecordError("it died"), None]
    assert explain(lambda start, end: (start, deaths.pop(0)), 7) is None


@pytest.mark.stack
@pytest.mark.rare
def test_record_between_damaged_batches_is_not_named(broker: Broker, topic: str, stack: Stack) -> None:
    broker.produce(topic, [b"a"])
    produce_compressed(topic, 4)
    broker.produce(topic, [b"b"])
    produce_compressed(topic, 2)
    produce_compressed(topic, 1)
    broker.produce(topic, [b"c"])
    for number in range(3):
        damage_batch(stack, topic, number)
    found = [find(broker.source(topic), *wanted, 10) for wanted in ((0, 10), (2, 10), (5, 10), (6, 10), (5, 6))]
    assert found == [(1, 5), (2, 5), (6, 9), (6, 9), None]


@pytest.mark.stack
@pytest.mark.rare
def test_batch_that_a_client_fetches_without_end_is_named(broker: Broker, topic: str) -> None:
    source = broker.source(topic, stall_seconds=3)
    broker.produce(topic, [b"a"])
    assert send(broker.address, topic, 0, split_gzip([RawRecord(b"k", b"v" * 40)] * 3, 30)) == 1
    broker.produce(topic, [b"b"])
    with pytest.raises(UnreadableRecordError, match=r"offset 1 cannot be read: its batch arrived \d+ times"):
        list(read_range(source, 0, 0, 5))
    assert find(source, 0, 5, 5) == (1, 4)
    assert [batch.column("value").to_pylist() for batch in read_range(source, 0, 4, 5)] == [[b"b"]]
