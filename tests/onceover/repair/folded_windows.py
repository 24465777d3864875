"""Windows on the real HDFS that are folded, and the rows that their records give."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession
from tests.onceover.spark.contracts import NOON

from onceover.lines.contract_names import name_contracts
from onceover.lines.line_format import Line, encode
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.contract import Contract, Contracts
from onceover.model.digest import EMPTY
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.record import Record
from onceover.spark.aggregate import aggregate
from onceover.spark.interpret import interpret

SOURCE, STRANGER = KafkaPartition("0badcafe", 3), KafkaPartition("00000000", 3)
FIVE = 300_000
EPOCH = 1
"""Of all lines and landings."""
PAID = b'{"payment":{"at_ms":%d,"amount":"%d.10"},"country":%s,"note":%s,"cents":%d}'
COUNTRIES, NOTES = (b'"NO"', b"null", b'"S\\\\\\tE"', b'"\\u00e9"'), (b"null", b'"a\\nb"', b'"\\\\N"')


def make_dated(offset: int, event_ms: int, source: KafkaPartition = SOURCE, cents: int = 0) -> tuple[Record, int]:
    """Return a record with its event time."""
    value = PAID % (event_ms, offset % 2000, COUNTRIES[offset % 4], NOTES[offset % 3], cents)
    return Record(source, offset, NOON, (None, b"c1", b"c\t2")[offset % 3], (), value), event_ms


class Writer:
    """Writes records as ingest does, with columns by Spark."""

    def __init__(self, spark: SparkSession, contract: Contract) -> None:
        self._spark, self._contract = spark, contract
        (self._name, _) = name_contracts(Contracts((contract,)))

    def interpret(self, records: Sequence[tuple[Record, int]]) -> DataFrame:
        return self._spark.createDataFrame(
            [(n, r.offset, r.kafka_timestamp, r.key, bytearray(), bytearray(r.value or b""))
             for n, (r, _) in enumerate(records)],
            "kafka_partition int, offset bigint, kafka_timestamp bigint, key binary, headers binary, value binary",
        ).transform(interpret(self._contract))  # fmt: skip

    def aggregate(self, records: Sequence[tuple[Record, int]]) -> DataFrame:
        """Return the rows that these records give, each counted once."""
        return self.interpret(records).transform(aggregate(self._contract))

    def write(self, records: Sequence[tuple[Record, int]]) -> list[bytes]:
        rows = self.interpret(records)
        names = [name for name in rows.columns if name.startswith(("k_", "m_"))]
        columns = {
            row[0]: row[1:]
            for row in rows.selectExpr("kafka_partition", *(f"cast({n} AS string)" for n in names)).collect()
        }
        return [
            encode(Line(record, event_ms, self._name.decode(),
                        tuple(None if c is None else c.encode() for c in columns[n]), EPOCH))
            for n, (record, event_ms) in enumerate(records)
        ]  # fmt: skip


def start_of(n: int) -> datetime:
    return datetime.fromtimestamp((NOON + n * FIVE) / 1000, UTC)


def claim(n: int, *landed: OffsetRange) -> ClaimedWindow:
    landings = tuple(
        ClaimedLanding(10 * n + i, ((piece, EMPTY),), spans=(EpochSpan(piece, EPOCH),))
        for i, piece in enumerate(landed)
    )
    return ClaimedWindow(1, start_of(n), start_of(n) + timedelta(minutes=5), UUID(int=1), 1, landings, None)


def whole(start: int, end: int) -> OffsetRange:
    return OffsetRange(SOURCE, start, end)


def list_rows(aggregated: DataFrame, after_ms: int) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the columns' types, and the rows of windows that begin after that."""
    rows = sorted(map(tuple, aggregated.where(f"window_ms > {after_ms}").collect()), key=str)
    assert len(rows) > 30
    return [f"{field.name} {field.dataType}" for field in aggregated.schema], rows
