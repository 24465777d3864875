"""The reference format: any bytes of a Kafka record return unchanged, and all else in a file is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from tests.raw_lines import CONTRACT

from onceover.errors import UsageError
from onceover.lines.escapes import CorruptLineError, escape_headers, unescape_headers
from onceover.lines.line_format import (
    ID,
    LONGEST_COLUMNS,
    MAX_EPOCH,
    MAX_EVENT_MS,
    Line,
    decode,
    encode,
    encode_content,
)
from onceover.model.offsets import KafkaPartition
from onceover.model.record import OFFSET, Record, encode_id, parse_id

SOURCE = KafkaPartition("00c0ffee", 3)
PLAIN = Line(
    Record(SOURCE, 42, 1_357_016_400_123, b"JFK", (("trace", b"7"),), b'{"delay":2}'),
    1_357_016_400_000,
    CONTRACT,
    (b"JFK", b"2", None),
    leader_epoch=7,
)

AWKWARD = [b"\\", b"\t", b"\n", b"\r", b"\0", b"\\N", b"\\E", b"\\=", b"\\;", b"=", b";", b"\xf0", b'"']
awkward = st.lists(st.sampled_from(AWKWARD))
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
contracts = st.sampled_from([CONTRACT, "R999999999-0123456789abcdef"])
epochs = st.none() | st.integers(0, MAX_EPOCH)
lines = st.builds(
    Line,
    records,
    st.integers(0, MAX_EVENT_MS),
    contracts,
    st.none() | st.lists(nullable, max_size=3).map(tuple).filter(lambda columns: columns != (b"\\E",)),
    epochs,
) | st.builds(Line, records, st.none(), contracts, st.tuples(some_bytes), epochs)


def test_line_looks_as_documented() -> None:
    assert encode(PLAIN) == (
        b'00c0ffee-00003-0000000000000000042 00000001357016400123\tJFK\ttrace\\=7\t{"delay":2}\t'
        b"1357016400000\t0000000007\tV1-00c0ffee00c0ffee\tJFK\t2\t\\N\t709fbc0a1519cf1a"
    )


def test_hash_is_the_published_xxh3_of_all_before_it() -> None:
    assert xxhash.xxh3_64_hexdigest(b"") == "2d06800538d394c2"  # a test vector of Cyan4973/xxHash
    assert encode(PLAIN)[-16:].decode() == xxhash.xxh3_64_hexdigest(encode(PLAIN)[:-17])


def test_quarantined_line_has_dashes_for_event_time_and_a_reason() -> None:
    line = Line(Record(SOURCE, 42, -1, None, (), b"\t\n"), None, CONTRACT, (b"unparseable: a\tb",))
    assert encode(line)[:-16] == (
        rb"00c0ffee-00003-0000000000000000042 -0000000000000000001" + b"\t\\N\t\t\\t\\n"
        b"\t-------------\t----------\tV1-00c0ffee00c0ffee\tunparseable: a\\tb\t"
    )
    assert (line.reason, PLAIN.reason) == ("unparseable: a\tb", None)


def test_columns_that_are_too_long_are_left_out() -> None:
    whole = replace(PLAIN, columns=(b"x" * (LONGEST_COLUMNS - 3), b"y", b"\t"))
    assert decode(encode(whole)) == whole
    longer = replace(PLAIN, columns=(b"x" * (LONGEST_COLUMNS - 3), b"yy", b"\t"))
    assert decode(encode(longer)) == replace(PLAIN, columns=None)
    assert rb"ffee\tx"[:4] + b"\t\\E\t" in encode(longer)


@given(lines)
def test_bytes_of_any_record_return_unchanged_from_one_line(line: Line) -> None:
    data = encode(line)
    assert decode(data) == line
    assert b"\n" not in data
    assert b"\r" not in data


@given(records, records)
def test_lines_of_two_records_always_differ(one: Record, other: Record) -> None:
    assert (encode_content(one) == encode_content(other)) == (one == other)


def test_null_is_neither_empty_nor_the_text_that_writes_null() -> None:
    values = [None, b"", rb"\N", b"N"]
    written = {encode_content(Record(SOURCE, 0, 0, key, (), value)) for key in values for value in values}
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
    """Return the line with another field, under a hash that is right again."""
    body = (data[: part.start] + field + data[part.stop :])[:-17]
    return b"%b\t%016x" % (body, xxhash.xxh3_64_intdigest(body))


def test_truncation_is_always_noticed_and_named() -> None:
    data = encode(PLAIN)
    for length in range(len(data)):
        with pytest.raises(CorruptLineError, match=rf"^a line of {length} bytes is corrupt: "):
            decode(data[:length])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b"\tV1-00c0ffee00c0ffee\t1\t2", b"", "lacks fields"),
        (b"\ttrace\\=7\t", b"\ttrace\t", "a header has no value"),
        (b"\tJFK\t", b"\t\\q\t", "its escapes are not the ones that Onceover writes"),
        (b'\t{"delay":2}\t', b"\tv\\\t", "its escapes are not the ones that Onceover writes"),
        (b"\tV1-", b"\tW1-", "does not name a contract"),
        (b"\t1357016400000\t", b"\t135701640000x\t", "is not an event time"),
        (b"\t1357016400000\t", b"\t-------------\t", "either an event time or a reason"),
    ],
)
def test_foreign_line_is_corrupt_although_its_hash_is_right(old: bytes, new: bytes, problem: str) -> None:
    data = encode(replace(PLAIN, columns=(b"1", b"2")))
    at = data.index(old)
    with pytest.raises(CorruptLineError, match=problem):
        decode(forge(data, slice(at, at + len(old)), new))


@pytest.mark.parametrize("event_ms", [-1, MAX_EVENT_MS + 1])
def test_event_time_outside_its_field_is_refused(event_ms: int) -> None:
    with pytest.raises(UsageError, match="quarantine the record"):
        replace(PLAIN, event_ms=event_ms)


def test_line_has_either_an_event_time_or_a_reason() -> None:
    for columns in (None, (), (None,), (b"unparseable", b"x")):
        with pytest.raises(UsageError, match="either"):
            Line(PLAIN.record, None, CONTRACT, columns)


def test_contract_of_another_form_is_refused() -> None:
    with pytest.raises(UsageError, match="does not name a contract"):
        replace(PLAIN, contract="V0-00c0ffee00c0ffee")
