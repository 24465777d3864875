"""Step 3's append: a batch shuffled by window, each window's records framed and appended by one task, the landings
collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby, pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceover.errors import TransientError
from onceover.lines.frame import frame
from onceover.lines.sums import count_all
from onceover.model.batch import Landing, LandingPart
from onceover.model.digest import HALVES, Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.window import from_ms
from onceover.raw.layout import Layout
from onceover.raw.window_files import LeaseHeldError, WindowFiles

_RESULT = (
    "window_ms bigint, byte_start bigint, byte_end bigint, proved boolean, kafka_partition int, "
    "records bigint, high1 bigint, low1 bigint, high2 bigint, low2 bigint, error string, held_path string"
)
_SCHEMA = pa.schema(
    [("window_ms", pa.int64()), ("byte_start", pa.int64()), ("byte_end", pa.int64()), ("proved", pa.bool_())]
    + [("kafka_partition", pa.int32()), ("records", pa.int64())]
    + [(name, pa.int64()) for name in HALVES]
    + [("error", pa.string()), ("held_path", pa.string())]
)


RECORD: Final = ("kafka_partition", "offset", "kafka_timestamp", "key", "headers", "value", "event_ms")
REASON: Final = "reason"


@dataclass(frozen=True, slots=True)
class Framing:
    """What a batch's lines have in common: the generation, the contract's name, and the `inputs` of its keys and
    measures, the columns of each line."""

    generation: str
    contract: str
    inputs: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (REASON, *self.inputs)


class AppendFailedError(TransientError):
    """An append of this batch failed; `held_paths` are files whose lease a dead writer may still hold."""

    def __init__(self, message: str, held_paths: tuple[str, ...]) -> None:
        super().__init__(message)
        self.held_paths = held_paths


def append_batch(
    records: DataFrame, address: str, layout: Layout, quarantine_day: date, framing: Framing, tasks: int
) -> list[Landing]:
    """Append every record to its window's file, or to the day's quarantine file; returns the landings.

    Takes window_ms (null: quarantine) and the columns of `RECORD` and `framing`. The digests of a landing are computed
    from the bytes that are sent. Raises AppendFailedError if any append failed; others may have happened.
    """
    placed = (
        records.select("window_ms", *RECORD, *framing.columns)
        .repartition(tasks, "window_ms")
        .sortWithinPartitions("window_ms")
        .select("window_ms", *RECORD, *(F.col(name).cast("string") for name in framing.columns))
    )
    rows = placed.mapInArrow(_make_appender(address, layout, quarantine_day, framing), _RESULT).collect()
    errors = [row for row in rows if row.error]
    if errors:
        raise AppendFailedError(errors[0].error, tuple(row.held_path for row in errors if row.held_path))
    parts_by_range: dict[tuple[int | None, int, int, bool], list[LandingPart]] = {}
    for row in rows:
        part = LandingPart(
            KafkaPartition(framing.generation, row.kafka_partition),
            Digest(row.records, row.high1, row.low1, row.high2, row.low2),
        )
        parts_by_range.setdefault((row.window_ms, row.byte_start, row.byte_end, row.proved), []).append(part)
    return [
        Landing(
            window_start=None if window_ms is None else from_ms(window_ms),
            quarantine_day=quarantine_day if window_ms is None else None,
            byte_start=start,
            byte_end=end,
            proved=proved,
            parts=tuple(parts),
        )
        for (window_ms, start, end, proved), parts in parts_by_range.items()
    ]


@dataclass(slots=True)
class _Tally:
    """Counts and digests by Kafka partition of one append's records."""

    sums: dict[int, np.ndarray] = field(default_factory=dict)

    def add(self, piece: pa.RecordBatch, parts: np.ndarray) -> None:
        partitions = piece.column("kafka_partition").to_numpy()
        for kafka_partition in np.unique(partitions):
            selected = partitions == kafka_partition
            sums = count_all(parts[selected])
            earlier = self.sums.get(int(kafka_partition))
            self.sums[int(kafka_partition)] = sums if earlier is None else earlier + sums


def _make_appender(
    address: str, layout: Layout, quarantine_day: date, framing: Framing
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def append(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = WindowFiles(address, layout)  # a session must not cross a fork
        for window_ms, pieces in groupby(_split_by_window(batches), key=lambda pair: pair[0]):
            path = (
                layout.quarantine_file(quarantine_day) if window_ms is None else layout.window_file(from_ms(window_ms))
            )
            tally = _Tally()
            try:
                done = files.append(path, _stream((piece for _, piece in pieces), tally, framing))
            except TransientError as error:
                held = error.path if isinstance(error, LeaseHeldError) else None
                yield _make_batch([(window_ms, None, None, None, None, None, None, None, None, None, str(error), held)])
                return  # the attempt has failed: more appends would only make more to repair
            yield _make_batch(
                [
                    (window_ms, done.start, done.end, done.proved, kafka_partition, *map(int, sums), None, None)
                    for kafka_partition, sums in sorted(tally.sums.items())
                ]
            )

    return append


def _stream(pieces: Iterator[pa.RecordBatch], tally: _Tally, framing: Framing) -> Iterator[memoryview]:
    """Yield the bytes of one append, tallying each piece."""
    yield memoryview(b"\n")  # keeps a torn tail apart from the first line
    for piece in pieces:
        in_quarantine = piece.column("window_ms")[0].as_py() is None
        columns = (REASON,) if in_quarantine else framing.inputs
        framed = frame(piece, framing.generation, framing.contract, columns)
        tally.add(piece, framed.parts)
        yield framed.text


def _split_by_window(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """Cut each batch where the window changes. Takes rows sorted by window, nulls first."""
    for batch in batches:
        if not batch.num_rows:
            continue
        windows = batch.column("window_ms").fill_null(-1).to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(windows)) + 1).tolist(), len(windows)]
        for start, end in pairwise(cuts):
            window_ms = int(windows[start])
            yield (None if window_ms < 0 else window_ms), batch.slice(start, end - start)


def _make_batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = [pa.array(values, type=kind.type) for values, kind in zip(zip(*rows, strict=True), _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
