"""The interpretation of records: the contract's SQL over their columns, and a reason for each that it refuses.

    value --decoded, parsed once--> what SQL sees --contract SQL--> event time, keys, measures --checked--> reason

A throw in the contract's SQL (`timestamp_millis` of a huge number throws even with ANSI off) would fail the batch on
each try, and one record would stop the topic. So all SQL is evaluated under Spark's TryEval, the expression behind its
`try_` functions, and a record that makes it throw goes to quarantine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from onceover.lines.line_format import MAX_EVENT_MS
from onceover.model.contract import Contract, list_written_measures, name_values
from onceover.model.measures import SKIPPED
from onceover.model.poison import SQL_FAILED, PoisonRecord
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.catalyst import to_column, to_expression
from onceover.spark.contract_check import CheckedContract, analyze_contract
from onceover.spark.contract_sql import HEADERS, make_visible, read_sql
from onceover.spark.decoding import (
    DOCUMENT,
    DOCUMENT_FAULT,
    HEADER_MAP,
    KEY_FAULT,
    KEY_ROW,
    Decoding,
    add_decoded,
    find_decoding,
)
from onceover.spark.field_path import FieldPath, find_paths
from onceover.spark.json_value import find_document_fault, list_field_faults, parse_document, read_value, wrap
from onceover.spark.known_poison import find_reason
from onceover.spark.measure_input import cast_input
from onceover.spark.plain_json import PLAIN
from onceover.spark.storable import list_unfit
from onceover.spark.wire_format import name_framed

MAX_KEY_BYTES = 2000  # PostgreSQL's unique index takes rows of 2,704 bytes
_YEAR_10000_MS = 253_402_300_800_000
_OWN = "__onceover_"  # out of reach of the contract's SQL, which is checked against its own columns only
_CARRIED = f"{_OWN}of_"


def interpret(
    contract: Contract, poison: Sequence[PoisonRecord] = (), schemas: SchemaFiles | None = None
) -> Callable[[DataFrame], DataFrame]:
    """Add `event_ms` bigint, `reason` string, `k_NAME` per key and `m_NAME` per measure. Raises as `check_contract`.

    Takes kafka_partition, offset, key (binary), value (binary, or a string of any bytes) and kafka_timestamp (bigint,
    ms), the last three nullable, and passes all columns through. Takes what `find_decoding` needs, too: its columns, or
    headers as raw has them. A column PLAIN has what was read of the values before. Of `poison` records nothing is
    evaluated; they may have a generation. `schemas` are as `find_decoding` takes them. Exactly one of `event_ms` and
    `reason` is null; with a reason, keys and measures are null too. The reasons, in order:

    - SQL failed: X, SQL too slow: X: of a poison record, as it says
    - unreadable headers: the name of one is not UTF-8, and the contract's SQL uses headers
    - tombstone: the value is null, and the contract does not accept tombstones as records
    - unparseable key: not of the contract's key format
    - unparseable: not of the contract's compression, not UTF-8 (but for binary), not exactly one CSV row or JSON
      object, or a field that is not exactly a value of its declared type, as `json_fields` says; or in Confluent's wire
      format
    - missing field X: null or absent; tombstones accepted as records have no fields to miss
    - SQL failed: X: the SQL of event_time, key X or measure X threw, as a cast does that has no exact result
    - no event time: it is null
    - event time before 1970 or after 2286: more than 9999999999999 ms
    - no Kafka timestamp: negative or null, and the contract has a bound; "none" for both accepts such records
    - beyond horizon, beyond skew: against the Kafka timestamp; exactly at the bound is within it
    - key X or measure X not storable: NUL or invalid UTF-8 in a string, a date or timestamp outside years 1 to 9999;
      keys not storable: their strings together are longer than 2,000 bytes

    The value is parsed once, whatever later steps select: see `_evaluate`.
    """

    def add(records: DataFrame) -> DataFrame:
        checked = analyze_contract(records.sparkSession, contract)
        found = _evaluate(records.sparkSession, contract, checked)
        carried = [f"{_CARRIED}{name}" for name in records.columns]
        return (
            _show_to_sql(records, contract, checked, schemas, poison)
            .select(*map(_quote, carried), _quote(f"{_OWN}fault"), found.alias(f"{_OWN}found"))
            .withColumn(f"{_OWN}reason", _find_reason(contract, checked))
            .select(
                *(_quote(own).alias(name) for name, own in zip(records.columns, carried, strict=True)),
                *_select_added(contract, checked),
            )
        )

    return add


def evaluate(contract: Contract, column: str, schemas: SchemaFiles | None = None) -> Callable[[DataFrame], DataFrame]:
    """Return the value of one column of `name_values` for each record. An action raises Spark's error where the SQL
    throws."""

    def select(records: DataFrame) -> DataFrame:
        checked = analyze_contract(records.sparkSession, contract)
        value = list_values(records.sparkSession, contract, checked)[column]
        return _show_to_sql(records, contract, checked, schemas).select(value.alias(column))

    return select


def _show_to_sql(
    records: DataFrame,
    contract: Contract,
    checked: CheckedContract,
    schemas: SchemaFiles | None,
    poison: Sequence[PoisonRecord] = (),
) -> DataFrame:
    """Return all columns under names of our own, those that the contract's SQL sees, and the fault of each record."""
    decoding = find_decoding(records.sparkSession, contract, schemas)
    records = add_decoded(records, decoding)
    carried = [f"{_CARRIED}{name}" for name in records.columns]
    known = find_reason(records.columns, poison, _CARRIED)
    spark, has_json, own_text = records.sparkSession, contract.has_json, _quote(f"{_OWN}text")
    plain = _quote(f"{_CARRIED}{PLAIN}") if PLAIN in records.columns else F.lit(None).cast(checked.schema)
    payload = _get_payload(decoding)
    fault = _find_fault(spark, contract, checked, decoding, plain.isNull())
    text = _read_text(contract, payload, plain)
    value = F.coalesce(plain, _plan_fields(spark, checked.schema)[0]) if has_json else own_text
    if not contract.has_text:
        value = plain if contract.has_fields else payload.cast("binary")
    if known is not None:
        fault, text = F.coalesce(known, fault), F.when(known.isNull(), text)
    return (
        records.select(*(F.col(f"`{name}`").alias(own) for name, own in zip(records.columns, carried, strict=True)))
        .withColumns({f"{_OWN}text": text, f"{_OWN}is_null": _quote(f"{_CARRIED}value").isNull()})
        .withColumn(f"{_OWN}parsed", parse_document(own_text, checked.schema) if has_json else own_text)
        .withColumn(f"{_OWN}value", value)
        .select(*map(_quote, carried), *_select_visible(contract, decoding), fault.alias(f"{_OWN}fault"))
    )


