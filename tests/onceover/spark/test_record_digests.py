"""Digests of lines in a DataFrame are those of their records; damage never throws; batches are bounded by bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.raw_lines import CONTRACT, join_append, quarantine_record

from onceover.lines.arrow_fields import SCHEMA, read_fields
from onceover.lines.escapes import CorruptLineError
from onceover.lines.line_format import Line, compute_digest, decode, encode
from onceover.lines.read import read
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record
from onceover.spark.compacted_files import aggregate_digest

pytestmark = pytest.mark.spark
SOURCE = KafkaPartition("00c0ffee", 3)


def test_rubbish_is_never_intact_and_never_throws(spark: SparkSession) -> None:
    generator = random.Random(4)
    good = encode(Line(Record(SOURCE, 0, 5, b"k", (("h", b"x"),), b"\xf0v\\"), 7, CONTRACT, (b"a", None)))
    quarantined = encode(quarantine_record(Record(SOURCE, 1, 5, None, (), None), "unparseable"))
    bad = {good + good, good + b"\r", quarantined + good}
    for data in (good, quarantined):
        for at in range(len(data)):
            bad |= {data[:at], data[at + 1 :]}
            bad |= {data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :] for bit in range(8)}
    bad |= {generator.randbytes(generator.randrange(1, 200)) for _ in range(200)}
    bad = {piece for data in bad for piece in data.split(b"\n") if piece}
    assert not any(map(_is_intact, bad))
    found = _read(spark, [*bad, good, quarantined])
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


def test_digests_of_disjoint_sets_add_up_and_show_a_double(spark: SparkSession) -> None:
    records = [Record(SOURCE, offset, 5, b"\\N", (("h", None),), b"\xff\t%d" % offset) for offset in range(30)]
    data = [encode(Line(record, 7, CONTRACT, (b"1",))) for record in records]
    parts: list[list[bytes]] = [data, data[:11], data[11:], [*data[:-1], data[0]], []]
    whole, first, rest, swapped, none = (_digest(_read(spark, part)) for part in parts)
    assert first + rest == whole == compute_digest(records)
    assert swapped.records == whole.records, "as many records, one twice and one missing"
    assert swapped != whole
    assert none == Digest()


def _read(spark: SparkSession, lines: Sequence[bytes]) -> DataFrame:
    fields = read_fields(read(memoryview(join_append(lines))), SCHEMA.names)
    return spark.createDataFrame(pa.table(fields, schema=SCHEMA))


def _digest(read: DataFrame) -> Digest:
    row = read.agg(*aggregate_digest()).collect()[0]
    return Digest(*row)


def _is_intact(data: bytes) -> bool:
    try:
        decode(data)
    except CorruptLineError:
        return False
    return True
