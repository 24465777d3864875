"""The fields of lines, read from text or restored by their hash, are those of the reference, or null."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.onceover.lines.test_kernels import files
from tests.onceover.lines.test_reference import PLAIN, lines

from onceover.lines.escapes import CorruptLineError, escape_headers
from onceover.lines.fields import SCHEMA, read_fields
from onceover.lines.read import read
from onceover.lines.reference import Line, compute_digest, decode, encode
from onceover.lines.stored import hash_records, restore
from onceover.model.digest import HALVES, Digest


def read_all(data: bytes) -> list[dict[str, object]]:
    columns = read_fields(read(memoryview(data)), SCHEMA.names)
    rows: list[dict[str, object]] = pa.RecordBatch.from_arrays(columns, schema=SCHEMA).to_pylist()
    return rows


def list_fields(data: bytes) -> dict[str, object]:
    line = decode(data)
    record = line.record
    fields = data.split(b"\t")
    parts = compute_digest([record]).as_tuple()[1:]
    written = int(fields[-1], 16)
    return {
        "intact": True,
        "generation": record.source.generation,
        "kafka_partition": record.source.kafka_partition,
        "offset": record.offset,
        "event_ms": line.event_ms,
        "leader_epoch": line.leader_epoch,
        "kafka_timestamp": record.kafka_timestamp,
        "key": record.key,
        "headers": escape_headers(record.headers),
        "value": record.value,
        "quarantined_for": line.reason,
        "contract": line.contract,
        "columns": b"\t".join(fields[7:-1]),
        "hash": written - (1 << 64) if written >> 63 else written,
        **dict(zip(HALVES, parts, strict=True)),
    }


@settings(max_examples=100)
@given(files())
def test_fields_are_the_references_or_null(data: bytes) -> None:
    texts = [line for line in data.split(b"\n") if line]
    for text, row in zip(texts, read_all(data), strict=True):
        try:
            expected = list_fields(text)
        except CorruptLineError as error:  # the kernel does not check the escapes of a line forged with its hash
            forged = error.problem
        else:
            forged = ""
            assert row == expected
        if forged and "escapes" not in forged and "header" not in forged:
            assert row == dict.fromkeys(row) | {"intact": False}


@given(st.lists(lines.filter(lambda line: line.columns != ()), max_size=4))
def test_lines_restored_from_their_fields_are_intact(written: list[Line]) -> None:
    data = b"\n".join(map(encode, written))
    batch = pa.RecordBatch.from_pylist(read_all(data), SCHEMA)
    intact, parts = restore(batch)
    assert intact.tolist() == [True] * len(written)
    digest = Digest(len(written), *map(int, parts.sum(axis=0)))
    assert digest == compute_digest(line.record for line in written)


@pytest.mark.parametrize(
    ("name", "value"),
    [("offset", 43), ("event_ms", 7), ("value", b"{}"), ("contract", "V2-00c0ffee00c0ffee"), ("columns", b"1"),
     ("hash", 5), ("generation", "00c0ffef"), ("key", None)],
)  # fmt: skip
def test_changed_field_is_not_intact(name: str, value: object) -> None:
    (row,) = read_all(encode(PLAIN))
    intact, _ = restore(pa.RecordBatch.from_pylist([row | {name: value}, row], SCHEMA))
    assert intact.tolist() == [False, True]


def test_no_record_adds_nothing_to_a_digest() -> None:
    none = pa.RecordBatch.from_pylist([], SCHEMA)
    assert hash_records(none, "00c0ffee").shape == (0, 4)
    assert restore(none)[1].shape == (0, 4)
