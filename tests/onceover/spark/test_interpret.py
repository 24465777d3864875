"""Which record counts, for what, and why the others do not."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from onceover.model.contract import Column, Key
from onceover.model.measures import Measure
from onceover.spark.aggregate import aggregate
from onceover.spark.contract_check import check_contract
from onceover.spark.interpret import interpret

from .contracts import (
    FLIGHTS,
    NOON,
    interpret_values,
    list_reasons,
    list_refusals,
    make_contract,
    make_keyed,
    make_measured,
    make_records,
)

pytestmark = pytest.mark.spark

FLIGHT = b'{"origin":"EWR","carrier":"UA","flight":1,"sched_dep":"2013-01-01T11:58:00Z","dep_delay":2,"more":[1,{}]}'


def test_record_gets_its_event_time_keys_and_measures(spark: SparkSession) -> None:
    (row,) = interpret_values(spark, FLIGHTS, [FLIGHT])

    assert row.event_ms == NOON - 2 * 60_000
    assert (row.k_origin, row.k_carrier) == ("EWR", "UA")
    assert (row.m_flights, row.m_delay_sum, row.m_delay_max) == (1, 2, 2)


def test_count_if_counts_records_of_which_the_condition_holds(spark: SparkSession) -> None:
    values = [b'{"a":5}', b'{"a":0}', b'{"a":null}', b'{"a":-1}']
    condition = "IF(value.a < 0, CAST('x' AS INT) = 1, value.a > 1)"

    rows = interpret_values(spark, make_measured("count_if", condition), values)
    skipping = make_measured("count_if", condition, on_null="skip")
    measures = (*skipping.measures, Measure("it_skipped", "skipped", "it"))
    skipped = interpret_values(spark, replace(skipping, measures=measures), values)

    assert [(row.m_it, row.reason) for row in rows] == [
        (1, None),
        (0, None),
        (0, None),
        (None, "SQL failed: measure it"),
    ]
    assert [(row.m_it, row.m_it_skipped) for row in skipped] == [(1, 0), (0, 0), (0, 0), (0, 1)]
    assert check_contract(spark, skipping).measures == (Column("it", "bigint", "count"),)
    assert list_refusals(spark, make_measured("count_if", "value.a")) == [
        "measures.it.count_if: is of type int; write a condition, such as value.amount > 100"
    ]


def test_input_columns_are_passed_through_untouched(spark: SparkSession) -> None:
    given = make_records(spark, [FLIGHT, b"\xff\x00", None], key=b"\xfe").withColumns(
        {"reason_before": F.lit("x"), "line number": F.lit(7), "found": F.lit(b"\x00")}
    )

    added = given.transform(interpret(FLIGHTS))

    assert added.columns[: len(given.columns)] == given.columns
    assert added.columns[len(given.columns) :] == [
        *("event_ms", "reason", "k_origin", "k_carrier", "m_flights", "m_delay_sum", "m_delay_max")
    ]
    assert sorted(map(tuple, added.select(*(f"`{c}`" for c in given.columns)).collect())) == sorted(
        map(tuple, given.collect())
    )


def test_field_of_another_type_is_named_rather_than_null(spark: SparkSession) -> None:
    schema = "i INT, l BIGINT, y BOOLEAN, d DECIMAL(4, 2), t TIMESTAMP, o DATE, f ARRAY<INT>, s STRUCT<b: INT>"
    wrong = {
        "i is no INT": [b'{"i":"1"}', b'{"i":1.5}', b'{"i":1.0}', b'{"i":2147483648}', b'{"i":true}', b'{"i":{}}'],
        "l is no BIGINT": [b'{"l":9223372036854775808}', b'{"l":1e3}'],
        "y is no BOOLEAN": [b'{"y":1}'],
        "d is no DECIMAL(4,2)": [b'{"d":100}', b'{"d":1e40}', b'{"d":"x"}'],
        "t is no TIMESTAMP": [b'{"t":"soon"}'],
        "o is no DATE": [b'{"o":"2013-13-01"}'],
        "f is no ARRAY<INT>": [b'{"f":[1,null,true]}'],
        "s is no STRUCT<B:INT>": [b'{"s":"","i":1}'],
    }
    expected = {value: f"unparseable: field {what}" for what, values in wrong.items() for value in values}
    expected[b'{"s":{"b":[]}}'] = "unparseable: a field is not of its type"

    found = list_reasons(spark, make_contract(schema=schema), list(expected))

    assert dict(zip(expected, found, strict=True)) == expected


def test_required_fields_must_be_present_and_not_null(spark: SparkSession) -> None:
    contract = make_contract(schema="a INT, b STRUCT<c: STRING>", required=("a", "b.c"))
    values = [b'{"a":1,"b":{"c":""}}', b'{"b":{"c":"x"}}', b'{"a":null,"b":{"c":"x"}}', b'{"a":1}', b'{"a":1,"b":{}}']

    assert list_reasons(spark, contract, values) == [
        *(None, "missing field a", "missing field a", "missing field b.c", "missing field b.c")
    ]


def test_required_fields_may_have_any_json_name(spark: SparkSession) -> None:
    names = ["service.name", "a[0]", "$.*", "", "\x01", "e\u0301", *". `'\"\\\n1é😀", "a`b"]
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    schema = f"{', '.join(f'{name} INT' for name in quoted)}, `a.b` STRUCT<`c.d`: INT>"
    contract = make_contract(schema=schema, required=(*quoted, "a.b.c.d", "service.name"))
    value = dict.fromkeys(names, 0) | {"a.b": {"c.d": 0}}
    without = [{name: v for name, v in value.items() if name != left} for left in names]

    found = list_reasons(
        spark, contract, [json.dumps(each).encode() for each in (value, *without, value | {"a.b": {}})]
    )

    assert found == [None, *(f"missing field {name}" for name in contract.required[:-1])]


def test_text_that_is_not_utf_8_is_unparseable(spark: SparkSession) -> None:
    text, binary = (make_contract(format=form, schema="") for form in ("text", "binary"))

    assert list_reasons(spark, text, [b"\xff", "é".encode()]) == ["unparseable: not UTF-8", None]
    assert list_reasons(spark, binary, [b"\xff"]) == [None]


def test_tombstone_is_quarantined_or_a_record_by_contract(spark: SparkSession) -> None:
    assert list_reasons(spark, FLIGHTS, [None]) == ["tombstone"]
    for form, schema in (("json", "a INT"), ("text", ""), ("binary", "")):
        contract = make_keyed("value IS NULL", format=form, schema=schema, tombstone="record")
        (row,) = interpret_values(spark, contract, [None])
        assert (row.event_ms, row.k_it) == (NOON, True)
    strict = make_contract(required=("a",), tombstone="record")
    assert list_reasons(spark, strict, [None, b"{}"]) == [None, "missing field a"], "it lacks no field"


def test_event_time_is_a_timestamp_rounded_down_or_milliseconds(spark: SparkSession) -> None:
    stamped = make_contract(schema="a STRING", event_time="to_timestamp(value.a)")
    values = [
        b'{"a":"2013-01-01T12:00:00.0009999Z"}',
        b'{"a":"2013-01-01 13:00:00+01:00"}',
        b'{"a":"2013-01-01 12:00"}',
    ]

    assert [row.event_ms for row in interpret_values(spark, stamped, values)] == [NOON, NOON, NOON]

    for kind in ("BIGINT", "INT"):
        counted = make_contract(schema=f"a {kind}", event_time="value.a")
        assert [row.event_ms for row in interpret_values(spark, counted, [b'{"a":1}', b'{"a":0}'])] == [1, 0]


def test_missing_event_time_differs_from_one_too_wide_for_a_line(spark: SparkSession) -> None:
    contract = make_contract(
        schema="a BIGINT, t STRING", event_time="coalesce(unix_millis(to_timestamp(value.t)), value.a)"
    )
    values = [b"{}", b'{"a":-1}', b'{"a":9999999999999}', b'{"a":10000000000000}', b'{"t":"1969-12-31"}']

    too_wide = "event time before 1970 or after 2286"
    assert list_reasons(spark, contract, values) == ["no event time", too_wide, None, too_wide, too_wide]


def test_bounds_hold_inclusively_against_the_kafka_timestamp(spark: SparkSession) -> None:
    contract = make_contract(schema="a BIGINT", event_time="value.a", horizon_ms=1000, skew_ms=10)
    offsets = (-1001, -1000, 0, 10, 11)
    values = [b'{"a":%d}' % (NOON + offset) for offset in offsets]

    assert list_reasons(spark, contract, values) == ["beyond horizon", None, None, None, "beyond skew"]


@pytest.mark.parametrize("stamp", [-1, -(2**63), None])
def test_bounds_cannot_hold_without_a_kafka_timestamp(spark: SparkSession, stamp: int | None) -> None:
    contract = make_contract(schema="a BIGINT", event_time="value.a", skew_ms=10)
    value = b'{"a":%d}' % NOON

    reason = "no Kafka timestamp to judge the event time by"
    for judged, expected in ((contract, reason), (replace(contract, skew_ms=None), None)):
        assert list_reasons(spark, judged, [value], kafka_timestamp=stamp) == [expected]


def test_absurd_kafka_timestamp_throws_nothing(spark: SparkSession) -> None:
    contract = make_keyed("kafka_timestamp", schema="a BIGINT", event_time="value.a", skew_ms=10)

    (row,) = interpret_values(spark, contract, [b'{"a":1}'], kafka_timestamp=2**63 - 1)

    assert (row.event_ms, row.k_it) == (1, None)


def test_sql_that_throws_quarantines_its_record_only(spark: SparkSession) -> None:
    contract = make_keyed(
        "year(timestamp_millis(value.a))",  # shares what throws with the event time
        schema="a BIGINT, i INT",
        event_time="timestamp_millis(value.a)",
        measures=(Measure("second", "max", "element_at(array(1, 2), value.i)"),),
    )
    values = [b'{"a":0,"i":1}', b'{"a":9223372036854775807,"i":1}', b'{"a":0,"i":0}', b'{"a":0,"i":2}']

    rows = interpret_values(spark, contract, values)

    assert [(row.reason, row.k_it, row.m_second) for row in rows] == [
        (None, 1970, 1),
        ("SQL failed: event_time", None, None),
        ("SQL failed: measure second", None, None),
        (None, 1970, 2),
    ]


def test_keys_that_postgresql_cannot_store_are_quarantined(spark: SparkSession) -> None:
    text = make_keyed("value.a", schema="a STRING")
    values = [b'{"a":"\\u0000"}', b'{"a":""}', b'{"a":"%s"}' % (b"x" * 2000), b'{"a":"%s"}' % (b"x" * 2001)]
    assert list_reasons(spark, text, values) == [
        *("key it not storable: a NUL character", None, None),
        "keys not storable: longer than 2000 bytes together",
    ]
    assert list_reasons(spark, make_keyed("key"), [b"{}"], key=b"\xff") == ["key it not storable: not UTF-8"]

    dated = make_keyed("CAST(value.a AS DATE)", schema="a STRING")
    values = [b'{"a":"+10000-01-01"}', b'{"a":"9999-12-31"}', b'{"a":"0001-01-01"}', b'{"a":"-0001-01-01"}']
    outside = "key it not storable: outside years 1 to 9999"
    assert list_reasons(spark, dated, values) == [outside, None, None, outside]


def test_measures_that_postgresql_cannot_store_are_quarantined(spark: SparkSession) -> None:
    contract = make_measured("max", "value.a", schema="a STRING")

    assert list_reasons(spark, contract, [b'{"a":"x\\u0000"}']) == ["measure it not storable: a NUL character"]
    assert list_reasons(spark, make_measured("count", "value.a", schema="a STRING"), [b'{"a":"x\\u0000"}']) == [None]


def test_value_is_parsed_once_and_without_python(spark: SparkSession) -> None:
    all_of_it = make_records(spark, [FLIGHT]).transform(interpret(FLIGHTS))

    for rows in (
        all_of_it,
        all_of_it.where("reason IS NULL").transform(aggregate(FLIGHTS)),
        all_of_it.where("event_ms IS NOT NULL AND k_origin = 'EWR'").select("value", "k_carrier", "m_delay_sum"),
        all_of_it.groupBy("reason").count(),
    ):
        plan = rows._jdf.queryExecution().executedPlan().toString()
        # Once for all records, once where that leaves doubt, and once to say which field is of another type.
        assert plan.count("from_json") == 3
        assert plan.count("cast(value") + plan.count("to_timestamp") <= 4  # nor is the SQL evaluated twice
        assert "Python" not in plan
        assert "Pandas" not in plan


def test_value_of_hundreds_of_fields_is_read(spark: SparkSession) -> None:
    contract = make_contract(
        schema=", ".join(f"a{n} BIGINT" for n in range(500)), event_time="timestamp_millis(value.a0)"
    )
    values = [b"{}", b'{"a0":1}', b'{"a0":1,"a499":[]}', b'{"a0":"x","a499":1.5}']

    no_integers = ["unparseable: field a499 is no BIGINT", "unparseable: field a0 is no BIGINT"]
    assert list_reasons(spark, contract, values) == ["no event time", None, *no_integers]


def test_join_of_a_wide_contracts_records_is_planned_in_seconds(spark: SparkSession) -> None:
    fields = [f"a{n}" for n in range(15)]
    contract = make_contract(
        schema=", ".join(f"{name} DECIMAL(28, 6)" for name in fields),
        keys=tuple(Key(f"k{n}", f"value.{name}") for n, name in enumerate(fields[:5])),
        measures=tuple(Measure(f"m{n}", "max", f"value.{name}") for n, name in enumerate(fields)),
        event_time="timestamp_millis(CAST(value.a0 AS BIGINT))",
    )
    windows = spark.createDataFrame([(0, True)], "event_ms BIGINT, is_known BOOLEAN")
    records = make_records(spark, [b"{}"]).transform(interpret(contract))
    began = time.monotonic()

    found = records.join(F.broadcast(windows), "event_ms", "left").select("reason", "is_known")

    assert len(found.collect()) == 1
    assert time.monotonic() - began < 60  # or never, in a JVM without memory
