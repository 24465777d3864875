"""Lines and records return from real files as they were, with their digests; damage never throws."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.raw_lines import CONTRACT, quarantine_record

from onceover.lines.escapes import CorruptLineError, escape_headers
from onceover.lines.fields import SCHEMA, read_fields
from onceover.lines.line_file import join_append
from onceover.lines.line_reference import MAX_EVENT_MS, Line, compute_digest, decode, encode
from onceover.lines.read import read
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Header, Record
from onceover.spark.compacted_files import aggregate_digest

pytestmark = pytest.mark.spark

GENERATION = "00c0ffee"
PIECES = [b"\\", b"\t", b"\n", b"\r", b"\r\n", b"\\N", b"\\x", b"\\t", b"\\\\", b"\0", b'{"a":1}', b"\xf0", b"\xff"]
PIECES += [b"\xe2\x82", b"\xc0\x80", b"\xef\xbb\xbf", "€😀".encode(), b"\xc2\x85", "\u2028".encode(), b"\x1a", b" "]


def test_bytes_of_any_record_return_from_a_real_file(spark: SparkSession, tmp_path: Path) -> None:
    expected = _lines(seed=2)
    file = join_append(map(encode, expected[:9])) + join_append(map(encode, expected[9:]))
    read = _read(spark, file).sort("offset")
    for line, row in zip(expected, read.collect(), strict=True):
        record = line.record
        assert row["intact"]
        assert (_bytes(row["key"]), _bytes(row["value"])) == (record.key, record.value)
        assert _bytes(row["headers"]) == escape_headers(record.headers)
        assert (row["generation"], row["kafka_partition"]) == (GENERATION, record.source.kafka_partition)
        assert (row["offset"], row["kafka_timestamp"]) == (record.offset, record.kafka_timestamp)
        assert (row["event_ms"], row["quarantined_for"]) == (line.event_ms, line.reason)
        assert row["contract"] == line.contract
    assert _digest(read) == compute_digest(line.record for line in expected)
    assert _digest(read.limit(0)) == Digest()


def test_rubbish_is_never_intact_and_never_throws(spark: SparkSession, tmp_path: Path) -> None:
    generator = random.Random(4)
    source = KafkaPartition(GENERATION, 3)
    good = encode(Line(Record(source, 0, 5, b"k", (("h", b"x"),), b"\xf0v\\"), 7, CONTRACT, (b"a", None)))
    quarantined = encode(quarantine_record(Record(source, 1, 5, None, (), None), "unparseable"))
    bad = {good + good, good + b"\r", quarantined + good}
    for data in (good, quarantined):
        for at in range(len(data)):
            bad |= {data[:at], data[at + 1 :]}
            bad |= {data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :] for bit in range(8)}
    bad |= {generator.randbytes(generator.randrange(1, 200)) for _ in range(200)}
    bad = {piece for data in bad for piece in data.split(b"\n") if piece}
    assert not any(map(_is_intact, bad))
    found = _read(spark, join_append([*bad, good, quarantined]))
    rows = found.groupBy("intact").agg(F.count("*").alias("n"), F.count("value").alias("values"), F.max("key"))
    assert {row["intact"]: (row["n"], row["values"]) for row in rows.collect()} == {False: (len(bad), 0), True: (2, 1)}


def test_batch_of_large_records_is_bounded_by_its_bytes(spark: SparkSession) -> None:
    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows]), pa.array([batch.nbytes])], ["rows", "bytes"])

    large = spark.range(0, 40, 1, 1).select(F.expr("cast(repeat('x', 1000000) AS binary)"))
    sizes = large.mapInArrow(measure, "rows bigint, bytes bigint").collect()
    assert sum(row["rows"] for row in sizes) == 40
    assert max(row["bytes"] for row in sizes) < 18 << 20
    small = spark.range(0, 20_000, 1, 1).mapInArrow(measure, "rows bigint, bytes bigint").collect()
    assert [row["rows"] for row in small] == [10_000, 10_000]


def test_torn_append_costs_none_of_the_records_around_it(spark: SparkSession, tmp_path: Path) -> None:
    data = [encode(line) for line in _lines(seed=5)[:6]]
    torn = join_append(data[:3])[: -len(data[2]) // 2]
    found = _read(spark, torn + join_append(data[3:])).groupBy("intact").count().collect()
    assert {row["intact"]: row["count"] for row in found} == {True: 5, False: 1}


def test_digests_of_disjoint_sets_add_up_and_show_a_double(spark: SparkSession, tmp_path: Path) -> None:
    chosen = [encode(line) for line in _lines(seed=8)[:30]]
    parts = (chosen, chosen[:11], chosen[11:], [*chosen[:-1], chosen[0]])
    whole, first, rest, swapped = (_digest(_read(spark, join_append(part))) for part in parts)
    assert first + rest == whole
    assert swapped.records == whole.records, "as many records, one twice and one missing"
    assert swapped != whole


def _lines(seed: int) -> list[Line]:
    """Awkward records of one Kafka partition in offset order; one value of 1 MB, a fifth in quarantine."""
    generator = random.Random(seed)

    def some_bytes() -> bytes:
        pieces = generator.choices([*PIECES, generator.randbytes(3)], k=generator.randrange(9))
        return b"".join(pieces)

    def nullable() -> bytes | None:
        return None if generator.random() < 0.15 else some_bytes()

    found = []
    for offset in range(150):
        headers: list[Header] = [(some_bytes(), nullable()) for _ in range(generator.choice([0, 0, 1, 3]))]
        value = generator.randbytes(1_000_000) if offset == 20 else nullable()
        timestamp = generator.choice([-1, 0, -(2**63), 2**63 - 1, 1_357_016_400_123])
        source = KafkaPartition(GENERATION, 99_999)
        record = Record(source, offset * 10**16, timestamp, nullable(), tuple(headers), value)
        if generator.random() < 0.2:
            reason = generator.choice(["", "missing field x", "a\tb\n\\", "\u20ac"])
            found.append(quarantine_record(record, reason))
        else:
            columns = (nullable(), b"2.50") if offset % 3 else None
            found.append(Line(record, generator.choice([0, MAX_EVENT_MS, 1_357_016_400_000]), CONTRACT, columns))
    return found


def _read(spark: SparkSession, file: bytes) -> DataFrame:
    return spark.createDataFrame(pa.table(read_fields(read(memoryview(file)), SCHEMA.names), schema=SCHEMA))


def _digest(read: DataFrame) -> Digest:
    row = read.agg(*aggregate_digest()).collect()[0]
    return Digest(*row)


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


def _is_intact(data: bytes) -> bool:
    try:
        decode(data)
    except CorruptLineError:
        return False
    return True
