"""Conversions of texts that the check refuses, each with what to write instead."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from .contracts import list_refusals, make_contract, make_keyed

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "sql", ["CAST(split(key, ',') AS ARRAY<TIMESTAMP>)[0]", "CAST(array(key) AS ARRAY<TIMESTAMP>)[0]"]
)
def test_time_of_day_has_no_other_way_to_the_clock(spark: SparkSession, sql: str) -> None:
    (line,) = list_refusals(spark, make_contract(event_time=sql))

    assert "makes TIMESTAMPs of several texts at once, of which none is looked at" in line


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("parse_json(key) IS NULL", "makes a VARIANT, which rounds numbers; take from_json(...)"),
        ("try_variant_get(parse_json(key), '$.n', 'int')", "makes a VARIANT"),
        ("CAST(CAST(key AS VARIANT) AS INT)", "makes a VARIANT"),
        ("from_csv(key, 'at TIMESTAMP').at", "makes null by from_csv of a text that is no value of its type"),
        ("from_csv(key, 'n INT, s STRING').n", "declare each field there as STRING, and cast it"),
        ("from_xml(key, 'n INT').n", "makes null by from_xml"),
        ("xpath_int(key, 'a/b')", "makes 0 by xpath of a text that is no number; take xpath_string(...) and a cast"),
        ("CAST(split(key, ',') AS ARRAY<DECIMAL(9, 1)>)[0]", "text -> CAST(text AS DECIMAL(28, 6)))"),
        ("from_json(key, 'n INT', map('mode', 'DROPMALFORMED')).n", "gives from_json options; leave them out"),
        ("from_json(key, 'ARRAY<INT>')[0]", "reads ARRAY<INT> by from_json; read an object with it"),
        ("from_json(key, 'MAP<STRING, INT>')['n']", "reads MAP<STRING,INT> by from_json; read an object with it"),
        ("from_json(key, 's STRUCT<t: BINARY>').s.t IS NULL", "reads field s.t as BINARY by from_json; declare it as"),
    ],
)
def test_reader_that_makes_null_or_another_value_is_refused(spark: SparkSession, sql: str, words: str) -> None:
    (line,) = list_refusals(spark, make_keyed(sql))

    assert words in line
