"""What a contract makes of the last records of its topic. Reads Kafka only; no raw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from onceover.kafka import TopicFacts
from onceover.kafka.last_offsets import plan_sample
from onceover.kafka.reader import KafkaSource
from onceover.lines.escapes import unescape_headers
from onceover.model.contract import Contract, name_values
from onceover.model.measures import SKIPPED
from onceover.model.offsets import KafkaPartition, subtract
from onceover.model.poison import PoisonRecord
from onceover.model.record import Record
from onceover.model.window import format_moment, from_ms
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.interpret import interpret
from onceover.spark.source import read_ranges
from onceover.spark.sql_failure import evaluate_record, explain_sql_failure
from onceover.spark.windowing import find_window
from onceover.spark.wire_format import find_remedy

MAX_SHOWN = 5
FAR_MS = 30 * 60_000
"""Zones are an hour apart, so that one that was read wrongly shows beside half an hour of delay."""


@dataclass(frozen=True, slots=True)
class Times:
    """The event time of a record beside the time that Kafka gave it, in ms; below 0 is none of Kafka's."""

    event_ms: int
    kafka_ms: int

    @property
    def difference_ms(self) -> int | None:
        """How long after Kafka's time the event time is."""
        return self.event_ms - self.kafka_ms if self.kafka_ms >= 0 else None

    @property
    def is_far(self) -> bool:
        return abs(self.difference_ms or 0) > FAR_MS


@dataclass(frozen=True, slots=True)
class SampledReason:
    """A reason for quarantine, its number of records, Spark's own error if the contract's SQL threw, what to do about
    it where that is known, and for a record beyond a bound its event time and Kafka's."""

    reason: str
    records: int
    error: str | None
    remedy: str | None
    example: Times | None


@dataclass(frozen=True, slots=True)
class TopicSample:
    """The number of records, of each window by its start and of each reason; of those that fit, how many have an event
    time far from Kafka's, and how many each measure skips; and keys and measures of the newest."""

    records: int
    far: int
    skipped: Mapping[str, int]
    windows: Mapping[str, int]
    reasons: Sequence[SampledReason]
    newest: Sequence[Mapping[str, Any]]

    @property
    def quarantined(self) -> int:
        return sum(each.records for each in self.reasons)


def sample_topic(
    spark: SparkSession,
    source: KafkaSource,
    facts: TopicFacts,
    contract: Contract,
    most: int,
    poison: Sequence[PoisonRecord] = (),
    schemas: SchemaFiles | None = None,
) -> TopicSample:
    """Return what ingest would make of the topic's last `most` offsets, without those that no reader gets, by what the
    source knows, and without evaluating those of `poison`. An action raises the errors of reading."""
    ranges = subtract(plan_sample(facts, most), source.unreadable)
    read = read_ranges(spark, source, ranges).transform(interpret(contract, poison, schemas)).cache()
    try:
        is_far = (F.col("kafka_timestamp") >= 0) & (F.abs(F.col("event_ms") - F.col("kafka_timestamp")) > FAR_MS)
        found = (
            read.where("reason IS NULL")
            .groupBy(find_window(contract.windowing).alias("at"))
            .agg(F.count(F.lit(1)).alias("records"), F.count_if(is_far).alias("far"))
            .orderBy("at")
            .collect()
        )
        skips = [measure for measure in contract.measures if measure.operation == SKIPPED]
        sums = [F.coalesce(F.sum(f"m_{each.name}"), F.lit(0)).alias(each.sql) for each in skips]
        skipped = read.where("reason IS NULL").agg(*sums).collect()[0].asDict() if sums else {}
        windows = {format_moment(from_ms(row["at"])): row["records"] for row in found}
        record = F.struct("kafka_partition", "offset", "kafka_timestamp", "key", "headers", "value")
        first = F.min_by(record, "offset").alias("first")
        refused = read.where("reason IS NOT NULL").groupBy("reason").agg(F.count(F.lit(1)).alias("records"), first)
        reasons = []
        for row in refused.orderBy(F.desc("records"), "reason").collect():
            p, offset, stamp, key, headers, value = row["first"]
            read_from = KafkaPartition(facts.generation, p)
            first_record = Record(read_from, offset, stamp, key, unescape_headers(bytes(headers)), value)
            error = explain_sql_failure(spark, contract, row["reason"], first_record, poison, schemas)
            example = _find_times(spark, contract, row["reason"], first_record, schemas)
            reasons.append(SampledReason(row["reason"], row["records"], error, find_remedy(row["reason"]), example))
        columns = ["kafka_partition", "offset", "kafka_timestamp", *name_values(contract)]
        newest = read.where("reason IS NULL").orderBy(F.desc("kafka_timestamp"), F.desc("offset")).limit(MAX_SHOWN)
        rows = [row.asDict() for row in newest.select(*columns).collect()]
    finally:
        read.unpersist()
    records = sum(windows.values()) + sum(each.records for each in reasons)
    return TopicSample(records, sum(row["far"] for row in found), skipped, windows, reasons, rows)


def _find_times(
    spark: SparkSession, contract: Contract, reason: str, record: Record, schemas: SchemaFiles | None
) -> Times | None:
    """Return the times of a record whose event time is beyond a bound: `interpret` shows none of a refused record."""
    if not reason.startswith("beyond "):
        return None
    return Times(evaluate_record(spark, contract, "event_ms", record, schemas), record.kafka_timestamp)
