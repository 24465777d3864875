"""A window's records as a Parquet file, which restores every line byte for byte, and so its digest and its hash."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from onceover.lines import stored
from onceover.model.digest import Digest
from onceover.model.record import ID_COLUMNS
from onceover.spark import lines
from onceover.spark.text_files import PLACES

SCHEMA = from_arrow_schema(stored.SCHEMA)
COLUMNS = tuple(SCHEMA.names)
_BOUNDED = {  # so that a reader holds some MiB of a file as it is stored, and as many rows as their mean size says
    "parquet.block.size": str(16 << 20),
    "parquet.block.size.row.check.min": "1",  # 100 records may be 3 GB
    "parquet.page.size.row.check.min": "1",
    # A value in a dictionary is not counted where it repeats.
    **{f"parquet.enable.dictionary#{name}": "false" for name in ("key", "headers", "value", "columns")},
}


def read_parquet(spark: SparkSession, files: Mapping[int, str]) -> DataFrame:
    """Read these files' records with the columns of parsed lines, `intact` and the digest's halves included; `files`
    are paths by the windows' starts in ms, which become `window_ms`."""
    places = spark.createDataFrame([(path, ms) for ms, path in files.items()], PLACES)
    return (
        spark.read.schema(SCHEMA)
        .parquet(*files.values())
        .select(*COLUMNS, F.col("_metadata.file_path"))
        .join(F.broadcast(places), "file_path")
        .drop("file_path")
        .transform(lines.restore_lines)
    )


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
        .transform(lines.restore_lines)
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


def digest_files(spark: SparkSession, files: Mapping[int, str]) -> dict[int, Digest]:
    """Return by window, its start in ms, the digest of the intact records in these files."""
    rows = (
        read_parquet(spark, files)
        .where("intact")
        .groupBy("window_ms")
        .agg(*lines.aggregate_digest())
        .collect()  # one row a window
    )
    return {row.window_ms: Digest(row.records, row.high1, row.low1, row.high2, row.low2) for row in rows}
