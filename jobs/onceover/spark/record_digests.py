"""Digests of records in DataFrames, by the kernels of `onceover.lines`."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from onceover.model.digest import HALVES


def hash_content() -> Column:
    """Return a record's halves as 32 hex digits, by which a person names a content; the hash covers the ID too."""
    return F.lower(F.concat(*(F.lpad(F.hex(half), 8, "0") for half in HALVES)))


def aggregate_digest() -> tuple[Column, ...]:
    """The aggregates records, high1, low1, high2, low2 of rows with a digest's halves: the fields of a `Digest`, zeros
    for no rows."""
    sums = (F.coalesce(F.sum(half), F.lit(0)).alias(half) for half in HALVES)
    return (F.count(F.lit(1)).alias("records"), *sums)
