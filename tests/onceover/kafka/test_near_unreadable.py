"""Reads near offsets that no reader gets: these, and no others, in a process that may die of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from onceover.errors import UnreadableRecordError
from onceover.kafka import guarded_read, hole_probe, log_probe
from onceover.kafka.guarded_read import cut_at_unreadable, read_with_care
from onceover.kafka.hole_probe import find_empty, find_gaps
from onceover.kafka.log_probe import LogProbe
from onceover.kafka.reader import READ_AHEAD, KafkaSource, LogReader
from onceover.kafka.topic import TopicFacts
from onceover.model.gap import Gap, Reason
from onceover.model.offsets import KafkaPartition, OffsetRange

SOURCE = KafkaPartition("0a1b2c3d", 0)
FACTS = TopicFacts("things", "id", SOURCE.generation, {0: 0}, {0: 400})
FAR = 3 * READ_AHEAD


def of(start: int, end: int) -> OffsetRange:
    return OffsetRange(SOURCE, start, end)


def make_source(*bad: tuple[int, int]) -> KafkaSource:
    return KafkaSource("127.0.0.1:9", "things", "id", unreadable=tuple(of(*each) for each in bad))


def make_batch(offsets: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"offset": offsets, "leader_epoch": [offset // 100 for offset in offsets]})


class Log:
    """A double of a reader, of a log whose records at offsets that end in 9 are markers; no reader gets 30 and 31."""

    def __init__(self, source: KafkaSource) -> None:
        self.source = source

    def read(self, kafka_partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        for offset in (each for each in range(start, end) if each % 10 != 9):
            if offset in (30, 31):
                raise UnreadableRecordError("a bomb", offset)
            yield make_batch([offset])

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("bad", "read", "pieces"),
    [
        ([], (0, 10), [(0, 10, False)]),
        ([(FAR, FAR + 1)], (0, FAR), [(0, FAR - READ_AHEAD, False), (FAR - READ_AHEAD, FAR, True)]),
        ([(FAR, FAR + 1)], (FAR + 1, FAR + 9), [(FAR + 1, FAR + 9, False)]),
        ([(FAR, FAR + 1)], (FAR - 1, FAR + 9), [(FAR - 1, FAR + 1, True), (FAR + 1, FAR + 9, False)]),
        ([(3, 4), (7, 8)], (0, 9), [(0, 8, True), (8, 9, False)]),
        ([(3, 4)], (2, 2), []),
        ([], (2, 2), []),
    ],
)
def test_only_what_is_near_is_read_with_care(
    bad: list[tuple[int, int]], read: tuple[int, int], pieces: list[tuple[int, int, bool]]
) -> None:
    assert cut_at_unreadable(make_source(*bad), 0, *read) == pieces
    assert cut_at_unreadable(make_source(*bad), 1, 0, 9) == [(0, 9, False)], "another Kafka partition"
    careful = replace(make_source(*bad), one_batch_a_fetch=True)
    assert cut_at_unreadable(careful, 0, 5, 9) == [(5, 9, True)]


def test_pieces_are_read_in_order_by_their_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[tuple[str, int, int]] = []

    def note(how: str) -> Any:
        def read(*wanted: Any) -> Iterator[pa.RecordBatch]:
            reads.append((how, *wanted[-2:]))
            yield make_batch([wanted[-2]])

        return read

    monkeypatch.setattr(guarded_read, "read_guarded", note("guarded"))
    log: Any = SimpleNamespace(source=make_source((FAR, FAR + 1)), read=note("plain"))
    assert [batch["offset"].to_pylist() for batch in read_with_care(log, 0, 5, FAR)] == [[5], [FAR - READ_AHEAD]]
    assert reads == [("plain", 5, FAR - READ_AHEAD), ("guarded", FAR - READ_AHEAD, FAR)]


def test_holes_are_explained_around_unreadable_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hole_probe, "LogReader", Log)
    monkeypatch.setattr(guarded_read, "read_guarded", lambda source, *wanted: Log(source).read(*wanted))
    holes = [of(18, 20), of(38, 41)]
    lost = [Gap(of(at, at + 1), Reason.LOST) for at in (18, 38, 40)]
    marker = [Gap(of(at, at + 1), Reason.MARKER) for at in (19, 39)]
    known = make_source((30, 32))
    assert find_gaps(known, FACTS, holes, compacted=False) == tuple(sorted(lost + marker))
    assert find_empty(known, FACTS, holes) == (of(19, 20), of(39, 40))
    with pytest.raises(UnreadableRecordError):
        find_gaps(known, FACTS, [of(29, 33)], compacted=False)


def test_probe_reads_near_unreadable_offsets_with_care(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded: list[tuple[int, int]] = []

    def read(source: KafkaSource, kafka_partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        guarded.append((start, end))
        yield from Log(source).read(kafka_partition, start, end)

    monkeypatch.setattr(log_probe, "read_guarded", read)
    monkeypatch.setattr(LogProbe, "_read_plainly", lambda self, offset: (offset, 7))
    probe = LogProbe(make_source((30, 32), (120, 121)), 0, 400)
    assert [probe.find_epoch(offset) for offset in (28, 29, 30, 119)] == [(28, 0), (32, 0), (32, 0), (121, 7)]
    assert guarded == [(28, 30), (29, 30), (32, 120), (119, 120)]
    assert LogProbe(make_source((30, 32)), 1, 400).find_epoch(28) == (28, 7)


def test_record_beside_an_unreadable_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader makes one batch of what arrives at once: 90 is read by itself once 91 is known."""

    def read(log: object, kafka_partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        if start <= 91 < end:
            raise UnreadableRecordError("beyond 32 MiB", 91)
        yield make_batch([start])

    monkeypatch.setattr(LogReader, "read_at_once", read)
    probe = LogProbe(make_source(), 0, 400)
    assert [probe.find_epoch(offset) for offset in (90, 91, 92)] == [(90, 0), (92, 0), (92, 0)]
