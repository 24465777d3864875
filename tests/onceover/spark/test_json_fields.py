"""Each field of a JSON value is what Python reads there, or none: never another value."""

from __future__ import annotations

import random
import time
from collections import Counter
from decimal import Decimal
from typing import cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from onceover.spark.json_value import find_document_fault, list_field_faults, parse_document, read_value, wrap

from .contracts import interpret_values, list_reasons, make_contract, make_keyed
from .json_values import REFUSED, TYPES, load, make_object, read

pytestmark = pytest.mark.spark

FIELDS = {f"c{number}": kind for number, kind in enumerate(TYPES)}


def compare(spark: SparkSession, objects: int, seed: int) -> dict[str, int]:
    """Return how many values of each type were read; fail for one that is not Python's."""
    chance = random.Random(seed)
    texts = [make_object(FIELDS, chance) for _ in range(objects)]
    schema = cast(StructType, StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in FIELDS.items())))
    frame = spark.createDataFrame([(text,) for text in texts], "given STRING").withColumn("text", wrap(F.col("given")))
    frame = frame.withColumn("document", parse_document(F.col("text"), schema))
    frame = frame.withColumn("value", read_value(F.col("text"), F.col("document"), schema))
    seen = F.col("text"), F.col("document")
    faults = [find_document_fault(*seen), *list_field_faults(*seen, F.col("value"), schema)]
    fault = F.coalesce(*(F.when(condition, what) for condition, what in faults))
    read_there = dict.fromkeys(TYPES, 0)
    for row in frame.select("given", "value.*", fault.alias("fault")).toArrow().to_pylist():
        members, lost = load(row["given"]), 0
        for name, kind in FIELDS.items():
            expected, found = read(kind, members[name]), row[name]
            found = dict(found) if kind.startswith("MAP") and found is not None else found
            if kind.startswith(("ARRAY", "MAP", "STRUCT")) and row["fault"] is not None:
                continue  # some of its values may be null, and the record goes to quarantine
            if found is None:
                lost += members[name] is not None
            else:
                assert expected is not REFUSED, f"{kind} {members[name]!r} was read as {found!r}"
                assert found == expected, f"{kind} {members[name]!r} was read as {found!r}, not {expected!r}"
                read_there[kind] += 1
        assert not lost or row["fault"] is not None, row["given"]
    return read_there


def test_value_is_what_python_reads_or_quarantined(spark: SparkSession) -> None:
    read_there = compare(spark, 2_500, seed=29)

    assert min(read_there.values()) > 400, read_there


@pytest.mark.rare
@pytest.mark.largest
def test_million_values_are_what_python_reads_or_quarantined(spark: SparkSession) -> None:
    read_there = sum((Counter(compare(spark, 10_000, seed)) for seed in range(6)), Counter[str]())

    assert read_there.total() > 600_000, read_there


@pytest.mark.parametrize("kind", ["STRING", "DECIMAL(12,2)", "ARRAY<DECIMAL(12,2)>", "MAP<STRING,TIMESTAMP>"])
def test_from_json_of_the_contract_reads_as_the_schema_does(spark: SparkSession, kind: str) -> None:
    chance = random.Random(29)
    texts = [make_object({"n": kind}, chance) for _ in range(300)]
    texts += ["", "null", "[1]", '{"n":1}{"n":2}', '{"n":1} x', "{'n':1}", '{"m":1}', "{", '{"n":"\\ud800"}']
    written = "hex(to_csv(struct(%s)))" if kind.startswith(("ARRAY", "MAP", "STRUCT")) else "CAST(%s AS STRING)"

    by_sql, by_schema = (
        interpret_values(spark, contract, [text.encode() for text in texts])
        for contract in (
            make_keyed(written % f"from_json(value, 'n {kind}').n", format="text", schema=""),
            make_keyed(written % "value.n", schema=f"n {kind}"),
        )
    )

    assert [(row.k_it, row.reason is None) for row in by_sql] == [(r.k_it, r.reason is None) for r in by_schema]
    assert {row.reason for row in by_sql} == {None, "SQL failed: key it"}
    assert sum(row.k_it is not None for row in by_sql) > 30


@pytest.mark.parametrize("end", ["\\n", "\\r", "\\r\\n", "\\u0085", "\\u2028", " ", "\\u0000"])
def test_text_with_a_line_break_behind_it_is_no_value(spark: SparkSession, end: str) -> None:
    texts = {"d": "12", "e": "1e2", "t": "2024-02-29T10:15", "z": "2024-02-29T10:15:00Z", "n": "2024-02-29 10:15"}
    contract = make_contract(
        schema="d DECIMAL(12, 2), e DECIMAL(12, 2), t TIMESTAMP, z TIMESTAMP, n TIMESTAMP_NTZ, day DATE, l ARRAY<DATE>"
    )
    values = [f'{{"{name}":"{text}{end}"}}' for name, text in {**texts, "day": "2024-02-29"}.items()]
    values += [f'{{"l":["2024-02-29{end}"]}}', f'{{"l":["2024-02-29","2024-02-29{end}"]}}']

    found = list_reasons(spark, contract, [value.encode() for value in values])

    assert all(reason and "is no " in reason for reason in found), found


def test_number_with_a_huge_exponent_costs_no_time(spark: SparkSession) -> None:
    contract = make_contract(schema="a STRUCT<b: ARRAY<DECIMAL(10, 2)>>, c STRING")
    literals = [b"1e99999999", b"-1.5E+9999999", b"1e-99999999", b'"1e99999999"', b'"1e-99999999"']
    values = [b'{"c":"\\\\\\"","a":{"b":[1.5,%s]}}' % literal for literal in literals]
    started = time.monotonic()

    found = list_reasons(spark, contract, values)

    assert found == ["unparseable: field a.b is no ARRAY<DECIMAL(10,2)>"] * 5
    assert time.monotonic() - started < 60  # the first of these alone takes Spark hours


def test_text_that_looks_like_a_huge_number_is_left_alone(spark: SparkSession) -> None:
    contract = make_keyed("value.a", schema="a DECIMAL(10, 2), c STRING")
    values = [b'{"a":1.5,"c":"12e3456789"}', b'{"a":1.5,"c":"x\\",1e9999999,\\\\"}', b'{"a":1.5e1,"d":["1e9999999"]}']

    rows = interpret_values(spark, contract, values)

    assert [(row.reason, row.k_it) for row in rows] == [
        *((None, Decimal("1.50")), (None, Decimal("1.50")), (None, Decimal("15.00")))
    ]


def test_exponent_is_read_beside_other_long_numbers(spark: SparkSession) -> None:
    contract = make_keyed("value.a", schema="a DECIMAL(38, 10), id STRING, b DECIMAL(38, 10), x DOUBLE")
    others = ['"t":1700000000000000000', '"id":"card 4111111111111111111"', '"ip":"192.168.100.200.1"']
    others += ['"b":1234567890123456789.5', '"id":"00000000000000001e5"', '"x":0.1234567890123456789']
    rounded = ["1.000000000000000000001e2", "10000000000000000e2", "1e-100", f"1.{'0' * 50}1"]
    values = [f'{{"a":1E+2,{each}}}' for each in others] + [f'{{"a":{each}}}' for each in rounded]

    rows = interpret_values(spark, contract, [value.encode() for value in values])

    assert [row.k_it for row in rows] == [Decimal(100)] * len(others) + [None] * len(rounded)
    assert [row.reason is None for row in rows] == [True] * len(others) + [False] * len(rounded)
