"""The kernels do to many lines what the reference does to one, over generated and hostile bytes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.onceover.lines.test_line_format import AWKWARD, epochs
from tests.onceover.lines.test_line_format import records as any_records

from onceover.lines.columns import read_columns
from onceover.lines.escapes import CorruptLineError, escape_headers
from onceover.lines.frame import add_value, frame_content, join_head
from onceover.lines.line_format import (
    MAX_EPOCH,
    MAX_EVENT_MS,
    Line,
    compute_digest,
    decode,
    encode,
)
from onceover.lines.read import Lines, read
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record

GENERATION, CONTRACT = "00c0ffee", "V1-00c0ffee00c0ffee"
TYPES = {"a": pa.string(), "b": pa.int64()}

texts = (
    st.none()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["", "\\N", "\\", "\t", "\n", "\r", '"', "\\E"])
)
integers = st.none() | st.integers(-(2**63), 2**63 - 1)
records = any_records.map(lambda r: replace(r, source=KafkaPartition(GENERATION, r.source.kafka_partition)))


def _to_bytes(value: object) -> bytes | None:
    return None if value is None else str(value).encode()


placed = st.builds(
    lambda record, event_ms, a, b, epoch: Line(record, event_ms, CONTRACT, (_to_bytes(a), _to_bytes(b)), epoch),
    records,
    st.integers(0, MAX_EVENT_MS),
    texts,
    integers,
    epochs,
)
quarantined = st.builds(
    lambda r, reason, epoch: Line(r, None, CONTRACT, (reason.encode(),), epoch),
    records,
    st.text("ab\t\\", max_size=9),
    epochs,
)


def _frame(lines: list[Line]) -> bytes:
    """Frame lines that all have event times, or all are in quarantine."""
    columns = list(zip(*(line.columns or () for line in lines), strict=True))
    names = ["a", "b"][: len(columns)]
    batch = pa.record_batch(
        {
            "kafka_partition": pa.array([line.record.source.kafka_partition for line in lines], pa.int32()),
            "offset": pa.array([line.record.offset for line in lines], pa.int64()),
            "kafka_timestamp": pa.array([line.record.kafka_timestamp for line in lines], pa.int64()),
            "key": pa.array([line.record.key for line in lines], pa.binary()),
            "headers": pa.array([escape_headers(line.record.headers) or None for line in lines], pa.binary()),
            "value": pa.array([line.record.value for line in lines], pa.binary()),
            "event_ms": pa.array([line.event_ms for line in lines], pa.int64()),
            "leader_epoch": pa.array([line.leader_epoch for line in lines], pa.int32()),
            **{name: pa.array(column, pa.binary()) for name, column in zip(names, columns, strict=True)},
        }
    )
    content = add_value(join_head(batch, GENERATION), batch["value"])
    framed = frame_content(content, batch["event_ms"], batch["leader_epoch"], CONTRACT, [batch[each] for each in names])
    digest = Digest(len(lines), *map(int, framed.parts.sum(axis=0)))
    assert digest == compute_digest(line.record for line in lines)
    return bytes(framed.text)


MANY = 120_000


def _make_bytes(some: random.Random) -> bytes:
    return b"".join(some.choices([*AWKWARD, some.randbytes(3), b"plain"], k=some.randrange(6)))


def _make_line(some: random.Random) -> Line:
    def nullable() -> bytes | None:
        return None if some.random() < 0.2 else _make_bytes(some)

    source = KafkaPartition(GENERATION, some.choice([0, 7, 99_999]))
    headers = tuple((some.choice(["", "h", "a=b;"]), nullable()) for _ in range(some.choice([0, 0, 1, 2])))
    offset, stamp = some.choice([0, 1, some.randrange(2**63 - 1), 2**63 - 2]), some.randrange(-(2**63), 2**63)
    record = Record(source, offset, stamp, nullable(), headers, nullable())
    epoch = some.choice([None, 0, 7, MAX_EPOCH])
    if some.random() < 0.2:
        return Line(record, None, CONTRACT, (some.choice([b"", b"tombstone", b"a\tb\\"]),), epoch)
    event_ms = some.choice([0, some.randrange(MAX_EVENT_MS), MAX_EVENT_MS])
    return Line(record, event_ms, CONTRACT, (nullable(), b"1"), epoch)


def _damage(data: bytes, some: random.Random) -> bytes:
    """Return the line as it is, cut, changed, changed under a right hash, or another text under one."""
    kinds = ["intact", "intact", "intact", "cut", "changed", "forged", "foreign"]
    kind, at = some.choice(kinds), some.randrange(len(data))
    if kind == "intact":
        return data
    if kind == "cut":
        return data[:at]
    changed = data[:at] + some.randbytes(some.randrange(4)) + data[at + 1 :]
    if kind == "changed":
        return changed
    body = some.randbytes(some.randrange(200)) if kind == "foreign" else changed.rpartition(b"\t")[0]
    body = body.replace(b"\n", b"")
    return b"%b\t%016x" % (body, xxhash.xxh3_64_intdigest(body))


@pytest.mark.rare
def test_more_than_100_000_lines_are_what_the_reference_says() -> None:
    some = random.Random(17)
    lines = [_make_line(some) for _ in range(MANY)]
    in_windows = [line for line in lines if line.event_ms is not None]
    for each in (in_windows, [line for line in lines if line.event_ms is None]):
        assert _frame(each) == b"".join(encode(line) + b"\n" for line in each)
    data = b"\n".join(_damage(encode(line), some) for line in lines)
    assert _compare_with_reference(data) > MANY // 3


@given(st.lists(placed, min_size=1, max_size=6) | st.lists(quarantined, min_size=1, max_size=3))
def test_framed_lines_equal_the_reference_byte_for_byte(lines: list[Line]) -> None:
    assert _frame(lines) == b"".join(encode(line) + b"\n" for line in lines)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A file of intact, torn, changed and foreign lines, some of which carry a right hash."""
    some = draw(st.randoms(use_true_random=False))
    pieces = [_damage(encode(line), some) for line in draw(st.lists(placed | quarantined, max_size=5))]
    return draw(st.sampled_from([b"", b"\n"])) + b"\n".join(pieces) + draw(st.sampled_from([b"", b"\n", b"\n\n"]))


