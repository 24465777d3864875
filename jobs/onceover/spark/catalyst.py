"""Spark's expressions, the trees of its optimizer Catalyst, read and made through py4j."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import DataType


def walk(expression: Any) -> Iterator[Any]:
    """Yield the expression and all below it."""
    yield expression
    for child in list_children(expression):
        yield from walk(child)


def list_children(expression: Any) -> list[Any]:
    return list_items(expression.children())


def list_items(sequence: Any) -> list[Any]:
    """Return the items of a sequence of Scala's."""
    return [sequence.apply(at) for at in range(sequence.size())]


def get_name(expression: Any) -> str:
    """Return the simple name of its class."""
    return str(expression.getClass().getSimpleName())


def get_type(expression: Any) -> DataType:
    """Return the type of an analyzed expression."""
    return DataType.fromDDL(expression.dataType().sql())


def to_column(spark: SparkSession, expression: Any) -> Column:
    jvm: Any = spark._jvm
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def to_expression(spark: SparkSession, column: Column) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)
