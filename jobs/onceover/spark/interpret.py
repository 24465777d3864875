"""What a record counts for: the contract's SQL over columns of records, and a reason for each that has no place.

    value --parsed once--> key, value, kafka_timestamp --contract SQL--> event time, keys, measures --judged--> reason

A throw in the contract's SQL (`timestamp_millis` of a huge number throws even with ANSI off) would fail the batch on
each try and so stop the topic for one record. All of it is therefore evaluated under Spark's TryEval, the expression
behind its `try_` functions, and a record that makes it throw goes to quarantine.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import DateType, StringType, TimestampType

from onceover.model.contract import Contract, Measure
from onceover.model.line import MAX_EVENT_MS
from onceover.spark.contract_check import Checked, checked
from onceover.spark.json_value import document, faults_in, value_in

MAX_KEY_BYTES = 2000  # PostgreSQL's unique index takes rows of 2,704 bytes
_YEAR_10000_MS = 253_402_300_800_000
_OWN = "__onceover_"  # the contract's SQL cannot say it: it is checked against its own columns only
_CARRIED = f"{_OWN}of_"


def interpret(contract: Contract) -> Callable[[DataFrame], DataFrame]:
    """Adds `event_ms` bigint, `reason` string, `k_NAME` per key and `m_NAME` per measure. Refuses what `check` refuses.

    Takes key and value (binary, null allowed) and kafka_timestamp (bigint, ms); all columns are passed through. Exactly
    one of `event_ms` and `reason` is null; with a reason, keys and measures are null too. The reasons, in the order in
    which they are looked for:

    - tombstone: the value is null, and the contract does not take that for a record
    - unparseable: not UTF-8 (json and text), not exactly one JSON object, a field not of its declared type, or a number
      with an exponent of six digits or more where the schema has decimals
    - missing field X: null or absent; tombstones taken for records have no fields that could be missing
    - SQL failed: the contract's SQL threw
    - no event time: it is null
    - event time out of width: before 1970 or after 9999999999999 ms
    - no Kafka timestamp: negative or null, and the contract has a bound; "none" for both lets such records in
    - beyond horizon, beyond skew: against the Kafka timestamp; exactly at the bound is within it
    - key X or measure X not storable: NUL or invalid UTF-8 in a string, a date or timestamp outside years 1 to 9999;
      keys not storable: their strings together are longer than 2,000 bytes

    The value is parsed once, whatever is made of the columns: see `_evaluated`.
    """

    def add(records: DataFrame) -> DataFrame:
        known = checked(records.sparkSession, contract)
        carried = [f"{_CARRIED}{name}" for name in records.columns]
        return (
            records.select(*(F.col(f"`{name}`").alias(own) for name, own in zip(records.columns, carried, strict=True)))
            .withColumn(f"{_OWN}parsed", _parsed(contract, known))
            .select(*map(_quoted, carried), *_visible(contract), _fault(contract).alias(f"{_OWN}fault"))
            .select(*map(_quoted, carried), _quoted(f"{_OWN}fault"), _evaluated(contract, known).alias(f"{_OWN}found"))
            .withColumn(f"{_OWN}reason", _reason(contract, known))
            .select(
                *(_quoted(own).alias(name) for name, own in zip(records.columns, carried, strict=True)), *_added(known)
            )
        )

    return add


def aggregate(contract: Contract) -> Callable[[DataFrame], DataFrame]:
    """One row per `window_ms` (start of the window) and keys, null being a key like any other, with the measures.

    Takes what `interpret` added, of the records that count, and `window_ms` (made from `event_ms` if absent). Columns
    are `window_ms` and the contract's own names, in its order.
    """
    length = contract.window_minutes * 60_000
    keys = [F.col(f"k_{key.name}").alias(key.name) for key in contract.keys]
    measures = [_aggregated(measure).alias(measure.name) for measure in contract.measures]

    def group(records: DataFrame) -> DataFrame:
        if "window_ms" not in records.columns:
            records = records.withColumn("window_ms", F.col("event_ms") - F.pmod("event_ms", F.lit(length)))
        return records.groupBy("window_ms", *keys).agg(*measures)

    return group


def _aggregated(measure: Measure) -> Column:
    column = F.col(f"m_{measure.name}")
    if measure.operation == "count":
        return F.sum(column.cast("bigint"))
    return {"sum": F.sum, "min": F.min, "max": F.max}[measure.operation](column)


def _quoted(name: str) -> Column:
    return F.col(f"`{name}`")


def _parsed(contract: Contract, known: Checked) -> Column:
    """What `value` is in the SQL, or for json a document to look into; null where it cannot be read."""
    raw = _quoted(f"{_CARRIED}value")
    if contract.format == "binary":
        return raw
    text = F.when(F.is_valid_utf8(raw.cast("string")), raw.cast("string"))
    return text if contract.format == "text" else document(text, known.schema)


def _visible(contract: Contract) -> list[Column]:
    """All that the contract's SQL can see."""
    stamp = _quoted(f"{_CARRIED}kafka_timestamp")
    value = value_in(f"{_OWN}parsed") if contract.format == "json" else F.col(f"{_OWN}parsed")
    return [
        _quoted(f"{_CARRIED}key").cast("string").alias("key"),
        value.alias("value"),
        F.when((stamp >= 0) & (stamp < _YEAR_10000_MS), F.timestamp_millis(stamp)).alias("kafka_timestamp"),
    ]


