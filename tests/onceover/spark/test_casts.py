"""What the contract's SQL makes of a text or a number: the value that is written, or no value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from onceover.model.measures import Measure
from onceover.spark.aggregate import aggregate
from onceover.spark.interpret import interpret

from .contracts import interpret_values, list_reasons, make_contract, make_keyed, make_records

pytestmark = pytest.mark.spark

JANUARY = datetime(2024, 1, 2, 10, tzinfo=UTC).replace(tzinfo=None)  # as Spark hands it out
DATES = {"2024-01-02": JANUARY.date(), "2024-1-2": JANUARY.date(), "2024-01-02 10:00:00": JANUARY.date()}
NO_DATES = [
    *(f"2024-02-29{end}" for end in (" 99:99", " 24:00:00", " 10:15:60", " .", "T", " 10", " 10:")),
    *(f"2024-02-29T10:15:00{end}" for end in ("+19:00", "\u200b")),
    *("2024", "2024-01", "2024-01-02 soon", "2024-01-02 10:00 AM", "2024-13-02", "soon", "12:30", ""),
]
TIMELESS = [
    *(
        f"2024-01-02{end}"
        for end in (" 10", "T10", " 10:00+19:00", " 10:00\u2028", " 10:00 Europe/Berlin", "T10:00:00CET")
    ),
    *("2024", "2024-01", "2024-01 10:00", "12:30", "T09:15:00", " 9:15", "soon", ""),
]

# SQL over a STRING `a` and a DOUBLE `b`: texts that it takes, with their values, and texts that it does not.
Cases = Mapping[str, tuple[Mapping[str, Any], Sequence[str]]]
CASTS: Cases = {
    "CAST(value.a AS INT)": ({"12": 12, " 12 ": 12}, ["x", "3000000000", "1.5", "١٢"]),
    "CAST(value.a AS DECIMAL(12, 2))": (
        {"1.5": Decimal("1.50"), "1e2": Decimal("100.00")},
        ["12,50", "1e99999999", "١٢"],
    ),
    "CAST(value.b AS DECIMAL(18, 6))": ({"1.5": Decimal("1.500000")}, ["2e12"]),
    "CAST(value.b AS INT)": ({"1": 1}, ["3e9"]),
    "CAST(value.b AS INT) * 2000000": ({"1000": 2_000_000_000}, ["2000"]),
    "CAST(1 / value.b AS DECIMAL(9, 3))": ({"2": Decimal("0.500")}, ["0"]),
    "to_timestamp(value.a)": ({"2024-01-02 10:00:00 UTC": JANUARY, "2024-01-02T11:00:00+01:00": JANUARY}, TIMELESS),
    "CAST(value.a AS TIMESTAMP)": ({"2024-01-02T10:00:00Z": JANUARY}, TIMELESS),
    "hour(value.a)": ({"2024-01-02T10:00:00Z": 10}, TIMELESS),
    "to_timestamp(value.a, 'yyyy-MM-dd HH:mm')": ({"2024-01-02 10:00": JANUARY}, ["2024-13-02 10:00", "10:00"]),
    "CAST(CAST(value.a AS DOUBLE) AS DECIMAL(9, 2))": (
        {"1.5": Decimal("1.50"), " -1e2 ": Decimal("-100.00"), "+.5": Decimal("0.50"), "0e9": Decimal("0.00")},
        ["5d", "5F", "0x1p3", "1e400", "1e-400", "NaN", "12,50", "١٢", "1_000"],
    ),
    "CAST(CAST(value.a AS FLOAT) AS STRING)": (
        {"1.5": "1.5", "-inf": "-Infinity", "nan": "NaN"},
        ["5d", "1e39", "-1e-50", "0.000000e0f"],
    ),
    "CAST(CAST(value.a AS TIMESTAMP_NTZ) AS TIMESTAMP)": (
        {"2024-01-02T10:00": JANUARY, " 2024-01-02 10:00:00.0 ": JANUARY},
        ["2024-01-02T10:00:00+05:30", "2024-01-02 10:00 UTC+01:00", "2024-01-02 10:00Z", "12:30", "2024"],
    ),
    "try_cast(value.a AS TIMESTAMP_NTZ)::TIMESTAMP": ({"2024-01-02T10:00": JANUARY, "2024-01-02T10:00Z": None}, []),
    "CAST(exp(value.b) AS DECIMAL(9, 2))": ({"0": Decimal("1.00")}, ["1000"]),
    "CAST(CAST(exp(value.b) AS FLOAT) AS DECIMAL(9, 2))": ({"0": Decimal("1.00")}, ["100", "1000"]),
    "CAST(acos(value.b) AS DECIMAL(9, 2))": ({"1": Decimal("0.00")}, ["2"]),
    "try_cast(exp(value.b) AS DECIMAL(9, 2))": ({"0": Decimal("1.00"), "1000": None}, []),
    "CAST(value.a * 1.0D AS INT)": ({"5": 5}, ["5d", "1e400"]),
    "CAST(to_number(value.a, '999') AS INT)": ({"512": 512}, ["١٢٣"]),
    "to_date(value.a)": (DATES, NO_DATES),
    "CAST(value.a AS DATE)": (DATES, NO_DATES),
    "CAST(transform(split(value.a, ','), t -> CAST(t AS DOUBLE))[1] AS INT)": ({"1,5": 5}, ["1,5d"]),
    "get_json_object(value.a, '$.n')": (
        {
            '{"n":1.25}': "1.25",
            '{"n":12345678901234567890}': "12345678901234567890",
            '{"n":"x","m":0.12345678901234567890}': "x",
            '{"n":[1,2.5]}': "[1,2.5]",
            '{"n":0.30000000000000004}': "0.30000000000000004",
            '{"n":-0.3000000000000001,"m":"12345678901234567890"}': "-0.3000000000000001",
        },
        # Of the last, get_json_object does not tell whether it is a number or a string.
        [
            '{"n":0.12345678901234567890}',
            '{"n":1e400}',
            '{"n":1e-400}',
            '{"n":[1.0000000000000000001]}',
            '{"n":"1.0000000000000000001"}',
        ],
    ),
    "from_json(value.a, 'n STRING, m DECIMAL(9, 2)').n": (
        {'{"n":"0.12345678901234567890"}': "0.12345678901234567890", '{"n":12,"m":1.5}': "12", '{"m":"1.50"}': None},
        ['{"n":0.12345678901234567890}', '{"n":1.50}', '{"n":"x","m":1.005}', '{"n":"x"} {"n":"y"}', "[]", "", "x"],
    ),
    "try_cast(value.a AS INT)": ({"12": 12, "x": None}, []),
    "try_cast(value.a AS DECIMAL(9, 2))": ({"1.5": Decimal("1.50"), "1e99999999": None, "١": None}, []),
    "CAST(try_cast(value.a AS DOUBLE) AS INT)": ({"12": 12, "5d": None, "1e400": None}, []),
    "try_cast(value.a AS DATE)": ({"2024-01-02": JANUARY.date(), "2024": None, "soon": None}, []),
    "try_to_timestamp(value.a)": ({"2024-01-02T10:00:00Z": JANUARY, "12:30": None, "2024": None}, []),
    "try_to_number(value.a, '99')": ({"12": Decimal(12), "١٢": None}, []),
    "value.a": ({"x": "x"}, []),
}


@pytest.mark.parametrize("sql", CASTS)
def test_cast_gives_what_is_written_or_quarantine(spark: SparkSession, sql: str) -> None:
    good, bad = CASTS[sql]
    texts = [*good, *bad]
    values = [
        b"{}",
        *(json.dumps({"a": text, "b": float(text)} if "value.b" in sql else {"a": text}).encode() for text in texts),
    ]

    rows = interpret_values(spark, make_keyed(sql, schema="a STRING, b DOUBLE"), values)

    assert [row.reason for row in rows] == [None] * (1 + len(good)) + ["SQL failed: key it"] * len(bad)
    assert [row.k_it for row in rows[: 1 + len(good)]] == [None, *good.values()]


def test_skipped_record_counts_as_null_for_that_measure_alone(spark: SparkSession) -> None:
    sums = (
        Measure("n", "count", "*"),
        Measure("it", "sum", "CAST(value.a AS INT)"),
        Measure("c", "count", "CAST(value.a AS INT)"),
    )
    skips = (Measure("it_skipped", "skipped", "it"), Measure("c_skipped", "skipped", "c"))
    contract = make_contract(schema="a STRING", measures=(*sums, *skips), on_null="skip")
    values = [b'{"a":"1"}', b'{"a":"x"}', b'{"a":null}']

    rows = interpret_values(spark, contract, values)
    grouped = make_records(spark, values).transform(interpret(contract)).transform(aggregate(contract)).collect()

    assert [(r.reason, r.m_n, r.m_it, r.m_c, r.m_it_skipped, r.m_c_skipped) for r in rows] == [
        *((None, 1, 1, 1, 0, 0), (None, 1, None, 0, 1, 1), (None, 1, None, 0, 0, 0)),
    ]
    assert [(r.n, r.it, r.c, r.it_skipped, r.c_skipped) for r in grouped] == [(3, 1, 1, 1, 1)]
    assert list_reasons(spark, make_keyed("CAST(value.a AS INT)", schema="a STRING", on_null="skip"), values) == [
        *(None, "SQL failed: key it", None)
    ]


TIMES = [
    *("timestamp(value.a)", "to_timestamp(value.a)", "try_to_timestamp(value.a)", "to_timestamp_ltz(value.a)"),
    *("to_timestamp_ntz(value.a)::timestamp", "value.a::timestamp_ntz::timestamp", "date_trunc('hour', value.a)"),
    *(
        "from_utc_timestamp(value.a, 'Asia/Tokyo')",
        "convert_timezone('UTC', 'UTC', value.a)::timestamp",
        "try_cast(value.a AS TIMESTAMP)",
    ),
    *("value.a + INTERVAL 1 HOUR", "timestampadd(HOUR, 1, value.a)", "greatest(value.a::timestamp, kafka_timestamp)"),
    *("transform(array(value.a), x -> x::timestamp)[0]", "last_day(value.a::timestamp)::timestamp"),
]


def test_time_of_day_never_gets_a_date(spark: SparkSession) -> None:
    measures = [Measure(f"m{number}", "max", sql) for number, sql in enumerate(TIMES)]
    skips = [Measure(f"m{number}_skipped", "skipped", f"m{number}") for number in range(len(TIMES))]
    contract = make_contract(schema="a STRING", measures=(*measures, *skips), on_null="skip")

    (row,) = interpret_values(spark, contract, [b'{"a":"12:30"}'])

    assert {sql: row[f"m_m{number}"] for number, sql in enumerate(TIMES)} == dict.fromkeys(TIMES)
    skipped = {sql: row[f"m_m{number}_skipped"] for number, sql in enumerate(TIMES)}
    assert skipped == {sql: 0 if sql.startswith("try_") else 1 for sql in TIMES}
