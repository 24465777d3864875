"""The contract's SQL as columns: a function of the record alone, in which what cannot be cast throws.

The SQL is analyzed in ANSI mode: a cast, an arithmetic operation or a parse that has no exact result throws, and the
record goes to quarantine, where otherwise null or a number that wrapped around would count. What ANSI mode allows
besides, `contract_guards` refuses. `from_json` reads as `format = "json"` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from onceover.model.contract import Contract
from onceover.spark.catalyst import get_name, get_type, list_children, list_items, to_column, to_expression
from onceover.spark.contract_guards import (
    CONVERTED,
    find_guarded_type,
    is_fraction_to_decimal,
    refuse_infinite,
    refuse_overflow,
    refuse_rounded,
    refuse_unfit,
)
from onceover.spark.contract_schema import find_key_type
from onceover.spark.json_value import read_json

HEADERS: Final = "headers"
_VALUES: Final = {"text": StringType(), "binary": BinaryType()}
_BESIDE_VALUE: Final = (
    StructType()
    .add(HEADERS, MapType(StringType(), BinaryType()))
    .add("kafka_timestamp", TimestampType())
    .add("kafka_topic", StringType())
    .add("kafka_partition", IntegerType())
    .add("kafka_offset", LongType())
)
_HEADER: Final = re.compile(r"\bheader\s*\(", re.IGNORECASE)
_ANSI: Final = "spark.sql.ansi.enabled"


def make_visible(spark: SparkSession, contract: Contract, schema: StructType) -> DataFrame:
    """Return a frame without rows, with exactly the columns that the contract's SQL may name."""
    return _make_frame(spark, find_key_type(contract), schema if contract.has_fields else _VALUES[contract.format])


@lru_cache(maxsize=64)
def _make_frame(spark: SparkSession, key: DataType, value: DataType) -> DataFrame:
    fields = [StructField("key", key), *_BESIDE_VALUE.fields, StructField("value", value)]
    return spark.createDataFrame([], StructType(fields))


@lru_cache(maxsize=512)  # each step of this is a call of the JVM, by the hundred
def read_sql(spark: SparkSession, seen: DataFrame, sql: str) -> Column:
    """Return the SQL over the columns of `seen`, by their names, for any frame that has them."""
    return to_column(spark, _rewrite(spark, analyze_sql(spark, seen, sql)))


def analyze_sql(spark: SparkSession, seen: DataFrame, sql: str) -> Any:
    """Return the analyzed expression of the SQL over the columns of `seen`."""
    (of_alias,) = list_children(analyze_plan(spark, seen, sql).expressions().apply(0))
    return of_alias


@lru_cache(maxsize=512)
def analyze_plan(spark: SparkSession, seen: DataFrame, sql: str) -> Any:
    """Return the analyzed plan that selects the SQL from `seen`, in which what has no exact result throws. Raises
    PySparkException for SQL that is none."""
    before = spark.conf.get(_ANSI)
    spark.conf.set(_ANSI, "true")
    try:
        return seen.select(_parse(spark, sql).alias("it"))._jdf.queryExecution().analyzed()
    finally:
        spark.conf.set(_ANSI, str(before))


def _parse(spark: SparkSession, sql: str) -> Column:
    """Return the SQL as a column, in which `header('x')` is the text of header x."""
    if not _HEADER.search(sql):
        return F.expr(sql)
    parsed: Any = spark._jsparkSession.sessionState().sqlParser().parseExpression(sql)
    return to_column(spark, _read_headers(spark, parsed))


def _read_headers(spark: SparkSession, node: Any) -> Any:
    children = [_read_headers(spark, child) for child in list_children(node)]
    if get_name(node) == "UnresolvedFunction" and _is_header(node, children):
        return to_expression(spark, F.col(HEADERS)[to_column(spark, children[0])].cast("string"))
    return _rebuild(spark, node, children) if children else node


def _is_header(node: Any, children: list[Any]) -> bool:
    """Return whether the call is `header(x)` and no more: Spark refuses any other as unknown."""
    is_plain = len(children) == 1 and get_name(children[0]) != "NamedArgumentExpression"
    is_plain = is_plain and not node.isDistinct() and str(node.ignoreNulls()) in ("false", "None")
    return is_plain and node.nameParts().mkString(".").lower() == "header"


def _rewrite(spark: SparkSession, node: Any, common: Mapping[int, Any] = MappingProxyType({})) -> Any:
    """Return the expression with guarded casts and with columns by name, so that it can be analyzed again. `common` are
    the expressions by ID that a `With` around it has computed."""
    jvm: Any = spark._jvm
    name = get_name(node)
    if name == "AttributeReference":
        return jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute.quoted(node.name())
    if name == "CommonExpressionRef":
        return common[node.id().id()]
    if name == "With":  # of nullif, BETWEEN and others; Spark cannot build it again before it finds columns
        computed = {each.id().id(): _rewrite(spark, each.child(), common) for each in list_items(node.defs())}
        return _rewrite(spark, node.child(), {**common, **computed})
    children = [_rewrite(spark, child, common) for child in list_children(node)]
    if not children:
        return node
    if name == "JsonToStructs":
        return to_expression(spark, read_json(to_column(spark, children[0]), cast(StructType, get_type(node))))
    return _guard(spark, node, children) if name in CONVERTED else _rebuild(spark, node, children)


def _guard(spark: SparkSession, node: Any, children: list[Any]) -> Any:
    """Return the conversion over these children, with its guards."""
    kind, of = find_guarded_type(node), to_column(spark, children[0])
    if kind:
        children = [to_expression(spark, refuse_unfit(kind, node, of)), *children[1:]]
    elif is_fraction_to_decimal(node):
        children = [to_expression(spark, refuse_infinite(node, of))]
    made = _rebuild(spark, node, children)
    if kind in ("double", "float"):
        return to_expression(spark, refuse_overflow(node, of, to_column(spark, made)))
    if get_name(node) == "GetJsonObject":
        return to_expression(spark, refuse_rounded(of, to_column(spark, made)))
    return made


def _rebuild(spark: SparkSession, node: Any, children: list[Any]) -> Any:
    jvm: Any = spark._jvm
    return node.withNewChildren(jvm.PythonUtils.toSeq(children))
