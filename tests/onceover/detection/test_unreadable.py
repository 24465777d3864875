"""Offsets that a person declares unreadable: only those on which reads fail while Kafka answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from onceover.detection import holes
from onceover.errors import UnreachableError, UsageError
from onceover.kafka.topic import TopicFacts
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.stopped_range import StoppedRange

SOURCE = KafkaPartition("0a1b2c3d", 0)
BAD = (12, 13, 14, 17)


class Broker:
    """A log of [0, 20) whose offsets 12 to 14, and 17, no reader gets."""

    is_up = True

    def find_unreadable(self, source: object, offsets: OffsetRange, log_end: int) -> StoppedRange | None:
        if not self.is_up:
            raise UnreachableError("nothing arrived")
        bad = [offset for offset in range(offsets.start, offsets.end) if offset in BAD]
        end = next((o for o in range(bad[0], log_end) if o not in BAD), log_end) if bad else 0
        return StoppedRange(OffsetRange(SOURCE, bad[0], end), "bad compression") if bad else None

    @contextmanager
    def open(self, context: object) -> Iterator[Any]:
        if not self.is_up:
            raise UnreachableError("Kafka does not answer")
        facts = TopicFacts("topic", "id", SOURCE.generation, {0: 0}, {0: 20}, {0: 7})
        yield SimpleNamespace(source=None, facts=facts)


class Probe:
    """The log's records from 15 on are of leader epoch 4, and there is none at its end."""

    def __init__(self, source: object, kafka_partition: int, end: int) -> None: ...

    def find_epoch(self, offset: int) -> tuple[int, int] | None:
        return (offset, 4) if offset < 19 else None

    def close(self) -> None: ...


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(holes, "_open_log", made.open)
    monkeypatch.setattr(holes, "find_unreadable", made.find_unreadable)
    stopped = [StoppedRange(OffsetRange(SOURCE, 4, 6), "a bomb"), StoppedRange(OffsetRange(SOURCE, 14, 30), "another")]
    monkeypatch.setattr(holes, "list_stopped", lambda *_: stopped)
    monkeypatch.setattr(holes, "LogProbe", Probe)
    monkeypatch.setattr("onceover.ledger.frontiers.read_holes", lambda *_: [OffsetRange(SOURCE, 10, 14)])
    return made


def require(start: int, end: int) -> int:
    context: Any = SimpleNamespace(ledger=None, name="flights")
    return holes._require_unreadable(context, OffsetRange(SOURCE, start, end))


@pytest.mark.parametrize("span", [(12, 15), (13, 14), (14, 15)])
def test_span_on_which_reads_fail_is_unreadable(broker: Broker, span: tuple[int, int]) -> None:
    assert require(*span) == 4, "the leader epoch of the next record"


def test_last_span_of_a_log_is_of_its_leader_epoch(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BAD", (19,))
    assert require(19, 20) == 7


@pytest.mark.parametrize(
    ("span", "words"),
    [
        ((11, 15), "offset 11 of .* can be read"),
        ((12, 16), "offset 15 of .* can be read"),
        ((12, 18), "offset 15 of .* can be read"),
        ((9, 15), "is not all in a hole.* waits before 0a1b2c3d-0:4-6, 0a1b2c3d-0:14-30; see `onceover doctor`"),
        ((4, 6), "offset 4 of .* can be read"),
        ((12, 21), "does not hold all of"),
    ],
)
def test_other_spans_are_refused_with_the_way_out(broker: Broker, span: tuple[int, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        require(*span)


def test_read_that_fails_without_kafka_proves_nothing(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def go_down(*_: object) -> StoppedRange:
        broker.is_up = False
        raise UnreachableError("nothing arrived")

    monkeypatch.setattr(holes, "find_unreadable", go_down)
    with pytest.raises(UnreachableError):
        require(12, 15)
