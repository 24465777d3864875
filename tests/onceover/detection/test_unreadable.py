"""Offsets that a person declares unreadable: only those on which reads fail while Kafka answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from onceover.detection import holes
from onceover.errors import TransientError, UnreachableError, UsageError
from onceover.kafka.topic import TopicFacts
from onceover.model.offsets import KafkaPartition, OffsetRange

SOURCE = KafkaPartition("0a1b2c3d", 0)
BAD = range(12, 15)


class Broker:
    """A log of [0, 20) whose offsets 12 to 14 no reader gets."""

    is_up = True

    def read(self, source: object, kafka_partition: int, start: int, end: int) -> Iterator[int]:
        if not self.is_up:
            raise UnreachableError("nothing arrived")
        if any(offset in BAD for offset in range(start, end)):
            raise TransientError("bad compression")
        yield from range(start, end)

    @contextmanager
    def open(self, context: object) -> Iterator[Any]:
        if not self.is_up:
            raise UnreachableError("Kafka does not answer")
        facts = TopicFacts("topic", "id", SOURCE.generation, {0: 0}, {0: 20}, {0: 7})
        yield SimpleNamespace(source=None, facts=facts)


class Probe:
    """The log's records from 15 on are of leader epoch 4, and there is none at its end."""

    def __init__(self, source: object, kafka_partition: int) -> None: ...

    def find_epoch(self, offset: int) -> tuple[int, int] | None:
        return (offset, 4) if offset < 19 else None

    def close(self) -> None: ...


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(holes, "_open_log", made.open)
    monkeypatch.setattr(holes, "read_range", made.read)
    monkeypatch.setattr(holes, "LogProbe", Probe)
    monkeypatch.setattr("onceover.ledger.frontiers.read_holes", lambda *_: [OffsetRange(SOURCE, 10, 14)])
    monkeypatch.setattr(holes, "list_to_read_again", lambda *_: [OffsetRange(SOURCE, 14, 30)])
    return made


def require(start: int, end: int) -> int:
    context: Any = SimpleNamespace(ledger=None, name="flights")
    return holes._require_unreadable(context, OffsetRange(SOURCE, start, end))


@pytest.mark.parametrize("span", [(12, 15), (13, 14), (14, 15)])
def test_span_on_which_reads_fail_is_unreadable(broker: Broker, span: tuple[int, int]) -> None:
    assert require(*span) == 4, "the leader epoch of the next record"


def test_last_span_of_a_log_is_of_its_leader_epoch(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BAD", range(19, 20))
    assert require(19, 20) == 7


@pytest.mark.parametrize(
    ("span", "words"),
    [
        ((11, 15), "offset 11 of .* can be read"),
        ((12, 16), "offset 15 of .* can be read"),
        ((9, 15), "onceover offsets flights set 0=15"),
        ((12, 21), "does not hold all of"),
    ],
)
def test_other_spans_are_refused_with_the_way_out(broker: Broker, span: tuple[int, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        require(*span)


def test_read_that_fails_without_kafka_proves_nothing(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def go_down(*_: object) -> Iterator[int]:
        broker.is_up = False
        raise UnreachableError("nothing arrived")

    monkeypatch.setattr(holes, "read_range", go_down)
    with pytest.raises(UnreachableError):
        require(12, 15)
