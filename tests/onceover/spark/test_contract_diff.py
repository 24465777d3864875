from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from tests.onceover.spark.contracts import make_contract

from onceover.config.mistakes import MistakesError
from onceover.model.contract import Key
from onceover.model.measures import DISTINCT, Derived, Measure
from onceover.spark.contract_diff import check_change

pytestmark = pytest.mark.spark
OLD = make_contract(
    schema="a INT, b DECIMAL(10, 2)",
    keys=(Key("it", "value.a"),),
    measures=(Measure("n", "count", "*"), Measure("b", "sum", "value.b")),
)


def test_other_sql_of_the_same_type_and_a_new_measure_are_fine(spark: SparkSession) -> None:
    new = replace(
        OLD,
        keys=(Key("it", "value.a + 1"),),
        measures=(
            Measure("n", "count", "value.a"),
            Measure("b", "sum", "abs(value.b)"),
            Measure("c", "max", "value.a"),
        ),
    )
    columns, retyped = check_change(spark, OLD, new, "pipelines/t.toml")
    assert (columns.names, retyped) == (("it", "n", "b", "c"), [])


def test_column_of_another_type_is_named(spark: SparkSession) -> None:
    new = replace(
        OLD,
        keys=(Key("it", "CAST(value.a AS STRING)"),),
        measures=(Measure("n", "count", "*"), Measure("b", "sum", "CAST(value.b AS DECIMAL(12, 2))")),
    )
    _, retyped = check_change(spark, OLD, new, "pipelines/t.toml")
    assert retyped == [
        "key it is of type string, not int",
        "measure b is of type decimal(12,2), not decimal(10,2)",
    ]


def test_value_by_time_of_another_type_is_named(spark: SparkSession) -> None:
    derived = (Derived("first", "min_by"),)
    old, new = (
        replace(OLD, measures=(Measure("first_record", "min_by", sql),), derived=derived)
        for sql in ("value.a", "value.b")
    )
    _, retyped = check_change(spark, old, new, "pipelines/t.toml")
    assert retyped == ["measure first is of type numeric, not integer"]


def test_sketch_of_values_of_another_type_is_named(spark: SparkSession) -> None:
    derived = (Derived("users", DISTINCT),)
    old, new, same = (
        replace(OLD, measures=(Measure("users_sketch", DISTINCT, sql),), derived=derived)
        for sql in ("value.a", "CAST(value.a AS STRING)", "value.a + 1")
    )
    _, retyped = check_change(spark, old, new, "pipelines/t.toml")
    assert retyped == ["measure users is of type string, not int"]
    assert check_change(spark, old, same, "pipelines/t.toml")[1] == []


def test_mistake_of_the_new_contract_is_reported_with_its_file(spark: SparkSession) -> None:
    with pytest.raises(MistakesError, match=r"pipelines/t\.toml: contract\.event_time"):
        check_change(spark, OLD, replace(OLD, event_time="value.nosuch"), "pipelines/t.toml")