def _quote(name: str) -> Column:
    return F.col(f"`{name}`")


def _get_payload(decoding: Decoding) -> Column:
    return _quote(f"{_CARRIED}{DOCUMENT if decoding.has_document else 'value'}")


def _read_text(contract: Contract, payload: Column, plain: Column) -> Column:
    """Return the value as text, that of an object wrapped in a document; null where it is read, or not UTF-8.

    A column of its own, which is not deterministic, for Spark interprets all expressions below `from_json`, and finds
    their methods by name again for each record.
    """
    text = payload.cast("string")
    if not contract.has_text:
        return F.lit(None).cast("string")
    if contract.has_json:
        return F.when(plain.isNull() & F.is_valid_utf8(text) & (F.spark_partition_id() >= 0), wrap(text))
    return F.when(F.is_valid_utf8(text), text)


def _select_visible(contract: Contract, decoding: Decoding) -> list[Column]:
    """Return all columns that the contract's SQL can see."""
    stamp, key = _quote(f"{_CARRIED}kafka_timestamp"), _quote(f"{_CARRIED}key").cast("string")
    key = _quote(f"{_CARRIED}{KEY_ROW}") if decoding.key_reader else key
    return [
        *([_quote(f"{_CARRIED}{HEADER_MAP}").alias(HEADERS)] if decoding.has_headers else []),
        F.lit(contract.topic).alias("kafka_topic"),
        _quote(f"{_CARRIED}kafka_partition").alias("kafka_partition"),
        _quote(f"{_CARRIED}offset").alias("kafka_offset"),
        key.alias("key"),
        _quote(f"{_OWN}value").alias("value"),
        F.when((stamp >= 0) & (stamp < _YEAR_10000_MS), F.timestamp_millis(stamp)).alias("kafka_timestamp"),
    ]


@lru_cache(maxsize=64)  # each step of this is a call of the JVM, by the hundred
def _plan_fields(spark: SparkSession, schema: StructType) -> tuple[Column, list[tuple[Column, Column]]]:
    """Return the SQL's `value` of a json value, and the faults of its fields."""
    text, document = _quote(f"{_OWN}text"), _quote(f"{_OWN}parsed")
    return read_value(text, document, schema), list_field_faults(text, document, _quote(f"{_OWN}value"), schema)


def _find_fault(
    spark: SparkSession, contract: Contract, checked: CheckedContract, decoding: Decoding, is_unread: Column
) -> Column:
    """Return the reason not to evaluate a record, null if there is none."""
    text, value = _quote(f"{_OWN}text"), _quote(f"{_OWN}value")
    has_headers = _quote(f"{_CARRIED}{HEADER_MAP}").isNotNull() if decoding.has_headers else F.lit(True)
    fault = F.when(~has_headers, "unreadable headers").when(
        F.col(f"{_OWN}is_null"), F.lit("tombstone" if contract.tombstone == "quarantine" else None).cast("string")
    )
    if decoding.has_faults:
        broken = _quote(f"{_CARRIED}{DOCUMENT_FAULT}")
        fault = fault.when(broken.isNotNull(), F.concat(F.lit("unparseable: "), broken))
    if decoding.key_reader:
        broken = _quote(f"{_CARRIED}{KEY_FAULT}")
        fault = fault.when(broken.isNotNull(), F.concat(F.lit("unparseable key: "), broken))
    if contract.format == "text":
        fault = fault.when(text.isNull(), "unparseable: not UTF-8")
    if contract.has_json:
        document = _quote(f"{_OWN}parsed")
        is_no_object, why = find_document_fault(text, document)
        why = F.concat(F.lit("unparseable: "), why)
        fault = fault.when(is_unread & is_no_object, name_framed(_get_payload(decoding).cast("binary"), why))
        for broken, what in _plan_fields(spark, checked.schema)[1]:
            fault = fault.when(is_unread & broken, F.concat(F.lit("unparseable: "), what))
    for name in contract.required:
        (path,) = find_paths(checked.schema, name)
        fault = fault.when(_get_field(value, path).isNull(), f"missing field {name}")
    return fault


