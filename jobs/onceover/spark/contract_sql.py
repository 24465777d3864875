"""The contract's SQL as columns: a function of the record alone, in which what cannot be cast throws.

The SQL is analyzed in ANSI mode: a cast, an arithmetic operation or a parse that has no exact result throws, and the
record goes to quarantine, where otherwise null or a number that wrapped around would count. Two things that ANSI mode
allows throw too: a text without a date that is cast to a timestamp, to which Spark adds today's date, and a text with
the name of a time zone, whose rules change from one release of Java to the next. So does a text whose cast to a decimal
would take minutes, and a number that get_json_object may have rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType, TimestampType

from onceover.model.contract import Contract
from onceover.spark.json_fields import LONG_NUMBER, NO_STRING

_ANSI: Final = "spark.sql.ansi.enabled"
_PARSERS: Final = {"JsonToStructs", "CsvToStructs", "XmlToStructs", "VariantGet"}
CONVERTING: Final = {"Cast", *_PARSERS}
"""Classes of expressions that `find_unguarded` looks at."""
_TEXTS: Final = ("string", "variant", "char")
_GUARDED: Final = ("decimal", "timestamp")
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
    return _to_column(spark, _rewrite(spark, analyze_sql(spark, seen, sql)))


def analyze_sql(spark: SparkSession, seen: DataFrame, sql: str) -> Any:
    """Return the analyzed expression of the SQL over the columns of `seen`."""
    (of_alias,) = _list_children(analyze_plan(spark, seen, sql).expressions().apply(0))
    return of_alias


@lru_cache(maxsize=512)
def analyze_plan(spark: SparkSession, seen: DataFrame, sql: str) -> Any:
    """Return the analyzed plan that selects the SQL from `seen`. Raises PySparkException for SQL that is none."""
    with strict_casts(spark):
        return seen.select(F.expr(sql).alias("it"))._jdf.queryExecution().analyzed()


def find_unguarded(expression: Any) -> str | None:
    """Return the type, decimal or timestamp, that the analyzed expression makes out of a text in another way than by a
    cast of a string."""
    for node in _walk(expression):
        kind = node.dataType().simpleString()
        for guarded in _GUARDED:
            if guarded not in kind or _is_guarded(node, guarded):
                continue
            if _name(node) in _PARSERS or (_name(node) == "Cast" and _holds_text(node)):
                return guarded
    return None


def _is_guarded(node: Any, guarded: str) -> bool:
    children = _list_children(node)
    # Spark makes a cast of to_timestamp without a pattern, but only after the analysis.
    is_cast = _name(node) == "Cast" or (_name(node) == "ParseToTimestamp" and len(children) == 1)
    if not is_cast or not node.dataType().simpleString().startswith(guarded):
        return False
    return any(child.dataType().simpleString() == "string" for child in children)


def _holds_text(node: Any) -> bool:
    return any(text in child.dataType().simpleString() for child in _list_children(node) for text in _TEXTS)


def _rewrite(spark: SparkSession, node: Any, common: Mapping[int, Any] = MappingProxyType({})) -> Any:
    """Return the expression with guarded casts and with columns by name, so that it can be analyzed again. `common` are
    the expressions by ID that a `With` around it has computed."""
    jvm: Any = spark._jvm
    if _name(node) == "AttributeReference":
        return jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute.quoted(node.name())
    if _name(node) == "CommonExpressionRef":
        return common[node.id().id()]
    if _name(node) == "With":  # of nullif, BETWEEN and others; Spark cannot build it again before its columns are found
        computed = {each.id().id(): _rewrite(spark, each.child(), common) for each in _list(node.defs())}
        return _rewrite(spark, node.child(), {**common, **computed})
    children = [_rewrite(spark, child, common) for child in _list_children(node)]
    if not children:
        return node
    for guarded, guard in (("decimal", _refuse_huge), ("timestamp", _refuse_undated)):
        if _is_guarded(node, guarded):
            children = [_to_expression(spark, guard(_to_column(spark, child))) for child in children]
    made = node.withNewChildren(jvm.PythonUtils.toSeq(children))
    if _name(node) == "GetJsonObject":
        return _to_expression(spark, _refuse_rounded(_to_column(spark, children[0]), _to_column(spark, made)))
    return made


def _refuse_huge(text: Column) -> Column:
    why = "is too large a number for a decimal, or not written in the digits 0 to 9"
    return _throw(text, text.rlike(_NO_DECIMAL), why)


def _refuse_undated(text: Column) -> Column:
    return _throw(text, ~text.rlike(_DATED), "is no timestamp with a date and, if it has a time zone, with its offset")


def _refuse_rounded(text: Column, found: Column) -> Column:
    """Return what get_json_object found, and throw where it may have written a number as a double that is another."""
    why = F.lit('get_json_object may have rounded a number; format = "json" with a schema reads it exactly')
    # The text first: only where it holds such a number is the object looked for twice.
    may_differ = text.rlike(_MAYBE_ROUNDED) & found.rlike(NO_STRING)
    return F.when(may_differ, F.raise_error(why).cast("string")).otherwise(found)


def _throw(text: Column, condition: Column, why: str) -> Column:
    """Return the text, and throw where the condition holds."""
    message = F.concat(F.lit("'"), F.substring(text, 1, 80), F.lit(f"' {why}"))
    return F.when(condition, F.raise_error(message).cast("string")).otherwise(text)


def _walk(node: Any) -> list[Any]:
    return [node, *(found for child in _list_children(node) for found in _walk(child))]


def _list_children(node: Any) -> list[Any]:
    return _list(node.children())


def _list(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _to_column(spark: SparkSession, expression: Any) -> Column:
    jvm: Any = spark._jvm
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _to_expression(spark: SparkSession, column: Column) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)
