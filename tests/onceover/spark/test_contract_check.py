"""Contracts that Spark can carry out, the same way each time, and the refusals of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from onceover.config.mistakes import MistakesError
from onceover.config.pipeline_file import read_pipeline
from onceover.errors import TerminalError
from onceover.model.contract import Column, Key
from onceover.model.measures import Measure
from onceover.spark.contract_check import analyze_contract, check_contract
from onceover.spark.contract_patterns import list_warnings

from .contracts import (
    FLIGHTS,
    PAYMENTS,
    list_refusals,
    make_contract,
    make_keyed,
    make_measured,
    read_payments,
)

pytestmark = pytest.mark.spark

NUMBERS = "i INT, l BIGINT, d DECIMAL(12, 2), w DECIMAL(38, 2), f DOUBLE, s STRING"


def test_columns_have_postgresqls_types(spark: SparkSession, tmp_path: Path) -> None:
    assert check_contract(spark, FLIGHTS).measures == (
        *(Column("flights", "bigint", "count"), Column("delay_sum", "bigint", "sum")),
        Column("delay_max", "integer", "max"),
    )
    found = check_contract(spark, read_payments(tmp_path))
    assert [(column.name, column.type) for column in found.keys] == [
        *(("country", "text"), ("customer", "text"), ("is_large", "boolean"))
    ]
    assert [(column.name, column.type, column.operation) for column in found.measures] == [
        *(("payments", "bigint", "count"), ("noted", "bigint", "count"), ("amount", "numeric", "sum")),
        *(("cents", "numeric", "sum"), ("least", "numeric", "min"), ("last_note", "text", "max")),
    ]


def test_key_types_map_to_column_types(spark: SparkSession) -> None:
    kinds = {
        "STRING": "text",
        "BOOLEAN": "boolean",
        "TINYINT": "smallint",
        "SMALLINT": "smallint",
        "INT": "integer",
        "BIGINT": "bigint",
        "DATE": "date",
        "TIMESTAMP": "timestamptz",
        "DECIMAL(9, 3)": "numeric",
    }
    keys = tuple(Key(f"k{n}", f"CAST(NULL AS {kind})") for n, kind in enumerate(kinds))

    assert [column.type for column in check_contract(spark, make_contract(keys=keys)).keys] == list(kinds.values())


def test_sums_are_of_integers_or_decimals_that_fit(spark: SparkSession) -> None:
    assert list_refusals(spark, make_measured("sum", "value.f", schema=NUMBERS)) == [
        "measures.it.sum: a sum of double depends on the order of the records; "
        "cast it, such as CAST(... AS DECIMAL(28, 6))"
    ]
    assert "may not fit 38 digits" in list_refusals(spark, make_measured("sum", "value.w", schema=NUMBERS))[0]
    assert "a string cannot be summed" in list_refusals(spark, make_measured("sum", "value.s", schema=NUMBERS))[0]


def test_event_time_is_a_timestamp_or_a_whole_number(spark: SparkSession) -> None:
    for sql in ("value.f", "value.s", "to_date(value.s)", "value.d", "to_timestamp_ntz(value.s)"):
        (line,) = list_refusals(spark, make_contract(schema=NUMBERS, event_time=sql))
        assert "make it a TIMESTAMP, such as to_timestamp(...), or milliseconds since 1970 as BIGINT" in line
    for sql in ("to_timestamp(value.s)", "value.l", "value.i", "unix_millis(to_timestamp(value.s))"):
        check_contract(spark, make_contract(schema=NUMBERS, event_time=sql))


def test_value_type_depends_on_the_format(spark: SparkSession) -> None:
    text = make_keyed("split_part(value, ',', 1)", format="text", schema="")
    binary = make_keyed("hex(substring(value, 1, 4))", format="binary", schema="")

    assert [check_contract(spark, contract).keys[0].type for contract in (text, binary)] == ["text", "text"]
    assert "value" in list_refusals(spark, make_keyed("value.a", format="text", schema=""))[0]


def test_required_fields_must_be_in_the_schema(spark: SparkSession) -> None:
    required = ("orgin", "s.b", "s.c", "origin.x", "service.name", "a.b", "`a.b`", "nothing", "`s.b")
    schema = "origin STRING, s STRUCT<b: INT>, `service.name` STRING, `a.b` INT, a STRUCT<b: INT>"

    assert list_refusals(spark, make_contract(schema=schema, required=required)) == [
        "required: the schema has no field orgin; did you mean `origin`?",
        "required: the schema has no field s.c; did you mean `s.b`?",
        "required: the schema has no field origin.x; did you mean `origin`?",
        "required: a.b may be `a.b` and `a`.`b`; write one of them, with its backquotes",
        "required: the schema has no field nothing; known are `a.b`, `a`.`b`, a, origin, s, s.b, service.name",
        "required: the schema has no field `s.b; did you mean `s.b`?",
    ]


def test_mistakes_of_a_contract_are_all_reported_at_once(spark: SparkSession) -> None:
    contract = make_contract(event_time="now()", keys=(Key("k", "nosuch"),), measures=(Measure("m", "sum", "key"),))

    assert [line.split(":")[0] for line in list_refusals(spark, contract)] == ["event_time", "keys.k", "measures.m.sum"]


def test_functions_with_lambdas_and_named_structs_are_fine(spark: SparkSession) -> None:
    sql = "aggregate(array(value.a), 0, (x, y) -> x + y) + named_struct('b', value.a).b + struct(value.a AS c).c"

    assert check_contract(spark, make_keyed(sql)).keys[0].type == "integer"


def test_word_like_today_is_no_clock_unless_cast_to_a_time(spark: SparkSession) -> None:
    check_contract(spark, make_keyed("key = 'today'"))


@pytest.mark.parametrize(
    ("setting", "other"),
    [
        ("spark.sql.ansi.enabled", "true"),
        ("spark.sql.session.timeZone", "Europe/Oslo"),
        ("spark.sql.parser.escapedStringLiterals", "true"),
        ("spark.sql.legacy.castComplexTypesToString.enabled", "true"),
    ],
)
def test_session_with_other_sql_semantics_is_refused(spark: SparkSession, setting: str, other: str) -> None:
    before = dict(spark.conf.getAll).get(setting)
    spark.conf.set(setting, other)
    try:
        with pytest.raises(TerminalError, match=setting):
            check_contract(spark, FLIGHTS)
    finally:
        spark.conf.unset(setting) if before is None else spark.conf.set(setting, before)


def test_locale_is_one_for_all_machines(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    assert str(jvm.java.util.Locale.getDefault()) == "en_US"
    assert "-Duser.language=en -Duser.country=US" in str(spark.conf.get("spark.executor.extraJavaOptions"))


def test_skipping_contract_counts_skips_by_measure(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "skipping.toml"
    path.write_text(PAYMENTS.replace("[contract.keys]", 'on_null = "skip"\n[contract.keys]'))
    contract = read_pipeline(path).contract

    columns = check_contract(spark, contract).measures

    assert [c.name for c in columns][6:] == [
        f"{name}_skipped" for name in ("noted", "amount", "cents", "least", "last_note")
    ]
    assert {(c.type, c.operation) for c in columns[6:]} == {("bigint", "count")}
    assert list_warnings(spark, contract, "skipping.toml") == []
    path.write_text(path.read_text().replace("least =", "amount_skipped ="))
    with pytest.raises(MistakesError, match="what it skips as amount_skipped; rename that column"):
        read_pipeline(path)


def test_contract_is_checked_once_a_session(spark: SparkSession) -> None:
    assert analyze_contract(spark, FLIGHTS) is analyze_contract(spark, FLIGHTS)