def _get_field(value: Column, path: FieldPath) -> Column:
    for name in path:
        value = value.getField(name)
    return value


def _evaluate(spark: SparkSession, contract: Contract, checked: CheckedContract) -> Column:
    """Return event time, keys and measures, each as a struct of its `value`, null if its SQL throws; all together as
    one struct, null where the record has a fault.

    The SQL is in a branch, because Spark computes subexpressions that occur twice beforehand, outside of TryEval,
    unless only a branch holds them. `spark_partition_id` is a barrier: with it, the column is not deterministic, which
    keeps Spark from pushing a filter on `reason`, with all of this in it, below the parser.
    """
    values = list_values(spark, contract, checked)
    tried = [_try_eval(spark, F.struct(value.alias("value"))).alias(name) for name, value in values.items()]
    return F.when(_quote(f"{_OWN}fault").isNull() & (F.spark_partition_id() >= 0), F.struct(*tried))


def list_values(spark: SparkSession, contract: Contract, checked: CheckedContract) -> dict[str, Column]:
    """Return the SQL of each column of `name_values`, in that order."""
    read = partial(read_sql, spark, make_visible(spark, contract, checked.schema))
    event = read(contract.event_time)
    event_ms = F.unix_millis(event) if checked.event_is_timestamp else event.cast("bigint")
    keys = {f"k_{key.name}": read(key.sql) for key in contract.keys}
    return {
        "event_ms": event_ms,
        **keys,
        **{
            f"m_{measure.name}": cast_input(read, measure, checked, event_ms)
            for measure in list_written_measures(contract)
        },
    }


def _try_eval(spark: SparkSession, column: Column) -> Column:
    jvm: Any = spark._jvm
    return to_column(spark, jvm.org.apache.spark.sql.catalyst.expressions.TryEval(to_expression(spark, column)))


def _find_reason(contract: Contract, checked: CheckedContract) -> Column:
    event, stamp = _get_value("event_ms"), F.coalesce(_quote(f"{_CARRIED}kafka_timestamp"), F.lit(-1))
    reason = F.when(_quote(f"{_OWN}fault").isNotNull(), _quote(f"{_OWN}fault"))
    names = name_values(contract)
    for name, shown in names.items():
        if contract.on_null == "quarantine" or not name.startswith("m_"):
            reason = reason.when(F.col(f"{_OWN}found.{name}").isNull(), f"{SQL_FAILED}: {shown}")
    reason = reason.when(event.isNull(), "no event time")
    reason = reason.when(~event.between(0, MAX_EVENT_MS), "event time before 1970 or after 2286")
    if contract.horizon_ms is not None or contract.skew_ms is not None:
        reason = reason.when(stamp < 0, "no Kafka timestamp to judge the event time by")
    if contract.horizon_ms is not None:
        reason = reason.when(event + contract.horizon_ms < stamp, "beyond horizon")
    if contract.skew_ms is not None:
        reason = reason.when(event - contract.skew_ms > stamp, "beyond skew")
    del names["event_ms"]
    for name, shown in names.items():
        for unfit, why in list_unfit(_get_value(name), checked.types[name]):
            reason = reason.when(unfit, f"{shown} not storable: {why}")
    texts = [_get_value(f"k_{k.name}") for k in contract.keys if checked.types[f"k_{k.name}"] == StringType()]
    if texts:
        total = sum((F.coalesce(F.octet_length(text), F.lit(0)) for text in texts), F.lit(0))
        reason = reason.when(total > MAX_KEY_BYTES, f"keys not storable: longer than {MAX_KEY_BYTES} bytes together")
    return reason


def _get_value(name: str) -> Column:
    return F.col(f"{_OWN}found.{name}.value")


def _select_added(contract: Contract, checked: CheckedContract) -> list[Column]:
    reason = _quote(f"{_OWN}reason")
    found = {name: _get_value(name) for name in ("event_ms", *checked.types)}
    for measure in contract.measures:
        if measure.operation == SKIPPED:
            found[f"m_{measure.name}"] = F.col(f"{_OWN}found.m_{measure.sql}").isNull().cast("int")
        elif measure.stored == "count" and contract.on_null == "skip":
            found[f"m_{measure.name}"] = F.coalesce(found[f"m_{measure.name}"], F.lit(0))
    counted = [F.when(reason.isNull(), value).alias(name) for name, value in found.items()]
    return [counted[0], reason.alias("reason"), *counted[1:]]
