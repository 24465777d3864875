"""The reference format: any bytes of a Kafka record return unchanged, and all else in a file is noticed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.errors import UsageError
from onceover.model.line import (
    CRC,
    EVENT_TIME,
    ID,
    MAX_EVENT_MS,
    OFFSET,
    CorruptLine,
    CorruptLineError,
    Line,
    PlacedLine,
    Record,
    decode,
    decode_file,
    encode,
    encode_id,
    escape_headers,
    frame,
    parse_id,
    unescape_headers,
)
from onceover.model.offsets import KafkaPartition

SOURCE = KafkaPartition("00c0ffee", 3)
PLAIN = Line(Record(SOURCE, 42, 1_357_016_400_123, b"JFK", (("trace", b"7"),), b'{"delay":2}'), 1_357_016_400_000)

awkward = st.lists(st.sampled_from([b"\\", b"\t", b"\n", b"\r", b"\0", b"\\N", b"\\=", b"\\;", b"=", b";", b"\xf0"]))
some_bytes = st.binary(max_size=40) | awkward.map(b"".join)
nullable = st.none() | some_bytes
sources = st.builds(KafkaPartition, st.text("0123456789abcdef", min_size=8, max_size=8), st.integers(0, 99_999))
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(["\\=", "\\;", "\n", b"\xff"])
records = st.builds(
    Record,
    sources,
    st.integers(0, 2**63 - 2),
    st.integers(-(2**63), 2**63 - 1),
    nullable,
    st.lists(st.tuples(names, nullable), max_size=3).map(tuple),
    nullable,
)
lines = st.builds(Line, records, st.integers(0, MAX_EVENT_MS)) | st.builds(
    Line, records, st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)


def test_line_looks_as_documented() -> None:
    assert encode(PLAIN) == (
        b'00c0ffee-00003-0000000000000000042 b8878081 1357016400000 00000001357016400123\tJFK\ttrace\\=7\t{"delay":2}'
    )


def test_quarantined_line_has_dashes_for_event_time_and_a_reason() -> None:
    data = encode(Line(Record(SOURCE, 42, -1, None, (), b"\t\n"), None, "unparseable: a\tb"))
    assert data[EVENT_TIME.start :] == rb"------------- -0000000000000000001" + b"\t\\N\t\t\\t\\n\tunparseable: a\\tb"


def test_crc_is_the_published_crc_32_of_the_rest_of_the_line() -> None:
    assert zlib.crc32(b"123456789") == 0xCBF43926  # the check value of CRC-32/ISO-HDLC
    data = encode(PLAIN)
    assert int(data[CRC], 16) == zlib.crc32(data[: CRC.start] + data[CRC.stop + 1 :])


@given(lines)
def test_bytes_of_any_record_return_unchanged_from_one_line(line: Line) -> None:
    data = encode(line)
    assert decode(data) == line
    assert b"\n" not in data
    assert b"\r" not in data


@given(records, records)
def test_lines_of_two_records_always_differ(one: Record, other: Record) -> None:
    assert (encode(Line(one, 0)) == encode(Line(other, 0))) == (one == other)


def test_null_is_neither_empty_nor_the_text_that_writes_null() -> None:
    values = [None, b"", rb"\N", b"N"]
    written = {encode(Line(Record(SOURCE, 0, 0, key, (), value), 0)) for key in values for value in values}
    assert len(written) == len(values) ** 2


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        (None, b""),
        ([], b""),
        ([("a", b"1"), ("a", None)], rb"a\=1\;a\=\N"),
        ([("", b"")], rb"\="),
        ([(r"\=", rb"\;")], rb"\\=\=\\;"),
        ([(b"\xff", b"\t"), ("\n", rb"\N")], b"\xff\\=\\t\\;\\n\\=\\\\N"),
    ],
)
def test_headers_keep_their_order_their_repeats_and_their_bytes(
    headers: list[tuple[str | bytes, bytes | None]] | None, field: bytes
) -> None:
    assert escape_headers(headers) == field
    assert unescape_headers(field) == tuple(headers or ())


@given(st.lists(lines, max_size=6))
def test_lines_sort_by_their_id(written: list[Line]) -> None:
    def order(line: Line) -> tuple[KafkaPartition, int]:
        return line.record.source, line.record.offset

    by_bytes = sorted(encode(line) for line in written)
    assert [parse_id(data[ID]) for data in by_bytes] == sorted(order(line) for line in written)


@given(sources, st.integers(0, 2**63 - 1))
def test_id_is_parsed_as_it_was_written(source: KafkaPartition, offset: int) -> None:
    assert parse_id(encode_id(source, offset)) == (source, offset)


@pytest.mark.parametrize("data", [b"", b"00c0ffee-00003-000000000000000004", b"00C0FFEE-00003-0000000000000000042"])
def test_malformed_id_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="is not an ID"):
        parse_id(data)


def test_flipped_bit_is_always_noticed() -> None:
    data = encode(PLAIN)
    for position in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(CorruptLineError):
            decode(bytes(flipped))


def test_offset_whose_range_has_no_bigint_end_is_corrupt() -> None:
    """A range's end is the offset after its last, which the ledger keeps in 64 bits."""
    with pytest.raises(CorruptLineError, match="is not in 0"):
        decode(forge(encode(PLAIN), OFFSET, b"%019d" % (2**63 - 1)))
    assert decode(forge(encode(PLAIN), OFFSET, b"%019d" % (2**63 - 2))).record.offset == 2**63 - 2


