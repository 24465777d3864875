"""Contracts and records for tests of their interpretation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from onceover.config.mistakes import MistakesError
from onceover.config.pipeline_file import read_pipeline
from onceover.config.pipelines import find
from onceover.lines.escapes import escape_headers
from onceover.model.contract import Contract, Key
from onceover.model.measures import Measure
from onceover.spark.contract_check import check_contract
from onceover.spark.decoding import DOCUMENT, DOCUMENT_FAULT, HEADER_MAP, KEY_FAULT, KEY_ROW, find_decoding
from onceover.spark.interpret import interpret
from onceover.spark.plain_json import PLAIN

FLIGHTS = find("flights", Path(__file__).parents[3]).contract
NOON = 1_357_041_600_000  # 2013-01-01T12:00:00Z

# Of another shape in everything: 5 minutes, event time inside the value, nullable keys, decimals.
PAYMENTS = """
[contract]
topic = "payments"
window_minutes = 5
schema = \"\"\"
  payment STRUCT<at_ms: BIGINT, amount: DECIMAL(12, 2), currency: STRING>,
  country STRING, card STRING, note STRING, cents BIGINT, tags ARRAY<STRING>
\"\"\"
required = ["payment.at_ms"]
event_time = "value.payment.at_ms"
[contract.keys]
country = "value.country"
customer = "key"
is_large = "value.payment.amount >= 1000"
[contract.measures]
payments = { count = "*" }
noted = { count = "value.note" }
amount = { sum = "value.payment.amount" }
cents = { sum = "value.cents" }
least = { min = "value.payment.amount" }
last_note = { max = "value.note" }
[contract.bounds]
horizon = "1d"
skew = "none"
"""
_DECODED = (HEADER_MAP, DOCUMENT, DOCUMENT_FAULT, KEY_ROW, KEY_FAULT, PLAIN)
SCHEMA = "kafka_partition int, offset bigint, kafka_timestamp bigint, key binary, headers binary, value binary"


def read_payments(folder: Path) -> Contract:
    path = folder / "payments.toml"
    path.write_text(PAYMENTS)
    return read_pipeline(path).contract


def make_contract(**changed: Any) -> Contract:
    """Return a contract with one field `a` of any type and no bounds, but for `changed`."""
    contract = Contract(
        topic="t",
        window_minutes=60,
        format="json",
        schema="a INT",
        required=(),
        event_time="kafka_timestamp",
        tombstone="quarantine",
        keys=(),
        measures=(Measure("records", "count", "*"),),
        horizon_ms=None,
        skew_ms=None,
    )
    return replace(contract, **changed)


def make_keyed(sql: str, **changed: Any) -> Contract:
    return make_contract(keys=(Key("it", sql),), **changed)


def make_measured(operation: str, sql: str, **changed: Any) -> Contract:
    return make_contract(measures=(Measure("it", operation, sql),), **changed)


def make_records(spark: SparkSession, values: Sequence[bytes | None], **column: Any) -> DataFrame:
    """Return a record a value, in one Spark partition and so in order; `column` sets kafka_timestamp, key or headers of
    all."""
    stamp, key, headers = column.get("kafka_timestamp", NOON), column.get("key"), escape_headers(column.get("headers"))
    rows = [(0, n, stamp, key, bytearray(headers), None if v is None else bytearray(v)) for n, v in enumerate(values)]
    return spark.createDataFrame(rows, SCHEMA).coalesce(1)


def interpret_values(
    spark: SparkSession, contract: Contract, values: Sequence[bytes | None], **column: Any
) -> list[Row]:
    """Return what becomes of these values, which is the same where they come as ingest reads them."""
    records = make_records(spark, values, **column)
    rows, as_read = (
        given.transform(interpret(contract)).drop("value", *_DECODED).orderBy("offset").collect()
        for given in (records, read_as_ingest(records, contract))
    )
    for row in rows:
        assert (row.event_ms is None) != (row.reason is None)
    assert as_read == rows
    return rows


def read_as_ingest(records: DataFrame, contract: Contract) -> DataFrame:
    """Make a string of each value, and add what ingest decodes, each record alone: a value that is not plain would hide
    the others."""
    decoding = find_decoding(records.sparkSession, contract, plain=True)
    fields = [
        pa.field("value", pa.string()) if each.name == "value" else each for each in to_arrow_schema(records.schema)
    ]
    schema = pa.schema([*fields, *decoding.fields])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        singles = (batch.slice(n, 1) for batch in batches for n in range(len(batch)))
        for single in singles:
            for part, added in decoding.decode(single):
                arrays = [each.view(field.type) for each, field in zip(part.columns, fields, strict=True)]
                yield pa.RecordBatch.from_arrays([*arrays, *added], schema=schema)

    return records.mapInArrow(read, from_arrow_schema(schema))


def list_reasons(
    spark: SparkSession, contract: Contract, values: Sequence[bytes | None], **column: Any
) -> list[str | None]:
    return [row.reason for row in interpret_values(spark, contract, values, **column)]


def list_refusals(spark: SparkSession, contract: Contract) -> list[str]:
    """Return the mistakes of a contract that the check refuses, each in one line."""
    with pytest.raises(MistakesError) as caught:
        check_contract(spark, contract, "pipelines/t.toml")
    assert "\n" not in str(caught.value)
    return [str(mistake).removeprefix("pipelines/t.toml: contract.") for mistake in caught.value.mistakes]
