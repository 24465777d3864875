"""Avro and Protobuf in SQL: values and keys are structs of the reader's schema; what cannot be read has its reason."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from tests.onceover.formats.protobuf.messages import EVENT, make_class

from onceover.config.mistakes import MistakesError
from onceover.model.contract import Key
from onceover.spark.contract_check import check_contract

from .contracts import interpret_values, make_contract, make_measured

pytestmark = pytest.mark.spark
RIDE = {
    "type": "record",
    "name": "Ride",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"]},
        {"name": "fare", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "stops", "type": {"type": "array", "items": {"type": "record", "name": "Stop", "fields": [
            {"name": "at", "type": {"type": "int", "logicalType": "date"}}]}}},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
    ],
}  # fmt: skip
KEY = {"type": "record", "name": "K", "fields": [{"name": "tenant", "type": "string"}]}


def write(schema: Mapping[str, Any], value: Mapping[str, Any]) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(dict(schema)), value)
    return written.getvalue()


def make_ride(**changed: Any) -> bytes:
    ride = {"id": 7, "city": "Oslo", "fare": Decimal("-1.25"), "stops": [{"at": 1}, {"at": 2}], "tags": {"x": 0.5}}
    return write(RIDE, ride | changed)


def test_fields_of_avro_are_sql_s(spark: SparkSession) -> None:
    cases = {
        "value.city": "Oslo",
        "CAST(value.id AS STRING)": "7",
        "CAST(value.fare AS STRING)": "-1.25",
        "CAST(value.stops[1].at AS STRING)": "1970-01-03",
        "CAST(value.tags['x'] AS STRING)": "0.5",
        "key": None,
    }
    contract = make_contract(
        format="avro",
        schema="",
        reader_schema=json.dumps(RIDE),
        required=("city",),
        keys=tuple(Key(f"c{number}", sql) for number, sql in enumerate(cases)),
    )

    good, missing, cut, tombstone = interpret_values(spark, contract, [make_ride(), make_ride(city=None), b"\2", None])

    assert {sql: good[f"k_c{number}"] for number, sql in enumerate(cases)} == cases
    assert [row.reason for row in (missing, cut, tombstone)] == [
        "missing field city",
        "unparseable: Avro cut off",
        "tombstone",
    ]


def test_fields_of_protobuf_are_sql_s(spark: SparkSession) -> None:
    contract = make_measured(
        "sum", "value.a_uint64", format="protobuf", schema="", reader_schema=EVENT, message="shop.Event"
    )
    event = make_class()(a_uint64=2**64 - 1)

    good, empty, bad = interpret_values(spark, contract, [event.SerializeToString(), b"", b"\xff"])

    assert (good.m_it, empty.m_it) == (Decimal(2**64 - 1), Decimal(0))
    assert bad.reason == "unparseable: not a Protobuf message"


def test_keys_of_avro_are_structs(spark: SparkSession) -> None:
    contract = make_contract(
        key_format="avro", key_schema=json.dumps(KEY), keys=(Key("tenant", "key.tenant"),), schema="a INT"
    )

    (good,) = interpret_values(spark, contract, [b'{"a": 1}'], key=bytearray(write(KEY, {"tenant": "acme"})))
    (null,) = interpret_values(spark, contract, [b"{}"])
    (bad,) = interpret_values(spark, contract, [b"{}"], key=bytearray(b"\x08a"))

    assert (good.k_tenant, null.k_tenant, null.reason) == ("acme", None, None)
    assert bad.reason == "unparseable key: Avro cut off"


@pytest.mark.parametrize(
    ("changed", "key", "what"),
    [
        ({"reader_schema": "{}"}, "contract.schema_file", "no type"),
        ({"reader_schema": '"string"'}, "contract.schema_file", "it is of type string, and not a record"),
        ({"required": ("town",)}, "contract.required", "the schema has no field town"),
        ({"key_format": "avro", "key_schema": "["}, "contract.key_schema_file", "no JSON"),
        ({"format": "protobuf"}, "contract.schema_file", "protoc: line 1:1: "),
        ({"event_time": "value.nothing"}, "contract.event_time", "nothing"),
    ],
)
def test_check_names_what_sql_cannot_see(spark: SparkSession, changed: Mapping[str, Any], key: str, what: str) -> None:
    contract = make_contract(format="avro", schema="", reader_schema=json.dumps(RIDE))
    check_contract(spark, contract)

    with pytest.raises(MistakesError) as raised:
        check_contract(spark, replace(contract, **changed))

    assert [what in each.what for each in raised.value.mistakes if each.key == key] == [True]
