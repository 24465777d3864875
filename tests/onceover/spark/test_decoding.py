"""What SQL sees besides the value of plain JSON: headers, the record's place in Kafka, CSV, compressed values."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from pyspark.sql import SparkSession

from onceover.model.contract import Contract, CsvLayout, Key
from onceover.model.record import Header

from .contracts import interpret_values, list_reasons, list_refusals, make_contract, make_keyed, make_measured

pytestmark = pytest.mark.spark

COMMAS = CsvLayout(",", '"', "")
ROW_SCHEMA = "n INT, amount DECIMAL(12, 2), at TIMESTAMP, day DATE, is_paid BOOLEAN, ratio DOUBLE, note STRING"


def make_csv(schema: str = ROW_SCHEMA, layout: CsvLayout = COMMAS, **changed: Any) -> Contract:
    return make_contract(format="csv", schema=schema, csv=layout, **changed)


def compress_lz4(value: bytes) -> bytes:
    with pa.CompressedOutputStream(sink := pa.BufferOutputStream(), "lz4") as stream:
        stream.write(value)
    return bytes(sink.getvalue().to_pybytes())


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "snappy": lambda value: pa.Codec("snappy").compress(value, asbytes=True),
    "lz4": compress_lz4,
}


def test_sql_sees_where_kafka_has_the_record(spark: SparkSession) -> None:
    contract = make_keyed("concat_ws('/', kafka_topic, kafka_partition, kafka_offset)")

    assert [row.k_it for row in interpret_values(spark, contract, [b"{}", b"{}"])] == ["t/0/0", "t/0/1"]


def test_sql_sees_headers(spark: SparkSession) -> None:
    cases: dict[str, object] = {
        "header('tenant')": "new",
        "Header ( 'name' )": "ø",
        "header('missing')": None,
        "header('null')": None,
        "header('empty')": "",
        "coalesce(upper(header('missing')), header('odd'))": "x;=\\\t\n",
        "hex(headers['bytes'])": "00FF",
        "size(headers)": 6,
        "HEADERS.tenant = Headers['tenant']": True,
        "transform(array('name', 'tenant'), each -> header(each))[1]": "new",
        "'header(1)'": "header(1)",
    }
    contract = make_contract(keys=tuple(Key(f"c{number}", sql) for number, sql in enumerate(cases)))
    headers: tuple[Header, ...] = (
        *(("tenant", b"old"), ("name", "ø".encode()), ("null", None), ("empty", b""), ("odd", b"x;=\\\t\n")),
        *(("bytes", b"\x00\xff"), ("tenant", b"new")),
    )

    (row,) = interpret_values(spark, contract, [b"{}"], headers=headers)
    (without,) = interpret_values(spark, contract, [b"{}"])
    (unread,) = interpret_values(spark, contract, [b"{}"], headers=((b"\xff", None),))

    assert {sql: row[f"k_c{number}"] for number, sql in enumerate(cases)} == cases
    assert (without.k_c0, without.k_c7) == (None, 0)
    assert unread.reason == "unreadable headers"


def test_header_that_is_no_text_is_no_key(spark: SparkSession) -> None:
    (row,) = interpret_values(spark, make_keyed("header('t')"), [b"{}"], headers=(("t", b"\xff"),))

    assert row.reason == "key it not storable: not UTF-8"


def test_unreadable_headers_do_not_matter_to_sql_that_uses_none(spark: SparkSession) -> None:
    assert list_reasons(spark, make_contract(), [b"{}"], headers=((b"\xff", None),)) == [None]


def test_tombstone_counted_as_a_record_has_headers(spark: SparkSession) -> None:
    contract = make_keyed("header('tenant')", tombstone="record")

    (row,) = interpret_values(spark, contract, [None], headers=(("tenant", b"a"),))
    (unread,) = interpret_values(spark, contract, [None], headers=((b"\xff", None),))

    assert (row.k_it, unread.reason) == ("a", "unreadable headers")


@pytest.mark.parametrize("codec", COMPRESS)
def test_compressed_value_is_read_as_plain_json_is(spark: SparkSession, codec: str) -> None:
    contract = make_measured("sum", "value.a", compression=codec)
    plain = b'{"a":3}'
    values = [COMPRESS[codec](plain), plain, COMPRESS[codec](b'{"a":"x"}'), COMPRESS[codec](plain)[:-2], b"", None]

    rows = interpret_values(spark, contract, values)

    assert rows[0].m_it == 3
    no_codec = f"unparseable: not exactly a value of {codec}"
    assert [row.reason for row in rows[1:]] == [
        no_codec,
        "unparseable: field a is no INT",
        no_codec,
        no_codec,
        "tombstone",
    ]


def test_text_and_bytes_may_be_compressed(spark: SparkSession) -> None:
    value = gzip.compress(b"\xff")

    assert list_reasons(spark, make_keyed("value", format="text", schema="", compression="gzip"), [value]) == [
        "unparseable: not UTF-8"
    ]
    (row,) = interpret_values(spark, make_keyed("hex(value)", format="binary", schema="", compression="gzip"), [value])
    assert row.k_it == "FF"


def test_row_has_a_field_of_each_type(spark: SparkSession) -> None:
    sql = {"n": "value.n", "amount": "value.amount", "at": "value.at", "day": "value.day", "is_paid": "value.is_paid"}
    contract = make_csv(
        keys=(
            *(Key(*key) for key in sql.items()),
            Key("ratio", "CAST(value.ratio AS STRING)"),
            Key("note", "value.note"),
        )
    )
    row, nulls = interpret_values(
        spark,
        contract,
        [b'-7,1234567890.05,2024-02-29T10:15:00Z,2024-02-29,true,1e-3,"a ""b"",\n\xc3\xb8"\r\n', b",,,,,,"],
    )

    assert row.reason is None
    assert (row.k_n, row.k_amount, row.k_is_paid, row.k_ratio) == (-7, Decimal("1234567890.05"), True, "0.001")
    assert (str(row.k_at), str(row.k_day), row.k_note) == ("2024-02-29 10:15:00", "2024-02-29", 'a "b",\nø')
    assert [nulls[f"k_{name}"] for name in (*sql, "ratio", "note")] == [None] * 7


def test_row_that_is_not_exactly_of_its_types_is_refused(spark: SparkSession) -> None:
    cases = [
        (b"1,2", "not 7 CSV fields"),
        (b"", "not 7 CSV fields"),
        (b"1,,,,,,,", "not 7 CSV fields"),
        (b"1,,,,,,x\n2,,,,,,y", "not one CSV row"),
        (b'1,,,,,,"x', "not one CSV row"),
        (b'1,,,,,,"x"y', "not one CSV row"),
        (b"1,,,,,,\xff", "not UTF-8"),
        (b"1.0,,,,,,", "field n is no INT"),
        (b" 1,,,,,,", "field n is no INT"),
        (b"007,,,,,,", "field n is no INT"),
        (b"3000000000,,,,,,", "field n is no INT"),
        (b",1.005,,,,,", "field amount is no DECIMAL(12,2)"),
        (b",,soon,,,,", "field at is no TIMESTAMP"),
        (b",,,2023-02-29,,,", "field day is no DATE"),
        (b",,,,1,,", "field is_paid is no BOOLEAN"),
        (b",,,,TRUE,,", "field is_paid is no BOOLEAN"),
        (b",,,,,NaN,", "field ratio is no DOUBLE"),
        (b",,,,,1e400,", "field ratio is no DOUBLE"),
        (b'{"n":1},,,,,,', "field n is no INT"),
    ]

    reasons = list_reasons(spark, make_csv(), [row for row, _ in cases])

    assert reasons == [f"unparseable: {reason}" for _, reason in cases]


def test_layout_names_separator_quote_and_null(spark: SparkSession) -> None:
    contract = make_csv(
        "a STRING, b STRING, `c d` INT",
        CsvLayout("\t", "'", "NULL"),
        keys=(Key("it", "to_json(value)"),),
        required=("c d",),
    )

    rows = interpret_values(spark, contract, [b"'a\tb'\t\t1", b'NULL\t"\t2', b"a\tb\tNULL"])

    assert [json.loads(row.k_it) for row in rows[:2]] == [{"a": "a\tb", "b": "", "c d": 1}, {"b": '"', "c d": 2}]
    assert rows[2].reason == "missing field c d"


def test_compressed_csv_is_read(spark: SparkSession) -> None:
    contract = make_csv("a INT", compression="zstd", keys=(Key("it", "value.a"),))

    rows = interpret_values(spark, contract, [COMPRESS["zstd"](b"5"), COMPRESS["zstd"](b"x"), b"5"])

    assert rows[0].k_it == 5
    assert [row.reason for row in rows[1:]] == [
        "unparseable: field a is no INT",
        "unparseable: not exactly a value of zstd",
    ]


def test_csv_has_no_nested_fields(spark: SparkSession) -> None:
    assert list_refusals(spark, make_csv("a ARRAY<INT>")) == [
        "schema: field a is of type array<int>, and CSV has no such fields; declare it as STRING, and read it by SQL"
    ]


@pytest.mark.parametrize(
    "sql", ["header()", "header(x => 'a')", "header(DISTINCT 'a')", "header('a') IGNORE NULLS", "db.header('a')"]
)
def test_call_that_is_not_plainly_header_is_refused(spark: SparkSession, sql: str) -> None:
    (mistake,) = list_refusals(spark, make_keyed(sql))

    assert "header" in mistake
