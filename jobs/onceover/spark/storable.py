"""The values of keys and measures that PostgreSQL stores."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StringType, TimestampType


def list_unfit(column: Column, kind: DataType) -> list[tuple[Column, str]]:
    """Return which values of a column of this type PostgreSQL does not take, and why."""
    if isinstance(kind, StringType):
        return [(F.contains(column, F.lit("\x00")), "a NUL character"), (~F.is_valid_utf8(column), "not UTF-8")]
    if isinstance(kind, DateType):
        return [(~column.between(F.expr("DATE '0001-01-01'"), F.expr("DATE '9999-12-31'")), "outside years 1 to 9999")]
    if isinstance(kind, TimestampType):
        first, last = F.expr("TIMESTAMP '0001-01-01 00:00:00Z'"), F.expr("TIMESTAMP '9999-12-31 23:59:59.999999Z'")
        return [(~column.between(first, last), "outside years 1 to 9999")]
    return []
