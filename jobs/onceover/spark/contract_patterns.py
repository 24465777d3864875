"""The constants in a contract's SQL that Spark refuses, and warnings about datetime patterns that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceover.config.mistakes import Mistake
from onceover.model.contract import Contract, list_written_measures, name_in_toml
from onceover.spark.catalyst import get_name, list_children, walk
from onceover.spark.contract_schema import find_schema
from onceover.spark.contract_sql import analyze_sql, make_visible
from onceover.spark.datetime_pattern import DatetimePattern, Doubt

_READERS = {"ParseToTimestamp", "ParseToDate", "UnixTimestamp", "ToUnixTimestamp"}
_WRITERS = {"DateFormatClass", "FromUnixTime"}
_WRITERS_BY_OPTION = {"StructsToJson", "StructsToCsv", "StructsToXml"}
_THROWN = (Py4JJavaError, PySparkException)
_ZONE = ("time zone", "take a name such as Europe/Oslo, or an offset such as +01:00")
_REGEX = ("regex", "correct it; count its backslashes, which TOML and SQL halve in double quotes")
_PREPARED = {
    **dict.fromkeys(("RLike", "RegExpExtract", "RegExpExtractAll", "RegExpReplace", "RegExpInStr"), _REGEX),
    "Like": ("LIKE pattern", r"write a backslash only before %, _ or another one"),
    **{"FromUTCTimestamp": _ZONE, "ToUTCTimestamp": _ZONE},
}
WITH_CONSTANTS = {"GetJsonObject", *_READERS, *_WRITERS, *_WRITERS_BY_OPTION, *_PREPARED}
"""Classes of expressions whose constants `find_refused_constant` looks at."""
_OPTIONS = {"timestampformat", "timestampntzformat", "dateformat"}


def list_warnings(spark: SparkSession, contract: Contract, file: str) -> list[Mistake]:
    """Return a warning for each doubtful pattern of a contract that passed the check; `file` names it."""
    seen = make_visible(spark, contract, find_schema(spark, contract, lambda *_: None))
    warnings = []
    for key, sql in _list_sql(contract):
        patterns = list(find_patterns(spark, analyze_sql(spark, seen, sql)))
        doubts = {(pattern.text, doubt): None for pattern in patterns for doubt in pattern.list_doubts()}
        reading = [pattern for pattern in patterns if pattern.reads]
        if key == "event_time" and reading and not any(pattern.has_year() for pattern in reading):
            no_year = Doubt("it has no year, and Spark takes 1970", "read the date too, or take kafka_timestamp")
            doubts[reading[0].text, no_year] = None
        warnings += [
            Mistake(file, f"contract.{key}", f"pattern '{text}': {doubt.what}", doubt.remedy) for text, doubt in doubts
        ]
    return warnings


def find_patterns(spark: SparkSession, expression: Any) -> Iterator[DatetimePattern]:
    """Return the datetime patterns of an analyzed expression that are the same for each record."""
    jvm: Any = spark._jvm
    for node in walk(expression):
        name, children = get_name(node), list_children(node)
        if name in _READERS | _WRITERS and len(children) > 1 and children[1].foldable():
            is_used = name in _WRITERS or children[0].dataType().simpleString() == "string"
            with suppress(*_THROWN):  # what throws has no pattern
                text = children[1].eval(None)
                if is_used and text is not None:
                    yield DatetimePattern(str(text), name in _READERS)
        if name in _WRITERS_BY_OPTION:
            for option, text in jvm.scala.jdk.javaapi.CollectionConverters.asJava(node.options()).items():
                if option.lower() in _OPTIONS:
                    yield DatetimePattern(text, reads=False)


def find_refused_constant(spark: SparkSession, expression: Any) -> tuple[str, str] | None:
    """Return which constant of an analyzed expression Spark refuses, and what to write. Spark looks at these before it
    sees a record, while it compiles the SQL or starts a task: what throws then is caught for no record."""
    jvm: Any = spark._jvm
    formatter = getattr(getattr(jvm.org.apache.spark.sql.catalyst.util, "TimestampFormatter$"), "MODULE$")
    for pattern in find_patterns(spark, expression):
        try:
            formatter.apply(pattern.text, jvm.java.time.ZoneOffset.UTC, pattern.reads).validatePatternString(True)
        except _THROWN:
            return f"datetime pattern '{pattern.text}'", pattern.suggest_other()
    for node in walk(expression):
        name, children = get_name(node), list_children(node)
        if name == "GetJsonObject" and children[1].foldable() and not str(children[1].eval(None)).startswith("$"):
            return f"path {children[1].sql()}", "begin it with `$`, as in get_json_object(..., '$.name')"
        if name in _PREPARED and all(child.foldable() for child in children[1:]):
            literals = getattr(getattr(jvm.org.apache.spark.sql.catalyst.expressions, "Literal$"), "MODULE$")
            tried = [literals.default(children[0].dataType()), *children[1:]]
            try:
                node.withNewChildren(jvm.PythonUtils.toSeq(tried)).eval(None)
            except _THROWN:
                return f"{_PREPARED[name][0]} {children[1].sql()}", _PREPARED[name][1]
    return None


def _list_sql(contract: Contract) -> list[tuple[str, str]]:
    """Return all SQL with its key in the TOML."""
    return [
        ("event_time", contract.event_time),
        *((f"keys.{key.name}", key.sql) for key in contract.keys),
        *{name_in_toml(contract, m): m.sql for m in list_written_measures(contract) if m.sql != "*"}.items(),
    ]