def _fault(contract: Contract) -> Column:
    """The reason not to look at a record any further."""
    raw, parsed = _quoted(f"{_CARRIED}value"), f"{_OWN}parsed"
    fault = F.when(raw.isNull(), F.lit("tombstone" if contract.tombstone == "quarantine" else None).cast("string"))
    if contract.format == "text":
        fault = fault.when(F.col(parsed).isNull(), "unparseable: not UTF-8")
    if contract.format == "json":
        for broken, why in faults_in(parsed):
            fault = fault.when(broken, f"unparseable: {why}")
        for name in contract.required:
            fault = fault.when(_field(value_in(parsed), name).isNull(), f"missing field {name}")
    return fault


def _field(value: Column, name: str) -> Column:
    for part in name.split("."):
        value = value.getField(part)
    return value


def _evaluated(contract: Contract, known: Checked) -> Column:
    """Event time, keys and measures as one struct; null where the record has a fault or the SQL throws.

    The SQL stands in a branch, because Spark computes subexpressions that occur twice beforehand, outside of TryEval,
    unless only a branch holds them. `spark_partition_id` is nothing but a barrier: it makes the column count as not
    deterministic, and so keeps Spark from copying a filter on `reason`, with all of this in it, to below the parser.
    """
    event = F.expr(contract.event_time)
    fields = [(F.unix_millis(event) if known.event_is_timestamp else event.cast("bigint")).alias("event_ms")]
    fields += [F.expr(key.sql).alias(f"k_{key.name}") for key in contract.keys]
    fields += [_input(measure, known).alias(f"m_{measure.name}") for measure in contract.measures]
    sound = _quoted(f"{_OWN}fault").isNull() & (F.spark_partition_id() >= 0)
    return _null_if_it_throws(F.when(sound, F.struct(*fields)))


def _input(measure: Measure, known: Checked) -> Column:
    """What a measure aggregates, of a type whose sum cannot wrap."""
    if measure.operation == "count":
        return F.lit(1) if measure.sql == "*" else F.expr(measure.sql).isNotNull().cast("int")
    return F.expr(measure.sql).cast(known.inputs[measure.name])


def _null_if_it_throws(column: Column) -> Column:
    jvm = SparkContext._active_spark_context._jvm  # type: ignore[union-attr]
    classic = jvm.org.apache.spark.sql.classic.ExpressionUtils  # type: ignore[union-attr]
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(classic.expression(column._jc))  # type: ignore[union-attr]
    return ClassicColumn(classic.column(tried))


def _reason(contract: Contract, known: Checked) -> Column:
    found = f"{_OWN}found"
    event, stamp = F.col(f"{found}.event_ms"), F.coalesce(_quoted(f"{_CARRIED}kafka_timestamp"), F.lit(-1))
    reason = (
        F.when(_quoted(f"{_OWN}fault").isNotNull(), _quoted(f"{_OWN}fault"))
        .when(F.col(found).isNull(), "SQL failed")
        .when(event.isNull(), "no event time")
        .when(~event.between(0, MAX_EVENT_MS), "event time out of width")
    )
    if contract.horizon_ms is not None or contract.skew_ms is not None:
        reason = reason.when(stamp < 0, "no Kafka timestamp to judge the event time by")
    if contract.horizon_ms is not None:
        reason = reason.when(event + contract.horizon_ms < stamp, "beyond horizon")
    if contract.skew_ms is not None:
        reason = reason.when(event - contract.skew_ms > stamp, "beyond skew")
    for name, shown in [(f"k_{k.name}", f"key {k.name}") for k in contract.keys] + [
        (f"m_{m.name}", f"measure {m.name}") for m in contract.measures
    ]:
        for unfit, why in _unfit(F.col(f"{found}.{name}"), known, name):
            reason = reason.when(unfit, f"{shown} not storable: {why}")
    texts = [F.col(f"{found}.k_{k.name}") for k in contract.keys if known.types[f"k_{k.name}"] == StringType()]
    if texts:
        together = sum((F.coalesce(F.octet_length(text), F.lit(0)) for text in texts), F.lit(0))
        reason = reason.when(together > MAX_KEY_BYTES, f"keys not storable: longer than {MAX_KEY_BYTES} bytes together")
    return reason


def _unfit(column: Column, known: Checked, name: str) -> list[tuple[Column, str]]:
    kind = known.types[name]
    if isinstance(kind, StringType):
        return [(F.contains(column, F.lit("\x00")), "a NUL character"), (~F.is_valid_utf8(column), "not UTF-8")]
    if isinstance(kind, DateType):
        return [(~column.between(F.expr("DATE '0001-01-01'"), F.expr("DATE '9999-12-31'")), "outside years 1 to 9999")]
    if isinstance(kind, TimestampType):
        first, last = F.expr("TIMESTAMP '0001-01-01 00:00:00Z'"), F.expr("TIMESTAMP '9999-12-31 23:59:59.999999Z'")
        return [(~column.between(first, last), "outside years 1 to 9999")]
    return []


def _added(known: Checked) -> list[Column]:
    reason = _quoted(f"{_OWN}reason")
    counted = [F.when(reason.isNull(), F.col(f"{_OWN}found.{name}")).alias(name) for name in ("event_ms", *known.types)]
    return [counted[0], reason.alias("reason"), *counted[1:]]