@settings(max_examples=300)
@given(files())
def test_read_finds_the_lines_that_the_reference_decodes(data: bytes) -> None:
    _compare_with_reference(data)


def _compare_with_reference(data: bytes) -> int:
    """Assert that `read` finds what the reference decodes, and return the number of intact lines."""
    found = read(memoryview(data))
    texts = [line for line in data.split(b"\n") if line]
    assert [data[s:e] for s, e in zip(found.start, found.end, strict=True)] == texts
    for row, text in enumerate(texts):
        line = _decode(text)
        if isinstance(line, str):  # the kernel does not check the escapes of a line that is forged, hash and all
            assert not found.intact[row] or "escapes" in line or "header" in line
        else:
            assert found.intact[row]
            _assert_same(found, row, line)
    return int(found.intact.sum())


def _decode(text: bytes) -> Line | str:
    try:
        return decode(text)
    except CorruptLineError as error:
        return error.problem


def _assert_same(found: Lines, row: int, line: Line) -> None:
    assert f"{found.generation[row]:08x}" == line.record.source.generation
    assert found.kafka_partition[row] == line.record.source.kafka_partition
    assert found.offset[row] == line.record.offset
    assert found.event_ms[row] == (-1 if line.event_ms is None else line.event_ms)
    assert found.leader_epoch[row] == (-1 if line.leader_epoch is None else line.leader_epoch)
    assert found.contracts[found.contract[row]].decode() == line.contract
    assert Digest(1, *map(int, found.parts[row])) == compute_digest([line.record])


@given(st.lists(placed, min_size=1, max_size=6))
def test_columns_return_with_their_types(lines: list[Line]) -> None:
    found = read(memoryview(b"\n".join(map(encode, lines))))
    table = read_columns(found, np.arange(len(lines)), TYPES)
    assert table is not None
    assert table.schema.types == list(TYPES.values())
    expected = [line.columns for line in lines]
    assert [(_to_bytes(a), _to_bytes(b)) for a, b in zip(*table.to_pydict().values(), strict=True)] == expected


PLAIN = encode(
    Line(Record(KafkaPartition(GENERATION, 3), 42, 1_700_000_000_000, b"k", (), b"v"), 1, CONTRACT, (b"a", b"1"))
)
QUARANTINED = PLAIN.replace(b"\t0000000000001\t", b"\t-------------\t")


def _forge(line: bytes, old: bytes, new: bytes) -> bytes:
    """Return the line changed, under a hash that is right again."""
    assert old in line
    body = line.rpartition(b"\t")[0].replace(old, new, 1)
    return b"%b\t%016x" % (body, xxhash.xxh3_64_intdigest(body))


@pytest.mark.parametrize(
    "forged",
    [
        PLAIN[:-16] + PLAIN[-16:].upper(),
        _forge(PLAIN, b"0000000000000000042", b"9223372036854775808"),  # 2^63
        _forge(PLAIN, b"0000000000000000042", b"9223372036854775807"),
        _forge(PLAIN, b"0000000000000000042", b"000000000000000004x"),
        _forge(PLAIN, b"00c0ffee-", b"00C0ffee-"),
        _forge(PLAIN, b"-00003-", b"-0000a-"),
        _forge(PLAIN, b"-00003-", b"-00003 "),
        _forge(PLAIN, b" 00000001700000000000", b" -0000000000000000000"),
        _forge(PLAIN, b" 00000001700000000000", b" -9223372036854775809"),
        _forge(PLAIN, b" 00000001700000000000", b" 09223372036854775808"),
        _forge(PLAIN, b" 00000001700000000000", b" 10000001700000000000"),
        _forge(PLAIN, b"\t0000000000001\t", b"\t000000000000x\t"),
        _forge(PLAIN, b"\t0000000000001\t", b"\t001\t"),
        _forge(PLAIN, b"\t----------\t", b"\t2147483648\t"),  # 2^31
        _forge(PLAIN, b"\t----------\t", b"\t-000000001\t"),
        _forge(PLAIN, b"\t----------\t", b"\t7\t"),
        _forge(PLAIN, b"\tV1-", b"\tV0-"),
        _forge(PLAIN, b"\tV1-00c0ffee00c0ffee\ta\t1", b""),
        _forge(QUARANTINED, b"\t1", b"\t2"),  # two columns where a reason belongs
    ],
    ids=range(19),
)
def test_line_that_is_wrong_under_a_right_hash_is_not_intact(forged: bytes) -> None:
    assert isinstance(_decode(forged), str)
    found = read(memoryview(PLAIN + b"\n" + forged + b"\n" + PLAIN))
    assert found.intact.tolist() == [True, False, True]


def test_contracts_of_several_names_and_lengths_differ() -> None:
    names = [CONTRACT, "V10-00c0ffee00c0ffee", CONTRACT, "R1-00c0ffee00c0ffee"]
    texts = [_forge(PLAIN, CONTRACT.encode(), name.encode()) for name in names]
    found = read(memoryview(b"\n".join(texts)))
    assert [found.contracts[place].decode() for place in found.contract] == names
