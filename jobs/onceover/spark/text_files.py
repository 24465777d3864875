"""The parsed lines of window files and quarantine files, each with its window."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover.spark import lines

PLACES = "file_path string, window_ms bigint"
QUARANTINE = -1
"""The `window_ms` of lines in quarantine: no window starts before 1970."""


def read_text(spark: SparkSession, files: Collection[tuple[int, str]], *columns: str) -> DataFrame:
    """Read these columns of the files' lines as `lines.parse_lines` does, with `window_ms`. `files` are the windows'
    starts in ms, or QUARANTINE, with the paths."""
    places = spark.createDataFrame([(path, window_ms) for window_ms, path in files], PLACES)
    return (
        spark.read.text([path for _, path in files], lineSep="\n")
        .select("value", F.col("_metadata.file_path"))
        .where(lines.not_empty())
        .join(F.broadcast(places), "file_path")
        .drop("file_path")
        .transform(lines.parse_lines(*columns))
    )
