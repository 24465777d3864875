"""A value in Confluent's wire format is named as such, and nothing else is."""

from __future__ import annotations

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

    text = "CAST(substring(value, 6) AS STRING)"  # what the remedy says
    binary = make_keyed(f"get_json_object({text}, '$.a')", format="binary", schema="")
    (row,) = interpret_values(spark, binary, [json_schema])
    assert (row.reason, row.k_it) == (None, "1")