def forge(data: bytes, part: slice, field: bytes) -> bytes:
    """Return the line with another field, under a CRC that is right again."""
    data = data[: part.start] + field + data[part.stop :]
    crc = b"%08x" % zlib.crc32(data[: CRC.start] + data[CRC.stop + 1 :])
    return data[: CRC.start] + crc + data[CRC.stop :]


def test_truncation_is_always_noticed_and_named() -> None:
    data = encode(PLAIN)
    for length in range(len(data)):
        with pytest.raises(CorruptLineError, match=rf"^a line of {length} bytes is corrupt: "):
            decode(data[:length])


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (b"k\th", "has 2 fields"),
        (b"k\t\tv\tw", "has 4 fields"),
        (b"k\th\tv", "a header has no value"),
        (b"k\t\t\\q", "its escapes are not the ones that Onceover writes"),
        (b"k\t\tv\\", "its escapes are not the ones that Onceover writes"),
    ],
)
def test_foreign_line_is_corrupt_although_its_crc_is_right(fields: bytes, problem: str) -> None:
    data = encode(PLAIN)
    rest = data[EVENT_TIME.start : 79] + fields
    crc = b"%08x " % zlib.crc32(data[: CRC.start] + rest)
    with pytest.raises(CorruptLineError, match=problem):
        decode(data[: CRC.start] + crc + rest)


@pytest.mark.parametrize("event_ms", [-1, MAX_EVENT_MS + 1])
def test_event_time_outside_its_field_is_refused(event_ms: int) -> None:
    with pytest.raises(UsageError, match="quarantine the record"):
        Line(PLAIN.record, event_ms)


def test_line_has_either_an_event_time_or_a_reason() -> None:
    for event_ms, reason in ((None, None), (0, "unparseable")):
        with pytest.raises(UsageError, match="either"):
            Line(PLAIN.record, event_ms, reason)


def test_append_begins_and_ends_with_a_newline_unless_empty() -> None:
    assert frame([b"a", b"b"]) == b"\na\nb\n"
    assert frame([]) == b""


@given(st.lists(lines, min_size=1, max_size=4), st.lists(lines, min_size=1, max_size=4), st.data())
def test_torn_append_costs_none_of_the_records_around_it(
    torn: list[Line], following: list[Line], data: st.DataObject
) -> None:
    append = frame(map(encode, torn))
    cut = data.draw(st.integers(0, len(append)))
    file = append[:cut] + frame(map(encode, following))
    decoded = list(decode_file(_chunks(file, data.draw(st.integers(1, 200)))))
    intact = [piece.line for piece in decoded if isinstance(piece, PlacedLine)]
    whole = append[: cut + 1].count(b"\n") - 1 if cut else 0  # the last newline need not have arrived
    assert intact == torn[: max(whole, 0)] + following
    assert len(decoded) - len(intact) <= 1


@given(st.lists(lines, max_size=5), st.integers(1, 300))
def test_file_reads_the_same_in_any_chunks_with_lines_placed(written: list[Line], size: int) -> None:
    file = b"".join(frame([encode(line)]) for line in written) + b"\n\n"
    decoded = list(decode_file(_chunks(file, size)))
    assert [piece.line for piece in decoded if isinstance(piece, PlacedLine)] == written
    for piece, line in zip(decoded, written, strict=True):
        assert file.startswith(encode(line) + b"\n", piece.position)


def test_bytes_without_a_newline_are_reported_once_not_collected() -> None:
    good = encode(PLAIN)
    file = b"x" * 1000 + b"\n" + good + b"\n" + b"y" * 999
    decoded = list(decode_file(_chunks(file, 64), longest=len(good)))
    assert decoded == [
        CorruptLine(0, 1000, "there is no newline in 1000 bytes"),
        PlacedLine(1001, PLAIN),
        CorruptLine(1002 + len(good), 999, "there is no newline in 999 bytes"),
    ]


def _chunks(file: bytes, size: int) -> Iterator[bytes]:
    return (file[start : start + size] for start in range(0, len(file), size))
