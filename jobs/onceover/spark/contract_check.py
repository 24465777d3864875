"""The check of a contract: whether Spark can evaluate it, deterministically, and the types of its aggregates."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from onceover.config.mistakes import Mistake, MistakesError
from onceover.errors import TerminalError
from onceover.model.contract import Column, Columns, Contract, DerivedColumn, name_in_toml
from onceover.model.measures import BY_TIME, DISTINCT, SKETCH_TYPE, SKIPPED, Measure
from onceover.spark.catalyst import list_items
from onceover.spark.contract_conversions import CONVERSIONS, find_refused_conversion
from onceover.spark.contract_patterns import WITH_CONSTANTS, find_refused_constant
from onceover.spark.contract_schema import find_schema
from onceover.spark.contract_sql import HEADERS, analyze_plan, make_visible, read_sql
from onceover.spark.failure import extract_reason
from onceover.spark.session import MEANING, OLD_MEANING

_POSTGRES: Mapping[type[DataType], str] = {
    StringType: "text",
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    DecimalType: "numeric",
    DateType: "date",
    TimestampType: "timestamptz",
}
_KEPT_AS = {**dict.fromkeys(BY_TIME, "text"), DISTINCT: SKETCH_TYPE}  # of the value's text
_SMALL = (ByteType, ShortType, IntegerType)
_WIDEST_SUMMED = 28  # a sum of DECIMAL(p, s) is DECIMAL(p + 10, s), and 38 is the end; beyond it Spark gives null
_LEAVES = {"LogicalRDD", "LocalRelation"}  # the frame's own columns: SQL that needs more is not about one record
# Deterministic by Spark's account, but functions of the clock or the session, not of the record.
_FORBIDDEN = {
    "CurrentTimestamp": "current_timestamp",
    "Now": "now",
    "CurrentDate": "current_date",
    "CurrentTime": "current_time",
    "LocalTimestamp": "localtimestamp",
    "CurrentTimeZone": "current_timezone",
    "CurrentUser": "current_user",
    "CurrentDatabase": "current_database",
    "CurrentCatalog": "current_catalog",
    "SparkVersion": "version",
    "CallMethodViaReflection": "reflect",
}
# TIMESTAMP 'now' is the clock as well, and so is TIMESTAMP '12:30': both are literals as soon as they are parsed.
_SPECIAL = re.compile(
    r"\b(?:timestamp(?:_ntz|_ltz)?|date|to_timestamp\w*|to_date|try_to_\w+|(?:try_)?cast)\s*\(?\s*"
    r"['\"]\s*(now|today|tomorrow|yesterday|T?\d{1,2}:[\d:.]*)\b|['\"]\s*(now|today|tomorrow|yesterday|T?\d{1,2}:[\d:.]*)\s*['\"]\s*::",
    re.IGNORECASE,
)
_KINDS = "a string, integer, boolean, date, timestamp or decimal"


@dataclass(frozen=True, slots=True)
class CheckedContract:
    """The schema and types of a contract that passed the check.

    `types` are those of the columns `k_NAME` and `m_NAME`, in order; `inputs` those that measures are cast to, or of
    which a sketch is made;
    `uses_headers` is whether the SQL names headers.
    """

    schema: StructType
    event_is_timestamp: bool
    types: Mapping[str, DataType]
    inputs: Mapping[str, DataType]
    columns: Columns
    uses_headers: bool


def check_contract(spark: SparkSession, contract: Contract, file: str = "contract") -> Columns:
    """Return the columns of the contract's aggregates with their PostgreSQL types. Reads no data.

    Needs a session made by `onceover.spark.session.build`. Raises MistakesError with all mistakes; `file` names the
    contract in messages.
    """
    return _Check(spark, contract, file).run().columns


@lru_cache(maxsize=64)
def analyze_contract(spark: SparkSession, contract: Contract) -> CheckedContract:
    """Check a contract as `check_contract` does, once a session and contract, and return its types."""
    return _Check(spark, contract, "contract").run()


class _Check:
    def __init__(self, spark: SparkSession, contract: Contract, file: str) -> None:
        self._spark, self._contract, self._file = spark, contract, file
        self._mistakes: list[Mistake] = []
        self._uses_headers = False

    def run(self) -> CheckedContract:
        for setting, value in MEANING.items():
            actual = str(self._spark.conf.get(setting))
            if actual.lower() != value.lower():
                raise TerminalError(
                    f"the Spark session has {setting}={actual}, and pipeline SQL means {value}; make the session with "
                    "onceover.spark.session.build"
                )
        names = self._spark.conf.getAll.keys() - MEANING.keys()
        if old := sorted(name for name in names if name.startswith(OLD_MEANING)):
            raise TerminalError(
                f"the Spark session has {old[0]}, which gives SQL another meaning; take it out of spark-defaults.conf "
                "and of the options of spark-submit"
            )
        contract = self._contract
        schema = find_schema(self._spark, contract, self._refuse)
        if self._mistakes:
            raise MistakesError(self._mistakes)
        seen = make_visible(self._spark, contract, schema)
        event = self._find_type(seen, "event_time", contract.event_time)
        if event is not None and not isinstance(event, TimestampType | LongType | IntegerType):
            remedy = "make it a TIMESTAMP, such as to_timestamp(...), or milliseconds since 1970 as BIGINT"
            self._refuse("event_time", f"is of type {event.simpleString()}", remedy)
        types: dict[str, DataType] = {}
        inputs: dict[str, DataType] = {}
        keys, measures = [], []
        results: dict[str, str] = {}
        for key in contract.keys:
            kind = self._find_type(seen, f"keys.{key.name}", key.sql)
            postgres = self._map_type(f"keys.{key.name}", kind)
            if kind is not None and postgres:
                types[f"k_{key.name}"] = kind
                keys.append(Column(key.name, postgres))
        for measure in contract.measures:
            input_, result = self._check_measure(seen, measure)
            if input_ is not None and result:
                types[f"m_{measure.name}"] = IntegerType() if measure.operation == DISTINCT else input_
                inputs[measure.name] = input_
                stored = _KEPT_AS.get(measure.operation, result)
                results[measure.name] = result
                measures.append(Column(measure.name, stored, measure.stored))
        if self._mistakes:
            raise MistakesError(self._mistakes)
        derived = tuple(
            DerivedColumn("numeric" if each.operation == "avg" else results[each.parts[0]], each)
            for each in contract.derived
        )
        columns = Columns(tuple(keys), tuple(measures), derived)
        is_timestamp = isinstance(event, TimestampType)
        return CheckedContract(schema, is_timestamp, types, inputs, columns, self._uses_headers)

    def _refuse(self, key: str, what: str, remedy: str) -> None:
        mistake = Mistake(self._file, f"contract.{key}", what, remedy)
        if mistake not in self._mistakes:  # SQL that two measures share
            self._mistakes.append(mistake)

    def _find_type(self, seen: DataFrame, key: str, sql: str) -> DataType | None:
        """Return the SQL's type, or None after adding its mistake."""
        try:
            parsed = self._spark._jsparkSession.sessionState().sqlParser().parseExpression(sql)
            written = _list_classes(parsed.toJSON())
            plan = analyze_plan(self._spark, seen, sql)
        except PySparkException as error:
            names = "key (STRING), value, kafka_timestamp (TIMESTAMP) and header('name') (STRING)"
            self._refuse(key, f"{extract_reason(error)} in {_shorten(sql)}", f"write Spark SQL over {names}")
            return None
        self._uses_headers |= any(name.name().lower() == HEADERS for name in list_items(plan.references().toSeq()))
        within = written | _list_classes(plan.expressions().apply(0).toJSON())
        one_record = plan.nodeName() == "Project" and plan.children().apply(0).nodeName() in _LEAVES
        special = _SPECIAL.search(sql)
        if any(name.endswith("Star") for name in written):
            self._refuse(key, f"{_shorten(sql)} names all columns at once", "name the columns to use")
        elif str(parsed.nodeName()) in ("Alias", "MultiAlias"):  # of the whole, not inside, as in named structs
            self._refuse(key, f"{_shorten(sql)} gives itself a name", "leave out AS; the name is the TOML's key")
        elif not one_record or any("Subquery" in name or name == "Exists" for name in within):
            what = "needs other records: an aggregate, window or generator function, or a subquery"
            self._refuse(
                key, f"{_shorten(sql)} {what}", "use functions of one record; aggregates belong in [contract.measures]"
            )
        elif clock := sorted(_FORBIDDEN[name] for name in within & _FORBIDDEN.keys()):
            self._refuse(key, f"{clock[0]} changes from run to run", "take kafka_timestamp or a field of the record")
        elif special:
            literal = special[1] or special[2]
            self._refuse(key, f"'{literal}' changes from run to run", "take kafka_timestamp or a field of the record")
        elif within & CONVERSIONS and (conversion := find_refused_conversion(plan.expressions().apply(0))):
            self._refuse(key, f"{_shorten(sql)} {conversion[0]}", conversion[1])
        elif within & WITH_CONSTANTS and (refused := find_refused_constant(self._spark, plan.expressions().apply(0))):
            self._refuse(key, f"Spark refuses the {refused[0]}", refused[1])
        elif not plan.deterministic():
            self._refuse(key, f"{_shorten(sql)} is not deterministic", "use functions that always return the same")
        else:
            return seen.select(read_sql(self._spark, seen, sql).alias("it")).schema["it"].dataType  # as batches will
        return None

    def _map_type(self, key: str, kind: DataType | None) -> str | None:
        if kind is None:
            return None
        postgres = _POSTGRES.get(type(kind))
        if isinstance(kind, FloatType | DoubleType):
            self._refuse(key, f"is of type {kind.simpleString()}", "cast it, such as CAST(... AS DECIMAL(28, 6))")
            return None
        if postgres is None or (isinstance(kind, StringType) and kind.simpleString() != "string"):
            self._refuse(key, f"is of type {kind.simpleString()}", f"make it {_KINDS}, such as CAST(... AS STRING)")
            return None
        return postgres

    def _check_measure(self, seen: DataFrame, measure: Measure) -> tuple[DataType | None, str | None]:
        """Return the type that the measure's SQL is cast to before aggregation, and the result's PostgreSQL type."""
        key = name_in_toml(self._contract, measure)
        if measure.operation == SKIPPED or (measure.operation == "count" and measure.sql == "*"):
            return IntegerType(), "bigint"
        kind = self._find_type(seen, key, measure.sql)
        if measure.operation == "count_if" and not isinstance(kind, BooleanType | None):
            self._refuse(key, f"is of type {kind.simpleString()}", "write a condition, such as value.amount > 100")
            return None, None
        if kind is None or measure.stored == "count":
            return (IntegerType(), "bigint") if kind is not None else (None, None)
        if measure.operation in _KEPT_AS and isinstance(kind, DateType | TimestampType):
            remedy = "take milliseconds as BIGINT, such as unix_millis(...), or CAST(... AS STRING)"
            self._refuse(key, f"is of type {kind.simpleString()}", remedy)
            return None, None
        if measure.operation == DISTINCT:
            return kind, "bigint" if self._map_type(key, kind) else None
        if measure.stored in ("min", "max"):
            return (StringType() if measure.operation in BY_TIME else kind), self._map_type(key, kind)
        if isinstance(kind, _SMALL):
            return LongType(), "bigint"
        if isinstance(kind, LongType):
            return DecimalType(20, 0), "numeric"  # a sum of bigints overflows silently
        if isinstance(kind, DecimalType) and kind.precision <= _WIDEST_SUMMED:
            return kind, "numeric"
        if isinstance(kind, DecimalType):
            what = f"a sum of {kind.simpleString()} may not fit 38 digits, and would then be null"
            self._refuse(key, what, f"cast it, such as CAST(... AS DECIMAL({_WIDEST_SUMMED}, {min(kind.scale, 6)}))")
        elif isinstance(kind, FloatType | DoubleType):
            what = f"a sum of {kind.simpleString()} depends on the order of the records"
            self._refuse(key, what, "cast it, such as CAST(... AS DECIMAL(28, 6))")
        else:
            self._refuse(key, f"a {kind.simpleString()} cannot be summed", "take an integer or a decimal")
        return None, None


def _list_classes(tree: str) -> set[str]:
    """Return the simple class names of all nodes of a Catalyst tree, given as JSON."""
    classes: set[str] = set()
    waiting: list[Any] = [json.loads(tree)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            classes.add(str(node.get("class", "")).rsplit(".", 1)[-1])
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return classes


def _shorten(sql: str) -> str:
    flat = " ".join(sql.split())
    return flat if len(flat) <= 80 else flat[:77] + "..."
