"""The pipelines that docs/formats.md shows count what they say."""

from __future__ import annotations

import base64
import io
import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import fastavro
import pytest
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Row, SparkSession
from tests.docs.pages import read

from onceover.config.pipeline_file import read_pipeline
from onceover.formats.protobuf.schema import find_message
from onceover.model.contract import Contract
from onceover.spark.contract_check import check_contract

from .contracts import interpret_values

pytestmark = pytest.mark.spark
SHOWN = {block.split('topic = "')[1].split('"')[0]: block for block in read("docs/formats.md").fenced("toml")}
(RIDES,) = [block for block in read("docs/formats.md").fenced("json") if "Ride" in block]
(TRIPS,) = read("docs/formats.md").fenced("protobuf")
PAID_AT = 1_772_366_401_234_567  # 2026-03-01T12:00:01.234567Z, in microseconds as Debezium writes it


def read_shown(folder: Path, topic: str) -> Contract:
    (folder / "shown.toml").write_text(SHOWN[topic])
    (folder / "rides.avsc").write_text(RIDES)
    (folder / "trips.proto").write_text(TRIPS)
    return read_pipeline(folder / "shown.toml").contract


@pytest.mark.parametrize("topic", SHOWN)
def test_shown_contract_passes_the_check(spark: SparkSession, tmp_path: Path, topic: str) -> None:
    check_contract(spark, read_shown(tmp_path, topic))


def count_value(spark: SparkSession, folder: Path, topic: str, value: bytes, stamp: int = PAID_AT // 1000) -> Row:
    (row,) = interpret_values(spark, read_shown(folder, topic), [value], kafka_timestamp=stamp)
    return row


def test_shown_access_log_is_read(spark: SparkSession, tmp_path: Path) -> None:
    line = b'127.0.0.1 - - [01/Mar/2026:13:00:01 +0100] "GET / HTTP/1.1" 404 12'

    row = count_value(spark, tmp_path, "access_log", line)

    assert (row.event_ms, row.k_status) == (1_772_366_401_000, "404")


def test_shown_meters_are_read(spark: SparkSession, tmp_path: Path) -> None:
    row = count_value(spark, tmp_path, "meters", (1_772_366_401).to_bytes(4) + (40_000).to_bytes(2))

    assert (row.event_ms, row.m_watts) == (1_772_366_401_000, 40_000)


def test_shown_rides_are_read(spark: SparkSession, tmp_path: Path) -> None:
    contract = replace(read_shown(tmp_path, "rides"), wire_format="none")
    value = io.BytesIO()
    left_at = datetime.fromtimestamp(PAID_AT // 1000 / 1000, UTC)
    ride = {"left_at": left_at, "city": None, "fare": Decimal("-1.25")}
    fastavro.schemaless_writer(value, fastavro.parse_schema(json.loads(RIDES)), ride)

    (row,) = interpret_values(spark, contract, [value.getvalue()], kafka_timestamp=PAID_AT // 1000)

    assert (row.event_ms, row.k_city, row.m_fare) == (PAID_AT // 1000, None, Decimal("-1.25"))


def test_shown_trips_by_app_are_read(spark: SparkSession, tmp_path: Path) -> None:
    contract = replace(read_shown(tmp_path, "trips_by_app"), wire_format="none")
    trip = GetMessageClass(find_message(TRIPS, "shop.Trip"))(cents=-125)
    trip.left_at.FromMilliseconds(PAID_AT // 1000)

    (row,) = interpret_values(spark, contract, [trip.SerializeToString()], kafka_timestamp=PAID_AT // 1000)

    assert (row.event_ms, row.k_city, row.m_cents) == (PAID_AT // 1000, None, -125)


def write_change(op: str, amount: Decimal, *, size: int = 8) -> bytes:
    """Return a change as Debezium writes it with JsonConverter and without schemas."""
    unscaled = int(amount.scaleb(2)).to_bytes(size, signed=True)
    while len(unscaled) > 1 and size == 8 and int.from_bytes(unscaled[1:], signed=True) == int(amount.scaleb(2)):
        unscaled = unscaled[1:]
    after = {"id": 1, "paid_at": PAID_AT, "amount": base64.b64encode(unscaled).decode()}
    whole = {"before": None, "after": after, "source": {"table": "orders"}, "op": op, "ts_ms": PAID_AT // 1000}
    return json.dumps(whole | ({"before": after, "after": None} if op == "d" else {})).encode()


def test_debezium_counts_inserts_with_exact_amounts(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(7)
    edges = ["0", "0.01", "-0.01", "1.27", "1.28", "-1.28", "-1.29", "9999999999999999.99", "-9999999999999999.99"]
    amounts = [Decimal(text) for text in edges]
    amounts += [Decimal(chance.randrange(-(10 ** chance.randint(1, 18)), 10**17)).scaleb(-2) for _ in range(1_000)]

    rows = interpret_values(
        spark,
        read_shown(tmp_path, "shop.public.orders"),
        [write_change("cr"[n % 2], amount) for n, amount in enumerate(amounts)],
        kafka_timestamp=PAID_AT // 1000,
    )

    assert [row.m_amount for row in rows] == amounts
    assert {row.event_ms for row in rows} == {PAID_AT // 1000}


def test_debezium_refuses_all_but_inserts(spark: SparkSession, tmp_path: Path) -> None:
    values = [write_change(op, Decimal(1)) for op in ("u", "d", "t", "m")]
    values += [write_change("c", Decimal(1), size=9), b'{"op":"c","after":{"paid_at":1,"amount":""}}', b"{}"]

    rows = interpret_values(
        spark, read_shown(tmp_path, "shop.public.orders"), [*values, None], kafka_timestamp=PAID_AT // 1000
    )

    assert [row.reason for row in rows] == [
        *["no event time"] * 4,
        *["SQL failed: measure amount"] * 2,
        "missing field op",
        "tombstone",
    ]
