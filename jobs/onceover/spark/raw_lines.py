"""The lines of raw's files, compacted or not, as a DataFrame: read and parsed by tasks in Python.

Spark's own text source would copy each line of 64 MiB five times in the JVM before a kernel sees it. Here the JVM has
VALUE only where it is asked for, and only as Kafka had it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from onceover.lines.arrow_fields import SCHEMA, read_fields
from onceover.lines.packing import pack
from onceover.lines.read import read
from onceover.model.raw_file import COMPACTED
from onceover.raw.frozen_file import FrozenFiles

QUARANTINE: Final = -1
"""The `window_ms` of lines in quarantine: no window starts before 1970."""
_SPLIT_BYTES: Final = 64 * 1024 * 1024
_COMPACTED_BYTES: Final = 8 * 1024 * 1024  # of some frames, which hold about eight times as much text


@dataclass(frozen=True, slots=True)
class LineFile:
    """A file of raw with its frozen length, and its window's start in ms, or QUARANTINE."""

    window_ms: int
    path: str
    length: int

    def cut(self) -> Iterator[tuple[LineFile, int, int]]:
        """Yield the bytes that one task reads: a line, or a compacted file's frame, belongs to those with its first
        byte."""
        most = _COMPACTED_BYTES if self.path.endswith(COMPACTED) else _SPLIT_BYTES
        for start in range(0, self.length, most):
            yield self, start, min(start + most, self.length)


def read_raw_lines(spark: SparkSession, address: str, files: Sequence[LineFile], *columns: str) -> DataFrame:
    """Return `window_ms` and these columns of `lines.arrow_fields.SCHEMA`, a row for each line of these files in the
    raw store at that address.

    `intact` is False for what Onceover did not write, and all else is null there. Lazy: each action reads raw again,
    and fails with what `FrozenFiles` raises.
    """
    schema = pa.schema([("window_ms", pa.int64()), *(SCHEMA.field(name) for name in columns)])
    splits = [split for file in files for split in file.cut()]
    packed = pack([end - start for _, start, end in splits], spark.sparkContext.defaultParallelism)
    planned = spark.sparkContext.broadcast([[splits[place] for place in task] for task in packed])

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _read_task(FrozenFiles(address), planned.value[number], columns, schema)

    return spark.range(0, len(packed), 1, max(len(packed), 1)).mapInArrow(run, from_arrow_schema(schema))


def _read_task(
    files: FrozenFiles, splits: Sequence[tuple[LineFile, int, int]], columns: Sequence[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for file, start, end in splits:
        for text in files.read_split(file.path, start, end, file.length):
            lines = read(text)
            window = pa.array(np.full(len(lines), file.window_ms, np.int64))
            yield pa.RecordBatch.from_arrays([window, *read_fields(lines, columns)], schema=schema)
