"""Lines of window files as DataFrames, by the kernels of `onceover.lines`, and the digests of their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from onceover.lines.fields import SCHEMA, read_fields
from onceover.lines.frame import get_data
from onceover.lines.read import read
from onceover.lines.stored import restore
from onceover.model.digest import HALVES

_FIELDS = from_arrow_schema(SCHEMA)


def parse_lines(*columns: str) -> Callable[[DataFrame], DataFrame]:
    """Replaces the text lines in `value`, which are not empty, by the named columns of `lines.fields.SCHEMA`.

    `intact` is False for what Onceover did not write, and all else is null there; nothing throws. Headers are escaped
    still, `value` is Kafka's.
    """

    def parse(lines: DataFrame) -> DataFrame:
        beside = [name for name in lines.columns if name != "value"]
        schema = StructType([*(lines.schema[name] for name in beside), *(_FIELDS[name] for name in columns)])

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield _parse(batch, beside, columns)

        return lines.withColumn("value", F.col("value").cast("binary")).mapInArrow(run, schema)

    return parse


def restore_lines(stored: DataFrame) -> DataFrame:
    """Add `intact` and the digest's halves to records that `parquet.write` wrote."""
    schema = StructType(
        [*stored.schema, StructField("intact", BooleanType()), *(StructField(half, LongType()) for half in HALVES)]
    )

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            intact, parts = restore(batch)
            added = [pa.array(intact), *(pa.array(parts[:, n].astype("int64")) for n in range(len(HALVES)))]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], [*batch.schema.names, "intact", *HALVES])

    return stored.mapInArrow(run, schema)


def not_empty() -> Column:
    """Whether the text line in `value` is one at all."""
    return F.col("value") != ""


def hash_content() -> Column:
    """Return a record's halves as 32 hex digits, by which a person names a content; the hash covers the ID too."""
    return F.lower(F.concat(*(F.lpad(F.hex(half), 8, "0") for half in HALVES)))


def aggregate_digest() -> tuple[Column, ...]:
    """The aggregates records, high1, low1, high2, low2 of rows with a digest's halves: the fields of a `Digest`, zeros
    for no rows."""
    sums = (F.coalesce(F.sum(half), F.lit(0)).alias(half) for half in HALVES)
    return (F.count(F.lit(1)).alias("records"), *sums)


def _parse(batch: pa.RecordBatch, beside: Sequence[str], columns: Sequence[str]) -> pa.RecordBatch:
    empty = pa.scalar(b"", pa.binary())
    text = pc.binary_join_element_wise(batch.column("value"), empty, pa.scalar(b"\n", pa.binary()))
    fields = read_fields(read(get_data(text)), columns)
    return pa.RecordBatch.from_arrays([*(batch.column(name) for name in beside), *fields], [*beside, *columns])
