"""The search of one file's bytes for lines of given offsets, against the reference that decodes every line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.raw_lines import date_record, quarantine_record

from onceover.detection.raw_search import find_offsets
from onceover.lines import reference
from onceover.lines.line_file import PlacedLine, decode_file, join_append, split_at_lines
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.record import Record

ONE, OTHER = KafkaPartition("00c0ffee", 0), KafkaPartition("00c0ffee", 1)


def encode(source: KafkaPartition, offset: int, value: bytes = b"{}") -> bytes:
    return reference.encode(date_record(Record(source, offset, 0, None, (), value), 1_000))


def cut(content: bytes, size: int) -> Iterator[bytes]:
    return (content[at : at + size] for at in range(0, len(content), size))


FILE = (
    join_append([encode(ONE, n) for n in (5, 900, 12, 1_000, 12)] + [encode(OTHER, 12)]) + b"\ntorn " + encode(ONE, 13)
)


@pytest.mark.parametrize("size", [1, 7, 200, 100_000])
@pytest.mark.parametrize(
    "wanted", [[(12, 13)], [(0, 6), (900, 901)], [(13, 900)], [(0, 10**15)], [(6, 12), (13, 14), (1_000, 1_001)]]
)
def test_search_finds_what_decoding_finds(size: int, wanted: list[tuple[int, int]]) -> None:
    ranges = [OffsetRange(ONE, start, end) for start, end in wanted]
    intact = [each.line.record for each in decode_file([FILE]) if isinstance(each, PlacedLine)]
    expected = [
        OffsetRange(ONE, r.offset, r.offset + 1)
        for r in intact
        if r.source == ONE and any(start <= r.offset < end for start, end in wanted)
    ]
    assert list(find_offsets(cut(FILE, size), ranges)) == expected


def test_damaged_line_and_id_within_a_value_are_not_found() -> None:
    damaged = encode(ONE, 3).replace(b"{}", b"[]")
    quoting = encode(ONE, 4, encode(ONE, 3))
    assert list(find_offsets([join_append([damaged, quoting])], [OffsetRange(ONE, 3, 4)])) == []


def test_quarantine_holds_only_lines_without_an_event_time() -> None:
    """A repair adopts no other line from quarantine, so that none may refuse a loss for ever."""
    dated = encode(ONE, 3)
    undated = reference.encode(quarantine_record(Record(ONE, 4, 0, None, (), b"{}"), "no event time"))
    wanted = [OffsetRange(ONE, 3, 5)]
    assert list(find_offsets([join_append([dated, undated])], wanted, quarantined=True)) == [OffsetRange(ONE, 4, 5)]
    assert list(find_offsets([join_append([dated])], wanted)) == [OffsetRange(ONE, 3, 4)]


def test_last_line_without_a_newline_is_found() -> None:
    assert list(find_offsets([encode(ONE, 3)], [OffsetRange(ONE, 3, 4)])) == [OffsetRange(ONE, 3, 4)]


def test_line_that_is_too_long_hides_no_other() -> None:
    content = b"x" * 300 + encode(ONE, 2) + b"\n" + encode(ONE, 3) + b"\n"
    damaged, intact = b"".join(split_at_lines(cut(content, 50), longest=200)).splitlines()
    assert damaged.startswith(b"?")
    assert intact == encode(ONE, 3)
