"""A value in Confluent's wire format is named as such, and nothing else is."""

from __future__ import annotations

import gzip
import struct

import pytest
from pyspark.sql import SparkSession

from onceover.spark.wire_format import find_remedy

from .contracts import interpret_values, list_reasons, make_contract, make_keyed

pytestmark = pytest.mark.spark

NO_OBJECT, UNREADABLE = "unparseable: not one JSON object", "unparseable: not UTF-8"


def test_value_in_confluents_wire_format_is_named(spark: SparkSession) -> None:
    framed = "unparseable: Confluent's wire format, schema ID "
    json_schema, avro = b'\x00\x00\x00\x00\x07{"a":1}', b"\x00\x00\x01\x86\xa1\x02\x06abc\x9a\xf2\xff\xff"
    named = [json_schema, avro, b"\x00\x00\x00\x00\x07", b"\x00\x00\xff\xff\xff\x02"]
    utf_16 = '{"a":1}'.encode("utf-16-be")
    others = [
        b"\x00\x00\x00\x07",
        b"\x00" * 8,
        struct.pack(">q", 7),
        utf_16,
        b"\x00\x01\x00\x00\x00\x00",
        b"\x01" + avro,
    ]

    found = list_reasons(spark, make_contract(), [*named, *others])

    assert found[:4] == [f"{framed}{schema_id}" for schema_id in (7, 100001, 7, 0xFFFFFF)]
    assert set(found[4:]) == {NO_OBJECT, UNREADABLE}
    assert find_remedy(f"{framed}7")
    assert find_remedy(NO_OBJECT) is None


def test_json_is_read_from_what_follows_the_schemas_id(spark: SparkSession) -> None:
    contract = make_keyed("value.a", wire_format="confluent")
    head = b"\x00\x00\x00\x00\x07"
    values = [head + b'{"a":1}', head + b'{"a":"x"}', b'{"a":1}', head[:4], head, b"\x01" + head[1:] + b"{}", b"", None]

    rows = interpret_values(spark, contract, values)

    no_frame = "unparseable: not in Confluent's wire format"
    assert rows[0].k_it == 1
    assert [row.reason for row in rows] == [
        *(None, "unparseable: field a is no INT", no_frame, no_frame, NO_OBJECT, no_frame, no_frame, "tombstone")
    ]


def test_other_formats_are_read_from_the_payload_too(spark: SparkSession) -> None:
    value = b"\x00\x00\x00\x00\x07\xff"
    binary = make_keyed("hex(value)", format="binary", schema="", wire_format="confluent")

    assert [row.k_it for row in interpret_values(spark, binary, [value])] == ["FF"]
    packed = make_keyed("value", format="text", schema="", wire_format="confluent", compression="gzip")
    (row,) = interpret_values(spark, packed, [gzip.compress(value[:5] + b"ok")])
    assert row.k_it == "ok"
