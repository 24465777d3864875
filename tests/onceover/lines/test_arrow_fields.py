"""The fields of lines are those of the reference, or null."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from tests.onceover.lines.test_kernels import files

from onceover.lines.arrow_fields import SCHEMA, read_fields
from onceover.lines.escapes import CorruptLineError, escape_headers
from onceover.lines.frame import hash_records, join_head
from onceover.lines.line_format import compute_digest, decode
from onceover.lines.read import read
from onceover.model.digest import HALVES


def read_all(data: bytes) -> list[dict[str, object]]:
    columns = read_fields(read(memoryview(data)), SCHEMA.names)
    rows: list[dict[str, object]] = pa.RecordBatch.from_arrays(columns, schema=SCHEMA).to_pylist()
    return rows


def list_fields(data: bytes) -> dict[str, object]:
    line = decode(data)
    record = line.record
    parts = compute_digest([record]).as_tuple()[1:]
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


def test_no_record_adds_nothing_to_a_digest() -> None:
    none = pa.RecordBatch.from_pylist([], SCHEMA)
    assert hash_records(none, "00c0ffee").shape == (0, 4)
    assert len(join_head(none, "00c0ffee")) == 0
