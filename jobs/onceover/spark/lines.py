"""Digests of records in DataFrames, by the kernels of `onceover.lines`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from onceover.lines.stored import restore
from onceover.model.digest import HALVES


def hash_stored(*beside: str) -> Callable[[DataFrame], DataFrame]:
    """Returns, of records that `parquet.write` wrote, `intact`, the digest's halves, and the columns `beside` them."""

    def add(stored: DataFrame) -> DataFrame:
        kept = [stored.schema[name] for name in beside]
        schema = StructType(
            [*kept, StructField("intact", BooleanType()), *(StructField(half, LongType()) for half in HALVES)]
        )

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                intact, parts = restore(batch)
                added = [pa.array(intact), *(pa.array(parts[:, n].astype("int64")) for n in range(len(HALVES)))]
                yield pa.RecordBatch.from_arrays([*(batch.column(name) for name in beside), *added], schema.names)

        return stored.mapInArrow(run, schema)

    return add


def hash_content() -> Column:
    """Return a record's halves as 32 hex digits, by which a person names a content; the hash covers the ID too."""
    return F.lower(F.concat(*(F.lpad(F.hex(half), 8, "0") for half in HALVES)))


def aggregate_digest() -> tuple[Column, ...]:
    """The aggregates records, high1, low1, high2, low2 of rows with a digest's halves: the fields of a `Digest`, zeros
    for no rows."""
    sums = (F.coalesce(F.sum(half), F.lit(0)).alias(half) for half in HALVES)
    return (F.count(F.lit(1)).alias("records"), *sums)
