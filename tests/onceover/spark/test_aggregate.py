"""A window's aggregates, of records of every shape."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceover.model.contract import Key
from onceover.spark.aggregate import aggregate
from onceover.spark.interpret import interpret

from .contracts import NOON, interpret_values, make_contract, make_records, read_payments

pytestmark = pytest.mark.spark


def test_pipeline_of_another_shape_is_aggregated_exactly(spark: SparkSession, tmp_path: Path) -> None:
    contract = read_payments(tmp_path)
    minute = 60_000
    paid = b'{"payment":{"at_ms":%d,"amount":%s},"country":%s,"note":%s,"cents":%s}'
    values = [
        paid % (NOON + 1, b"0.10", b'"NO"', b'"b"', b"9223372036854775807"),
        paid % (NOON + 5 * minute - 1, b'"999.90"', b'"NO"', b"null", b"1"),
        paid % (NOON + 4 * minute, b"0.20", b'"NO"', '"é"'.encode(), b"null"),
        paid % (NOON + 5 * minute, b"-1", b'"NO"', b"null", b"null"),
        paid % (NOON, b"1000", b"null", b"null", b"null"),
        paid % (NOON, b"null", b"null", b"null", b"null"),
        b'{"payment":{"amount":1},"country":"NO"}',
        paid % (NOON - 86_400_000 + 6 * minute, b"1", b'"NO"', b"null", b"null"),
    ]
    random.Random(3).shuffle(values)
    given = make_records(spark, values, key=b"c1", kafka_timestamp=NOON + 6 * minute)

    rows = given.transform(interpret(contract)).where("reason IS NULL").transform(aggregate(contract))

    assert rows.columns == [
        *("window_ms", "country", "customer", "is_large"),
        *("payments", "noted", "amount", "cents", "least", "last_note"),
    ]
    found = {(r.window_ms, r.country, r.customer, r.is_large): tuple(r)[4:] for r in rows.collect()}
    day_before = NOON - 86_400_000 + 5 * minute
    assert found == {
        (NOON, "NO", "c1", False): (3, 2, Decimal("1000.20"), Decimal(2**63), Decimal("0.10"), "é"),
        (NOON + 5 * minute, "NO", "c1", False): (1, 0, Decimal("-1.00"), None, Decimal("-1.00"), None),
        (NOON, None, "c1", True): (1, 0, Decimal("1000.00"), None, Decimal("1000.00"), None),
        (NOON, None, "c1", None): (1, 0, None, None, None, None),
        (day_before, "NO", "c1", False): (1, 0, Decimal("1.00"), None, Decimal("1.00"), None),
    }
    assert day_before % (5 * minute) == 0


def test_windows_begin_at_midnight_utc(spark: SparkSession) -> None:
    contract = make_contract(window_minutes=480, schema="a BIGINT", event_time="value.a")
    midnight = int(datetime(2013, 7, 1, tzinfo=UTC).timestamp() * 1000)
    values = [b'{"a":%d}' % (midnight + hours * 3_600_000 - before) for hours, before in ((0, 0), (8, 1), (8, 0))]

    rows = make_records(spark, values).transform(interpret(contract)).transform(aggregate(contract)).collect()

    assert sorted((row.window_ms, row.records) for row in rows) == [(midnight, 2), (midnight + 8 * 3_600_000, 1)]


def test_keys_of_every_kind_are_kept(spark: SparkSession) -> None:
    contract = make_contract(
        schema="a INT",
        keys=(
            *(Key("t", "CAST(value.a AS TINYINT)"), Key("d", "to_date(kafka_timestamp)"), Key("at", "kafka_timestamp")),
            *(Key("n", "CAST(value.a AS DECIMAL(5, 2))"), Key("b", "value.a > 0"), Key("k", "key")),
        ),
    )

    (row,) = interpret_values(spark, contract, [b'{"a":7}'], key="å".encode())

    assert (row.k_t, row.k_d, row.k_n, row.k_b, row.k_k) == (7, date(2013, 1, 1), Decimal("7.00"), True, "å")
