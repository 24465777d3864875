"""Spark's lines are the reference's, byte for byte, there and back through a real file; digests tell records apart."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover.model.digest import SEEDS, Digest, sum_digests
from onceover.model.line import (
    CONTENT,
    CRC,
    ID,
    MAX_EVENT_MS,
    CorruptLineError,
    Header,
    Line,
    Record,
    compute_digest,
    decode,
    encode,
    escape_headers,
    frame,
)
from onceover.model.offsets import KafkaPartition
from onceover.spark import lines, parquet

pytestmark = pytest.mark.spark

GENERATION = "00c0ffee"
SCHEMA = (
    "kafka_partition INT, offset BIGINT, kafka_timestamp BIGINT, key BINARY, headers BINARY, value BINARY, "
    "event_ms BIGINT, reason STRING"
)
PIECES = [b"\\", b"\t", b"\n", b"\r", b"\r\n", b"\\N", b"\\x", b"\\t", b"\\\\", b"\0", b'{"a":1}', b"\xf0", b"\xff"]
PIECES += [b"\xe2\x82", b"\xc0\x80", b"\xef\xbb\xbf", "€😀".encode(), b"\xc2\x85", "\u2028".encode(), b"\x1a", b" "]


def test_spark_writes_the_reference_bytes(spark: SparkSession) -> None:
    expected = _lines(seed=1)
    rows = _framed(spark, expected).select("id", "content", "line").collect()
    for line, row in zip(expected, rows, strict=True):
        data = encode(line)
        assert bytes(row["line"]) == data + b"\n"
        assert bytes(row["id"]) == data[ID]
        assert bytes(row["content"]) == _content(line)


def test_bytes_of_any_record_return_from_a_real_file(spark: SparkSession, tmp_path: Path) -> None:
    expected = _lines(seed=2)
    written = [bytes(row["line"])[:-1] for row in _framed(spark, expected).select("line").collect()]
    read = _read(spark, tmp_path, frame(written[:9]) + frame(written[9:])).sort("offset").collect()
    for line, row in zip(expected, read, strict=True):
        record = line.record
        assert row["intact"]
        assert _bytes(row["key"]) == record.key
        assert _bytes(row["payload"]) == record.value
        assert _bytes(row["headers"]) == escape_headers(record.headers)
        assert _bytes(row["id"]) == encode(line)[ID]
        assert _bytes(row["content"]) == _content(line)
        assert row["generation"] == GENERATION
        assert row["kafka_partition"] == record.source.kafka_partition
        assert row["offset"] == record.offset
        assert row["kafka_timestamp"] == record.kafka_timestamp
        assert row["event_ms"] == line.event_ms


def test_line_read_back_and_framed_again_is_the_same_line(spark: SparkSession, tmp_path: Path) -> None:
    data = sorted(encode(line) for line in _lines(seed=3) if line.reason is None)
    parsed = _read(spark, tmp_path, frame(data))
    again = parsed.transform(lines.as_records).withColumn("reason", F.lit(None).cast("string"))
    rows = again.transform(lines.framed(GENERATION)).sort("id").select("line").collect()
    assert [bytes(row["line"]) for row in rows] == [line + b"\n" for line in data]


def test_bytes_of_any_record_return_from_a_parquet_file(spark: SparkSession, tmp_path: Path) -> None:
    expected, folder = [line for line in _lines(seed=9) if line.reason is None], str(tmp_path / "compacting")
    records = _framed(spark, expected).withColumns({"generation": F.lit(GENERATION), "window_ms": F.lit(7)})
    parquet.write(records, folder)
    parquet.write(records, folder)  # what an earlier run has left is overwritten
    ((window, back),) = parquet.read_back(spark, folder).items()
    assert (window, back.is_one) == (7, True)
    held = Digest(back.records, back.high1, back.low1, back.high2, back.low2)
    assert held == sum_digests(_reference_digest(line) for line in expected)
    read = parquet.read_parquet(spark, {7: back.path}).sort("offset").collect()
    for line, row in zip(expected, read, strict=True):
        record = line.record
        assert (row["window_ms"], row["intact"], row["event_ms"]) == (7, True, line.event_ms)
        assert (_bytes(row["key"]), _bytes(row["value"])) == (record.key, record.value)
        assert (_bytes(row["id"]), _bytes(row["content"])) == (encode(line)[ID], _content(line))


def test_rubbish_is_never_intact_and_never_throws(spark: SparkSession, tmp_path: Path) -> None:
    generator = random.Random(4)
    good = encode(Line(Record(KafkaPartition(GENERATION, 3), 0, 5, b"k", (("h", b"x"),), b"\xf0v\\"), 7))
    quarantined = encode(Line(Record(KafkaPartition(GENERATION, 3), 1, 5, None, (), None), None, "unparseable"))
    bad = {good + good, good + b"\r", quarantined + good}
    for data in (good, quarantined):
        for at in range(len(data)):
            bad |= {data[:at], data[at + 1 :]}
            bad |= {data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :] for bit in range(8)}
    bad |= {generator.randbytes(generator.randrange(1, 200)) for _ in range(200)}
    bad = {piece for data in bad for piece in data.split(b"\n") if piece}
    assert not any(map(_is_intact, bad))
    found = _read(spark, tmp_path, frame([*bad, good, quarantined]))
    rows = found.groupBy("intact").agg(F.count("*").alias("n"), F.max("payload"), F.max("key"), F.max("content"))
    assert {row["intact"]: row["n"] for row in rows.collect()} == {False: len(bad), True: 2}


def test_offset_whose_range_has_no_bigint_end_is_not_intact(spark: SparkSession, tmp_path: Path) -> None:
    data = []
    for last in (b"9223372036854775806", b"9223372036854775807"):
        line = b"00c0ffee-00003-%b 00000000 0000000000007 00000000000000000005\tk\t\tv" % last
        crc = b"%08x" % zlib.crc32(line[: CRC.start] + line[CRC.stop + 1 :])
        data.append(line[: CRC.start] + crc + line[CRC.stop :])
    found = _read(spark, tmp_path, frame(data)).sort("id").select("offset", "intact").collect()
    assert [row.intact for row in found] == [True, False]


def test_torn_append_costs_none_of_the_records_around_it(spark: SparkSession, tmp_path: Path) -> None:
    data = [encode(line) for line in _lines(seed=5)[:6]]
    torn = frame(data[:3])[: -len(data[2]) // 2]
    rows = _read(spark, tmp_path, torn + frame(data[3:])).sort("intact", "id").collect()
    assert [row["intact"] for row in rows] == [False] + [True] * 5
    assert [_bytes(row["id"]) for row in rows[1:]] == [line[ID] for line in data[:2] + data[3:]]


@pytest.mark.parametrize("event_ms", [-1, MAX_EVENT_MS + 1, None])
def test_unreadable_line_is_not_written(spark: SparkSession, event_ms: int | None) -> None:
    rows = spark.createDataFrame([(3, 0, 0, None, b"", None, event_ms, None)], SCHEMA)
    with pytest.raises(PySparkException, match=r"event_ms is wider than 13 digits|neither event_ms nor a reason"):
        rows.transform(lines.framed(GENERATION)).select("line").collect()


def test_digest_is_the_published_xxhash64_of_id_and_content(spark: SparkSession) -> None:
    assert _xxh64(b"", 0) == 0xEF46DB3751D8E999  # check values of the xxHash specification's reference program
    assert _xxh64(b"abc", 0) == 0x44BC2CF5AD770999
    chosen = _lines(seed=6)[:40]
    digest = sum_digests(_reference_digest(line) for line in chosen)
    assert _digest(_framed(spark, chosen)) == compute_digest(line.record for line in chosen) == digest


def test_digest_ignores_order_and_spark_partitions(spark: SparkSession) -> None:
    framed = _framed(spark, _lines(seed=7))
    assert _digest(framed) == _digest(framed.repartition(7).sortWithinPartitions("content"))


def test_digests_of_disjoint_sets_add_up_and_show_a_double(spark: SparkSession) -> None:
    chosen = _lines(seed=8)[:30]
    whole, first, rest = (_digest(_framed(spark, part)) for part in (chosen, chosen[:11], chosen[11:]))
    assert first + rest == whole
    swapped = _digest(_framed(spark, [*chosen[:-1], chosen[0]]))  # as many records, one twice and one missing
    assert swapped.records == whole.records
    assert swapped != whole


def test_digests_differ_by_nulls_and_by_field_boundaries(spark: SparkSession) -> None:
    fields: list[tuple[bytes | None, tuple[Header, ...], bytes | None]] = [
        (key, (), value) for key in (None, b"", rb"\N", b"\t") for value in (None, b"", rb"\N", b"\t")
    ]
    fields += [(b"a", (), b"b"), (b"ab", (), b""), (b"", (("a", b"b"),), b""), (b"", (("a", None),), b"")]
    source = KafkaPartition(GENERATION, 3)
    chosen = [Line(Record(source, 0, 0, *each), 0) for each in fields]
    halves = lines.digest_halves(F.col("id"), F.col("content"))
    assert _framed(spark, chosen).select(*halves).distinct().count() == len(fields)


def test_digest_of_nothing_is_zero_and_leaves_the_reason_out(spark: SparkSession) -> None:
    record = Record(KafkaPartition(GENERATION, 3), 0, 0, None, (), b"x")
    judged = [[Line(record, 5)], [Line(record, None, "unparseable")], [Line(record, None, "tombstone")]]
    assert len({_digest(_framed(spark, each)) for each in judged}) == 1
    assert _digest(_framed(spark, [])) == Digest()


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
            found.append(Line(record, None, generator.choice(["", "missing field x", "a\tb\n\\", "\u20ac"])))
        else:
            found.append(Line(record, generator.choice([0, MAX_EVENT_MS, 1_357_016_400_000])))
    return found


def _framed(spark: SparkSession, chosen: Sequence[Line]) -> DataFrame:
    rows = [
        (
            line.record.source.kafka_partition,
            line.record.offset,
            line.record.kafka_timestamp,
            line.record.key,
            escape_headers(line.record.headers),
            line.record.value,
            line.event_ms,
            line.reason,
        )
        for line in chosen
    ]
    return spark.createDataFrame(rows, SCHEMA).transform(lines.framed(GENERATION))


def _read(spark: SparkSession, folder: Path, file: bytes) -> DataFrame:
    path = folder / "0500.log"
    path.write_bytes(file)
    return spark.read.text(str(path), lineSep="\n").where(lines.not_empty()).transform(lines.parse_lines())


def _digest(framed: DataFrame) -> Digest:
    row = framed.agg(*lines.aggregate_digest(F.col("id"), F.col("content"))).collect()[0]
    return Digest(*row)


def _content(line: Line) -> bytes:
    """From the Kafka timestamp to the value, under any judgement of the record."""
    return encode(Line(line.record, 0))[CONTENT]


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


def _is_intact(data: bytes) -> bool:
    try:
        decode(data)
    except CorruptLineError:
        return False
    return True


def _reference_digest(line: Line) -> Digest:
    halves: list[int] = []
    for seed in SEEDS:
        result = _xxh64(struct.pack("<i", seed), 42)  # Spark's own seed, then column by column
        for part in (encode(line)[ID], _content(line)):
            result = _xxh64(part, result)
        halves += [result >> 32, result & 0xFFFFFFFF]
    return Digest(1, *halves)


def _xxh64(data: bytes, seed: int) -> int:
    """XXH64 as its specification describes it: doc/xxhash_spec.md of Cyan4973/xxHash."""
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5, mask = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, (1 << 64) - 1

    def rotated(value: int, by: int) -> int:
        return (value << by | value >> 64 - by) & mask

    def mixed(accumulator: int, lane: int) -> int:
        return rotated((accumulator + lane * p2) & mask, 31) * p1 & mask

    at = 0
    result = (seed + p5) & mask
    if len(data) >= 32:
        accumulators = [(seed + p1 + p2) & mask, (seed + p2) & mask, seed, (seed - p1) & mask]
        while at + 32 <= len(data):
            lanes = struct.unpack_from("<4Q", data, at)
            accumulators = [mixed(a, lane) for a, lane in zip(accumulators, lanes, strict=True)]
            at += 32
        result = sum(rotated(a, by) for a, by in zip(accumulators, (1, 7, 12, 18), strict=True)) & mask
        for accumulator in accumulators:
            result = ((result ^ mixed(0, accumulator)) * p1 + p4) & mask
    result = (result + len(data)) & mask
    while at + 8 <= len(data):
        result = (rotated(result ^ mixed(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= len(data):
        result = (rotated(result ^ struct.unpack_from("<I", data, at)[0] * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        result = rotated(result ^ byte * p5 & mask, 11) * p1 & mask
    result = (result ^ result >> 33) * p2 & mask
    result = (result ^ result >> 29) * p3 & mask
    return result ^ result >> 32
