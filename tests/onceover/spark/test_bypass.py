"""What goes past Spark's rows comes back to the rows that it is of, or the batch fails."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.errors import TransientError
from onceover.kafka.record_batch import SCHEMA
from onceover.spark.bypass import BYPASS, END_OFFSET, RECORDS_OFFSET, pack, rejoin

ROWS = pa.schema([("offset", pa.int64()), (BYPASS, pa.string()), ("event_ms", pa.int64())])


def pack_row(kafka_partition: int, offsets: list[int]) -> dict[str, Any]:
    known = [{"kafka_partition": kafka_partition, "offset": n, "leader_epoch": n % 3 or None} for n in offsets]
    content = pa.array([b"\xff%d" % n for n in offsets], pa.binary())
    return {"offset": RECORDS_OFFSET, BYPASS: pack(pa.RecordBatch.from_pylist(known, SCHEMA), content).to_pybytes()}


def make_rows(offsets: list[int]) -> list[dict[str, Any]]:
    return [{"offset": n, "event_ms": n // 10} for n in offsets]


def run(rows: list[dict[str, Any]], cuts: list[int]) -> list[Any]:
    """Return what comes of these rows, cut into batches there."""
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    schema = ROWS.set(1, pa.field(BYPASS, pa.binary()))  # as Spark hands on a string of any bytes
    found: list[Any] = []
    batches = (pa.RecordBatch.from_pylist(rows[a:b], schema) for a, b in pairwise(bounds))
    for part in rejoin(batches):
        found += [part] if isinstance(part, bytes) else part.to_pylist()
    return found


@given(st.lists(st.lists(st.integers(0, 2**63 - 2), unique=True, max_size=6), max_size=5), st.data())
def test_rows_get_their_own_back(stretches: list[list[int]], data: st.DataObject) -> None:
    rows, expected = list[dict[str, Any]](), list[Any]()
    for kafka_partition, offsets in enumerate(stretches):
        kept = data.draw(st.lists(st.sampled_from(offsets), unique=True)) if offsets else []
        rows += [pack_row(kafka_partition, offsets), *make_rows(kept)]
        expected += [
            {"kafka_partition": kafka_partition, "leader_epoch": n % 3 or None, "offset": n, "content": b"\xff%d" % n,
             "event_ms": n // 10} for n in kept
        ]  # fmt: skip
        if data.draw(st.booleans()):
            rows.append({"offset": END_OFFSET, BYPASS: b"end %d" % kafka_partition})
            expected.append(b"end %d" % kafka_partition)
    assert run(rows, data.draw(st.lists(st.integers(0, 40), max_size=6))) == expected


@pytest.mark.parametrize(
    "rows",
    [
        make_rows([1]),
        [pack_row(0, [1, 2]), *make_rows([1, 2, 3])],
        [pack_row(0, [1]), pack_row(0, [2]), *make_rows([1, 2])],
        [pack_row(0, [1]), {"offset": END_OFFSET, BYPASS: b"end"}, *make_rows([1])],
    ],
)
def test_row_without_its_own_fails_the_batch(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(TransientError, match="the batch is read again"):
        run(rows, [])
