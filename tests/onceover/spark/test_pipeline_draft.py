"""A drafted pipeline passes the check, and counts nearly all of the records that it was drafted from."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from tests.onceover.config.sampled_records import STAMP, make_records

from onceover.config.pipeline_draft import Draft, draft_pipeline
from onceover.config.pipeline_file import read_pipeline
from onceover.errors import TerminalError
from onceover.formats.undecodable import UndecodableError
from onceover.model.contract import Contract, Key

from .contracts import NOON, interpret_values

NAMES = st.text(max_size=8) | st.sampled_from(
    ["at", "order", "select", "a.b", "a`b", "ID", "id", "\x7f", "'", '"""', "\\"]
)
SCALARS: Any = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False)
SCALARS |= (
    st.integers(NOON - 10**6, NOON + 10**6) | st.just("2013-01-01T12:00:00Z") | st.decimals(allow_nan=False).map(float)
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
OBJECTS = st.lists(st.dictionaries(NAMES, VALUES, max_size=5), min_size=1, max_size=5)


def draft(values: Sequence[bytes | None], topic: str = "t") -> Draft:
    return draft_pipeline(topic, make_records(values), {"client.id": 'a"b'}, "drafted", find_none)


def find_none(name: object) -> tuple[str, str]:
    raise UndecodableError(f"schema {name} is not in the registry")


def load(folder: Path, drafted: Draft) -> Contract:
    (folder / "drafted.toml").write_text(drafted.toml)
    pipeline = read_pipeline(folder / "drafted.toml")
    assert pipeline.kafka == {"client.id": 'a"b'}
    return pipeline.contract


def count(spark: SparkSession, folder: Path, values: list[bytes | None]) -> tuple[Contract, list[Row]]:
    contract = load(folder, draft(values))
    return contract, interpret_values(spark, contract, values, kafka_timestamp=STAMP)


def order(number: int) -> dict[str, Any]:
    return {
        "orderId": 10_000 + number,
        "placed at": f"2013-01-01T12:00:{number % 60:02}.5Z",
        "sentMs": NOON + 60_000 + number,
        "status": ["paid", "open", None][number % 3],
        "total": number + 0.25,
        "items": number % 4,
        "is_gift": number % 2 == 0,
        "customer": {"country": ["NO", "SE"][number % 2], "name": f"n{number}", "zip.code": "0123"},
        "tags": ["a"] * (number % 3),
        "odd": [1, "x", {}][number % 3],
        "none": None,
        **({"late": 1} if number == 0 else {}),
    }


@pytest.mark.spark
def test_json_is_drafted_with_types_time_keys_and_sums(spark: SparkSession, tmp_path: Path) -> None:
    orders = [order(number) for number in range(60)]

    contract, rows = count(spark, tmp_path, [json.dumps(each).encode() for each in orders])

    assert [row.reason for row in rows] == [None] * 60
    assert (contract.format, contract.compression, contract.required) == ("json", "none", ("`placed at`",))
    assert contract.event_time == "value.`placed at`"
    assert [key.name for key in contract.keys] == ["status", "is_gift", "country"]
    assert [m.name for m in contract.measures] == ["records", "total", "items", "late"]
    assert "`zip.code`: STRING" in contract.schema
    assert "tags ARRAY<STRING>" in contract.schema
    assert sum(row.m_total for row in rows) == sum(each["total"] for each in orders)


@pytest.mark.parametrize(
    ("unit", "sql"),
    [
        (1, "timestamp_seconds(value.t)"),
        (10**3, "value.t"),
        (10**6, "timestamp_micros(value.t)"),
        (10**9, "value.t div 1000000"),
    ],
)
def test_epoch_is_read_in_its_unit(tmp_path: Path, unit: int, sql: str) -> None:
    contract = load(tmp_path, draft([json.dumps({"t": NOON // 1000 * unit, "n": 7}).encode()]))

    assert contract.event_time == sql


def test_fraction_of_an_epoch_second_is_a_time(tmp_path: Path) -> None:
    contract = load(tmp_path, draft([b'{"t":%d.5,"n":1}' % (NOON // 1000)]))

    assert contract.event_time == "timestamp_seconds(CAST(value.t AS DECIMAL(18, 6)))"
    assert [measure.name for measure in contract.measures] == ["records", "n"]


def test_rubbish_does_not_count_against_a_time(tmp_path: Path) -> None:
    good = [b'{"at":"2013-01-01T12:00:00Z"}'] * 95

    assert load(tmp_path, draft([*good, *[b"rubbish"] * 6])).event_time == "value.at"


def test_number_too_large_for_its_sum_is_not_summed(tmp_path: Path) -> None:
    contract = load(tmp_path, draft([b'{" at ":"2013-01-01T12:00:00Z","huge":1e300,"n":0.5}']))

    assert [measure.name for measure in contract.measures] == ["records", "n"]
    assert contract.required == ("` at `",)


def test_fields_that_no_type_takes_are_named(tmp_path: Path) -> None:
    drafted = draft([b'{"huge":1e400,"tiny":1e-400,"big":9223372036854775808,"A":1,"a":2,"":3,"x":[1,"y",{}]}'])

    assert load(tmp_path, drafted).schema.split() == ["big", "DECIMAL(38,", "0),", "A", "BIGINT"]
    assert drafted.doubts[0].endswith("a name is not fit: 'huge', 'tiny', 'a', '', 'x'.")


@pytest.mark.spark
def test_each_unit_gives_the_same_moment(spark: SparkSession, tmp_path: Path) -> None:
    value = {f"t{unit}": NOON // 1000 * unit for unit in (1, 10**3, 10**6, 10**9)}
    contract = load(tmp_path, draft([json.dumps(value).encode()]))
    sql = ["timestamp_seconds(value.t1)", "timestamp_millis(value.t1000)", "timestamp_micros(value.t1000000)"]
    keys = tuple(Key(f"k{n}", each) for n, each in enumerate([*sql, "timestamp_millis(value.t1000000000 div 1000000)"]))

    (row,) = interpret_values(spark, replace(contract, keys=keys), [json.dumps(value).encode()], kafka_timestamp=NOON)

    assert row.event_ms == NOON
    assert len({row.k_k0, row.k_k1, row.k_k2, row.k_k3}) == 1


@pytest.mark.spark
def test_replay_of_old_events_gets_no_bound(spark: SparkSession, tmp_path: Path) -> None:
    contract, rows = count(spark, tmp_path, [b'{"at":"2001-01-01 10:00"}'])

    assert (contract.horizon_ms, contract.skew_ms is not None, rows[0].reason) == (None, True, None)


@pytest.mark.spark
def test_compressed_csv_is_drafted(spark: SparkSession, tmp_path: Path) -> None:
    texts = [f'{n % 3};"a; b";{n}.5;{["true", "false"][n % 2]};;2013-01-01T12:00:{n:02}Z;0{n}' for n in range(40)]
    values: list[bytes | None] = [gzip.compress(text.encode()) for text in texts]

    contract, rows = count(spark, tmp_path, [*values, None])

    assert Counter(row.reason for row in rows) == {None: 40, "tombstone": 1}
    assert (contract.format, contract.compression, contract.csv and contract.csv.separator) == ("csv", "gzip", ";")
    assert contract.schema.split() == [
        *("c1", "BIGINT,", "c2", "STRING,", "c3", "DOUBLE,", "c4", "BOOLEAN,", "c5", "STRING,"),
        *("c6", "TIMESTAMP,", "c7", "STRING"),
    ]
    assert contract.event_time == "value.c6"


@pytest.mark.spark
@pytest.mark.parametrize(("value", "form"), [(b"a plain line", "text"), (b"\xff\x00\x01", "binary"), (b"[1]", "text")])
def test_other_values_are_text_or_bytes(spark: SparkSession, tmp_path: Path, value: bytes, form: str) -> None:
    contract, (row,) = count(spark, tmp_path, [value])

    assert (contract.format, contract.event_time, row.reason) == (form, "kafka_timestamp", None)


@pytest.mark.spark
@pytest.mark.rare
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OBJECTS)
def test_any_objects_make_a_contract_that_takes_them(spark: SparkSession, tmp_path: Path, objects: list[Any]) -> None:
    _, rows = count(spark, tmp_path, [json.dumps(each).encode() for each in objects])

    assert [row.reason for row in rows if (row.reason or "").startswith(("unparseable", "SQL"))] == []


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OBJECTS)
def test_any_objects_make_a_toml(tmp_path: Path, objects: list[Any]) -> None:
    load(tmp_path, draft([json.dumps(each).encode() for each in objects]))


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=40) | st.text().map(str.encode), min_size=1))
def test_any_bytes_make_a_toml_or_are_named(tmp_path: Path, values: list[bytes]) -> None:
    with suppress(TerminalError):
        load(tmp_path, draft([*values, None]))


def test_wire_format_and_empty_topics_are_named() -> None:
    with pytest.raises(TerminalError, match="Confluent's wire format, schemas 7, 9, and no JSON"):
        draft([b"\0\0\0\0\x07abc", b"\0\0\0\0\x09{}"])
    for nothing in ([], [None]):
        with pytest.raises(TerminalError, match="topic t has no record with a value"):
            draft(nothing)


def test_json_of_a_schema_registry_is_drafted(tmp_path: Path) -> None:
    contract = load(tmp_path, draft([b'\0\0\0\0\x07{"a":1}', b'\0\0\0\0\x08{"a":2}', None]))

    assert (contract.format, contract.wire_format, contract.schema.strip()) == ("json", "confluent", "a BIGINT")


def test_values_nested_without_end_are_refused() -> None:
    with pytest.raises(TerminalError, match="nested too deeply"):
        draft([b'{"a":' * 900 + b"1" + b"}" * 900])


def test_descriptor_of_a_registry_becomes_a_descriptor_set(tmp_path: Path) -> None:
    descriptor = Timestamp.DESCRIPTOR.file.serialized_pb
    text, at = b64encode(descriptor).decode(), Timestamp(seconds=NOON // 1000, nanos=5).SerializeToString()
    values = [b"\0\0\0\0\x07\0" + at, b"\0\0\0\0\x07\x09"]

    drafted = draft_pipeline("t", make_records(values), {"client.id": 'a"b'}, "drafted", lambda _: ("protobuf", text))

    ((file, schema),) = drafted.schema_files.items()
    (tmp_path / file).write_bytes(schema)
    assert file == "drafted.desc"
    contract = load(tmp_path, drafted)
    assert (contract.message, contract.event_time) == ("google.protobuf.Timestamp", "timestamp_seconds(value.seconds)")


@pytest.mark.parametrize(("kind", "suffix"), [("avro", ".avsc"), ("protobuf", ".proto")])
def test_schema_that_cannot_be_read_is_kept_as_it_is(kind: str, suffix: str) -> None:
    text = '{"type": "record"' if kind == "avro" else "message {"

    drafted = draft_pipeline("t", make_records([b"\0\0\0\0\x07\0\xff"]), {}, "drafted", lambda _: (kind, text))

    assert drafted.schema_files == {f"drafted{suffix}": text.encode()}
    assert drafted.doubts[0].startswith("No field is chosen, for the schema cannot be read as it is: ")


def test_schema_of_another_kind_is_named() -> None:
    with pytest.raises(TerminalError, match="schemas 7, and no JSON: schema 7 is one of json; write the TOML"):
        draft_pipeline("t", make_records([b"\0\0\0\0\x07\0\xff"]), {}, "drafted", lambda _: ("json", "{}"))
