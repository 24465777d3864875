"""A window's records as a Parquet file, which restores every line byte for byte, and so its digest and its hash."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from onceover.lines import stored
from onceover.model.digest import HALVES, Digest
from onceover.model.record import ID_COLUMNS
from onceover.spark import lines
from onceover.spark.raw_lines import LineFile, read_raw_lines

SCHEMA = from_arrow_schema(stored.SCHEMA)
COLUMNS = tuple(SCHEMA.names)
_BOUNDED = {  # so that a reader holds some MiB of a file as it is stored, and as many rows as their mean size says
    "parquet.block.size": str(16 << 20),
    "parquet.block.size.row.check.min": "1",  # 100 records may be 3 GB
    "parquet.page.size.row.check.min": "1",
    # A value in a dictionary is not counted where it repeats.
    **{f"parquet.enable.dictionary#{name}": "false" for name in ("key", "headers", "value", "columns")},
}


def write(records: DataFrame, folder: str) -> None:
    """Write one file for each `window_ms` below the folder, in the order of IDs; overwrites the folder."""
    (
        records.select("window_ms", *COLUMNS)
        .repartition("window_ms")
        .sortWithinPartitions("window_ms", *ID_COLUMNS)
        .write.mode("overwrite")
        .options(compression="zstd", **_BOUNDED)
        .partitionBy("window_ms")
        .parquet(folder)
    )


def read_back(spark: SparkSession, folder: str) -> dict[int, Row]:
    """Return by window the digest of the intact records that `write` wrote, the file's `path` and `bytes`, and whether
    it `is_one` file."""
    window_ms = F.col("window_ms").cast("bigint").alias("window_ms")  # Spark infers its type from the folders' names
    rows = (
        spark.read.schema(SCHEMA)
        .parquet(folder)
        .select(*COLUMNS, window_ms, "_metadata.file_path", "_metadata.file_size")
        .transform(lines.hash_stored("window_ms", "file_path", "file_size"))
        .where("intact")
        .groupBy("window_ms")
        .agg(
            F.min("file_path").alias("path"),
            (F.min("file_path") == F.max("file_path")).alias("is_one"),
            F.max("file_size").alias("bytes"),
            *lines.aggregate_digest(),
        )
        .collect()  # one row a window
    )
    return {row.window_ms: row for row in rows}


def digest_files(spark: SparkSession, address: str, files: Sequence[LineFile]) -> dict[int, Digest]:
    """Return by window, its start in ms, the digest of the intact records in these files."""
    if not files:
        return {}
    rows = (
        read_raw_lines(spark, address, files, "intact", *HALVES)
        .where("intact")
        .groupBy("window_ms")
        .agg(*lines.aggregate_digest())
        .collect()  # one row a window
    )
    return {row.window_ms: Digest(row.records, row.high1, row.low1, row.high2, row.low2) for row in rows}
