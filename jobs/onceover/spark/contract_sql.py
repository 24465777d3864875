"""The contract's SQL as columns, in which no string becomes a decimal that takes minutes to write out."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import BinaryType, StringType, StructField, StructType, TimestampType

from onceover.model.contract import Contract
from onceover.spark.json_value import blank_huge

_PARSERS = {"JsonToStructs", "CsvToStructs", "XmlToStructs", "VariantGet"}
_TEXTS = ("string", "variant", "char")


def make_visible(spark: SparkSession, contract: Contract, schema: StructType) -> DataFrame:
    """Return a frame without rows, with exactly the columns that the contract's SQL may name."""
    value = {"json": schema, "text": StringType(), "binary": BinaryType()}[contract.format]
    fields = [("key", StringType()), ("value", value), ("kafka_timestamp", TimestampType())]
    return spark.createDataFrame([], StructType([StructField(name, kind) for name, kind in fields]))


def read_sql(spark: SparkSession, seen: DataFrame, sql: str) -> Column:
    """Return the SQL over the columns of `seen`, by their names, for any frame that has them. A string that is cast to
    a decimal, also implicitly, is null if it is too large a number: one of an exponent of three digits or of more than
    a hundred digits."""
    expression = seen.select(F.expr(sql).alias("it"))._jdf.queryExecution().analyzed().expressions().apply(0)
    (of_alias,) = _list_children(expression)
    if not any(map(_is_decimal_of_string, _walk(of_alias))):
        return F.expr(sql)
    return _to_column(spark, _rewrite(spark, of_alias))


def parses_decimals(expression: Any) -> bool:
    """Return whether the analyzed expression makes decimals out of a text in another way than by a cast of a string."""
    return any(
        (_name(node) in _PARSERS or (_name(node) == "Cast" and not _is_decimal_of_string(node) and _holds_string(node)))
        and "decimal" in node.dataType().simpleString()
        for node in _walk(expression)
    )


def _is_decimal_of_string(node: Any) -> bool:
    if _name(node) != "Cast" or not node.dataType().simpleString().startswith("decimal"):
        return False
    return any(child.dataType().simpleString() == "string" for child in _list_children(node))


def _holds_string(node: Any) -> bool:
    return any(kind in child.dataType().simpleString() for child in _list_children(node) for kind in _TEXTS)


def _rewrite(spark: SparkSession, node: Any) -> Any:
    """Return the expression with guarded casts and with columns by name, so that it can be analyzed again."""
    jvm: Any = spark._jvm
    if _name(node) == "AttributeReference":
        return jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute.quoted(node.name())
    children = [_rewrite(spark, child) for child in _list_children(node)]
    if _is_decimal_of_string(node):
        children = [_to_expression(spark, blank_huge(_to_column(spark, child))) for child in children]
    return node.withNewChildren(jvm.PythonUtils.toSeq(children)) if children else node


def _walk(node: Any) -> list[Any]:
    return [node, *(found for child in _list_children(node) for found in _walk(child))]


def _list_children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(at) for at in range(children.size())]


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _to_column(spark: SparkSession, expression: Any) -> Column:
    jvm: Any = spark._jvm
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _to_expression(spark: SparkSession, column: Column) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)
