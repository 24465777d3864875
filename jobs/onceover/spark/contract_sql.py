"""The contract's SQL as columns: a function of the record alone, in which what cannot be cast throws.

The SQL is analyzed in ANSI mode: a cast, an arithmetic operation or a parse that has no exact result throws, and the
record goes to quarantine, where otherwise null or a number that wrapped around would count. Two things that ANSI mode
allows throw too: a text without a date that is cast to a timestamp, to which Spark adds today's date, and a text with
the name of a time zone, whose rules change from one release of Java to the next. So does a text whose cast to a decimal
would take minutes, and a number that get_json_object may have rounded. `from_json` reads as `format = "json"` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType, TimestampType

from onceover.model.contract import Contract
from onceover.spark.catalyst import get_name, get_type, list_children, list_items, to_column, to_expression
from onceover.spark.json_fields import LONG_NUMBER, NO_STRING
from onceover.spark.json_value import read_json

_ANSI: Final = "spark.sql.ansi.enabled"
# Spark writes out all digits of a number that it casts to a decimal: 1e9999999 keeps a core busy for 20 s, 1e99999999
# for hours, and 400,000 plain digits for 6 s.
_NO_DECIMAL: Final = r"[eE][+-]?\d{3}|\d[\d.]{100}|(?!\d)\p{Nd}"
_MAYBE_ROUNDED: Final = rf"{LONG_NUMBER}|\d[eE]\+?\d{{3}}"
"""A number that a double may not hold, of too many digits or too large an exponent."""
_DATED: Final = r"^[\x00-\x20\x7F]*[+-]?\d{4}[^A-Za-z]*(?:T[^A-Za-z]*)?(?:(?:Z|UTC|GMT|UT)[^A-Za-z]*)?$"


def make_visible(spark: SparkSession, contract: Contract, schema: StructType) -> DataFrame:
    """Return a frame without rows, with exactly the columns that the contract's SQL may name."""
    return _make_frame(spark, {"json": schema, "text": StringType(), "binary": BinaryType()}[contract.format])


@lru_cache(maxsize=64)
def _make_frame(spark: SparkSession, value: DataType) -> DataFrame:
    fields = [("key", StringType()), ("value", value), ("kafka_timestamp", TimestampType())]
    return spark.createDataFrame([], StructType([StructField(name, kind) for name, kind in fields]))


@contextmanager
def strict_casts(spark: SparkSession) -> Iterator[None]:
    """Analyze the block's SQL so that what has no exact result throws."""
    before = spark.conf.get(_ANSI)
    spark.conf.set(_ANSI, "true")
    try:
        yield
    finally:
        spark.conf.set(_ANSI, str(before))


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
    """Return the analyzed plan that selects the SQL from `seen`. Raises PySparkException for SQL that is none."""
    with strict_casts(spark):
        return seen.select(F.expr(sql).alias("it"))._jdf.queryExecution().analyzed()


def is_guarded(node: Any, kind: str) -> bool:
    """Return whether `read_sql` guards what the analyzed node makes of a text: a cast of a string to that type, decimal
    or timestamp."""
    children = list_children(node)
    # Spark makes a cast of to_timestamp without a pattern, but only after the analysis.
    is_cast = get_name(node) == "Cast" or (get_name(node) == "ParseToTimestamp" and len(children) == 1)
    if not is_cast or not node.dataType().simpleString().startswith(kind):
        return False
    return any(child.dataType().simpleString() == "string" for child in children)


def _rewrite(spark: SparkSession, node: Any, common: Mapping[int, Any] = MappingProxyType({})) -> Any:
    """Return the expression with guarded casts and with columns by name, so that it can be analyzed again. `common` are
    the expressions by ID that a `With` around it has computed."""
    jvm: Any = spark._jvm
    if get_name(node) == "AttributeReference":
        return jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute.quoted(node.name())
    if get_name(node) == "CommonExpressionRef":
        return common[node.id().id()]
    if (
        get_name(node) == "With"
    ):  # of nullif, BETWEEN and others; Spark cannot build it again before its columns are found
        computed = {each.id().id(): _rewrite(spark, each.child(), common) for each in list_items(node.defs())}
        return _rewrite(spark, node.child(), {**common, **computed})
    children = [_rewrite(spark, child, common) for child in list_children(node)]
    if not children:
        return node
    for kind, guard in (("decimal", _refuse_huge), ("timestamp", _refuse_undated)):
        if is_guarded(node, kind):
            children = [to_expression(spark, guard(to_column(spark, child))) for child in children]
    if get_name(node) == "JsonToStructs":
        return to_expression(spark, read_json(to_column(spark, children[0]), cast(StructType, get_type(node))))
    made = node.withNewChildren(jvm.PythonUtils.toSeq(children))
    if get_name(node) == "GetJsonObject":
        return to_expression(spark, _refuse_rounded(to_column(spark, children[0]), to_column(spark, made)))
    return made


def _refuse_huge(text: Column) -> Column:
    why = "is too large a number for a decimal, or not written in the digits 0 to 9"
    return _throw(text, text.rlike(_NO_DECIMAL), why)


def _refuse_undated(text: Column) -> Column:
    return _throw(text, ~text.rlike(_DATED), "is no timestamp with a date and, if it has a time zone, with its offset")


def _refuse_rounded(text: Column, found: Column) -> Column:
    """Return what get_json_object found, and throw where it may have written a number as a double that is another, or
    have put a character in place of bytes that are none."""
    why = F.lit("get_json_object may have rounded a number, or the text is not UTF-8; from_json reads it exactly")
    # The text first: only where it holds such a number is the object looked for twice.
    may_differ = (text.rlike(_MAYBE_ROUNDED) & found.rlike(NO_STRING)) | ~F.is_valid_utf8(text)
    return F.when(may_differ, F.raise_error(why).cast("string")).otherwise(found)


def _throw(text: Column, condition: Column, why: str) -> Column:
    """Return the text, and throw where the condition holds."""
    message = F.concat(F.lit("'"), F.substring(text, 1, 80), F.lit(f"' {why}"))
    return F.when(condition, F.raise_error(message).cast("string")).otherwise(text)
