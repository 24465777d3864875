"""Compacted files, written and read back by tasks: the lines of each window that count, in the order of IDs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover.errors import UnknownOutcomeError
from onceover.lines.frame import get_data
from onceover.model.digest import HALVES, Digest
from onceover.model.raw_file import COMPACTED
from onceover.raw.store import open_store
from onceover.raw.zstd_file import compress_lines
from onceover.spark.raw_lines import LineFile, read_raw_lines

_WRITTEN = "window_ms bigint, path string, length bigint"


def write(selected: DataFrame, address: str, folder: str) -> list[LineFile]:
    """Write these lines, in the columns of `fold_tasks.LINE`, to the raw store at that address: a file for each
    window, of a new name below the folder. Return the files; one that a task did not complete is not among them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = open_store(address)
        for window_ms, pieces in groupby(_cut_windows(batches), itemgetter(0)):
            path = f"{folder}/{window_ms}.{uuid.uuid4().hex}{COMPACTED}"
            appended = store.append(path, compress_lines(text for _, text in pieces))
            if not appended.proved:
                raise UnknownOutcomeError(f"{path} may not be whole; compact the window again")
            yield pa.RecordBatch.from_pydict({"window_ms": [window_ms], "path": [path], "length": [appended.end]})

    in_order = selected.repartition("window_ms").sortWithinPartitions("window_ms", "source", "offset")
    rows = in_order.select("window_ms", "line").mapInArrow(run, _WRITTEN).collect()  # one row a window
    return [LineFile(*row) for row in rows]


def digest_files(spark: SparkSession, address: str, files: Sequence[LineFile]) -> dict[int, Digest]:
    """Return by window, its start in ms, the digest of the intact records in these files."""
    if not files:
        return {}
    rows = (
        read_raw_lines(spark, address, files, "intact", *HALVES)
        .where("intact")
        .groupBy("window_ms")
        .agg(*aggregate_digest())
        .collect()  # one row a window
    )
    return {row.window_ms: Digest(row.records, row.high1, row.low1, row.high2, row.low2) for row in rows}


def aggregate_digest() -> tuple[Column, ...]:
    """Return the aggregates records, high1, low1, high2, low2 of rows with a digest's halves: the fields of a `Digest`,
    zeros for no rows."""
    sums = (F.coalesce(F.sum(half), F.lit(0)).alias(half) for half in HALVES)
    return (F.count(F.lit(1)).alias("records"), *sums)


def _cut_windows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, memoryview]]:
    """Yield the lines of each batch with their newlines, and their window, which these lines have in common."""
    nothing, newline = pa.scalar(b"", pa.binary()), pa.scalar(b"\n", pa.binary())
    for batch in batches:
        windows = batch.column("window_ms").to_numpy()
        bounds = [0, *(np.flatnonzero(np.diff(windows)) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(bounds):
            if start < end:
                ended = pc.binary_join_element_wise(batch.column("line")[start:end], nothing, newline)
                yield int(windows[start]), get_data(ended)
