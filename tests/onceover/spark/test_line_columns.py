"""Columns that a task groups are what Spark groups of the same columns, of every type that a contract may have."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.onceover.spark.contracts import make_contract

from onceover.model.contract import Contracts, Key
from onceover.model.measures import DISTINCT, SKETCH_BYTES, Measure
from onceover.spark.aggregate import aggregate
from onceover.spark.line_columns import LineColumns

pytestmark = pytest.mark.spark
SCHEMA = (
    "s STRING, b BOOLEAN, y TINYINT, h SMALLINT, i INT, l BIGINT, d DECIMAL(28, 7), w DECIMAL(38, 2), day DATE, "
    "at TIMESTAMP"
)
FIELDS = ("s", "b", "y", "h", "i", "l", "d", "w", "day", "at")
SUMMED = ("y", "h", "i", "l", "d")
VALUES: dict[str, list[object]] = {
    "s": ["", "a", "A", "é", "e\u0301", "\uffff", "\U0001f600", "a ", "\\N"],
    "b": [True, False],
    "y": [-128, 127, 0],
    "h": [-(2**15), 2**15 - 1, 0],
    "i": [-(2**31), 2**31 - 1, 0],
    "l": [-(2**63), 2**63 - 1, 2**63 - 2, 0],
    "d": [Decimal("0E-7"), Decimal("-0.0000001"), Decimal("9" * 21 + "." + "9" * 7), Decimal("-" + "9" * 21)],
    "w": [Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99"), Decimal("0.00")],
    "day": [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)],
    "at": [datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)],
}


def _make_columns(spark: SparkSession, keys: tuple[str, ...]) -> LineColumns:
    measures = [Measure("n", "count", "*"), Measure("given", "count", "value.s")]
    measures += [Measure(f"least_{field}", "min", f"value.{field}") for field in FIELDS]
    measures += [Measure(f"most_{field}", "max", f"value.{field}") for field in FIELDS]
    measures += [Measure(f"sum_{field}", "sum", f"value.{field}") for field in SUMMED]
    measures += [Measure("differ_s", DISTINCT, "value.s")]
    contract = make_contract(schema=SCHEMA, measures=tuple(measures))
    contract = replace(contract, keys=tuple(Key(f"of_{key}", f"value.{key}") for key in keys))
    return LineColumns.of(spark, Contracts((contract,)))


def _draw_rows(columns: LineColumns, count: int, seed: int) -> pa.Table:
    drawn = random.Random(seed)
    rows = [{field: drawn.choice([None, *VALUES[field]]) for field in FIELDS} for _ in range(count)]
    wanted = columns.formats.schema
    found = {name: [row.get(name.partition("_")[2].partition("_")[2]) for row in rows] for name in wanted.names}
    found |= {"m_n": [1] * count, "m_given": [int(row["s"] is not None) for row in rows]}
    found |= {"m_differ_s": [drawn.choice((*[None] * 6, 0, 7, 8, SKETCH_BYTES * 8 - 1)) for _ in rows]}
    return pa.table({name: pa.array(found[name], wanted.field(name).type) for name in wanted.names}, schema=wanted)


def _list_rows(rows: DataFrame) -> tuple[list[str], list[str]]:
    return [f"{f.name} {f.dataType}" for f in rows.schema], sorted(map(str, map(tuple, rows.collect())))


def _add_window(spark: SparkSession, rows: pa.Table) -> DataFrame:
    return spark.createDataFrame(rows.combine_chunks()).selectExpr("7L AS window_ms", "*")


@pytest.mark.parametrize("keys", [(), ("s",), ("d", "b"), ("at", "w"), ("day", "l"), ("y", "h", "i")])
def test_groups_of_a_task_are_those_of_spark(spark: SparkSession, keys: tuple[str, ...]) -> None:
    columns = _make_columns(spark, keys)
    rows = _draw_rows(columns, 400, seed=len(keys))
    types, expected = _list_rows(_add_window(spark, rows).transform(aggregate(columns.contract)))
    assert _list_rows(columns.name(_add_window(spark, columns.grouping.group(rows)), [])) == (types, expected)
    parts = [columns.grouping.group(part) for part in (rows.slice(0, 150), rows.slice(150, 0), rows.slice(150))]
    joined = columns.grouping.group(pa.concat_tables(parts))
    assert _list_rows(columns.name(_add_window(spark, joined), [])) == (types, expected)


def test_no_rows_are_no_groups(spark: SparkSession) -> None:
    columns = _make_columns(spark, ())
    empty = columns.grouping.group(columns.formats.schema.empty_table())
    assert (len(empty), empty.schema) == (0, columns.grouping.schema)
