"""Raw compared with Kafka's log: the leader epochs of the runs whose records the log holds too, by their digests."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from onceover.errors import OnceoverError
from onceover.kafka import TopicFacts
from onceover.kafka.held_log import clip_to_held
from onceover.kafka.reader import KafkaSource
from onceover.model.digest import HALVES, Digest, sum_digests
from onceover.model.log_history import NO_EPOCH, order_epochs
from onceover.model.offsets import OffsetRange
from onceover.model.raw_file import LONGEST_RUN, Run
from onceover.spark import lines
from onceover.spark.failure import summarize
from onceover.spark.range_join import looked_up
from onceover.spark.source import read_ranges

log = logging.getLogger(__name__)
_READS_AT_ONCE = 10
_MOST_FAILED = 2
"""Spark jobs in a row that may fail before the rest is left to ingest: the oldest offsets expire while others are read,
and a broker that is down fails all."""


def add_leader_epochs(
    spark: SparkSession, source: KafkaSource, facts: TopicFacts, runs: Sequence[Run]
) -> tuple[Run, ...]:
    """Return these runs, in order and disjoint; those that the log holds whole, with the same records, have its epochs.

    What cannot be read is logged: its epochs stay unknown, and ingest reads it once more.
    """
    epochs: dict[int, tuple[tuple[int, int], ...]] = {}
    failed = 0
    every = list(_list_reads(runs, facts))
    for at in range(0, len(every), _READS_AT_ONCE):
        reads = every[at : at + _READS_AT_ONCE]
        try:
            within = {number: runs[number] for _, numbers in reads for number in numbers}
            epochs |= _compare(spark, source, [offsets for offsets, _ in reads], within)
            failed = 0
        except (OnceoverError, PySparkException) as error:
            failed += 1
            log.warning("%d ranges of raw were not compared with the log: %s", len(reads), summarize(error))
            if failed == _MOST_FAILED:
                break
    return tuple(replace(run, leader_epochs=epochs.get(number, ())) for number, run in enumerate(runs))


def _list_reads(runs: Iterable[Run], facts: TopicFacts) -> Iterator[tuple[OffsetRange, list[int]]]:
    """Yield ranges that each one task reads, with the numbers of the runs in them, those that the log holds whole: many
    short runs, as of transactions, are one range."""
    whole: OffsetRange | None = None
    numbers: list[int] = []
    for number, run in enumerate(runs):
        offsets = run.offsets
        if clip_to_held(offsets, facts) != offsets:
            continue
        if whole and whole.source == offsets.source and offsets.end - whole.start <= LONGEST_RUN:
            whole = OffsetRange(whole.source, whole.start, offsets.end)
            numbers.append(number)
            continue
        if whole:
            yield whole, numbers
        whole, numbers = offsets, [number]
    if whole:
        yield whole, numbers


def _compare(
    spark: SparkSession, source: KafkaSource, reads: Sequence[OffsetRange], runs: Mapping[int, Run]
) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return by number the leader epochs of the runs whose records are those of the log."""
    rows = (
        read_ranges(spark, source, reads)
        .withColumn("generation", F.lit(reads[0].source.generation))
        .transform(looked_up(((run.offsets, number) for number, run in runs.items()), "number"))
        .where("number IS NOT NULL")
        .groupBy("number", F.coalesce("leader_epoch", F.lit(NO_EPOCH)).alias("epoch"))
        .agg(
            *lines.aggregate_digest(),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
        )
        .collect()  # one row a run and leader epoch
    )
    of_run: dict[int, list[Row]] = {}
    for row in rows:
        of_run.setdefault(row.number, []).append(row)
    return {
        number: order_epochs({row.epoch: (row.first, row.last) for row in several})
        for number, several in of_run.items()
        if runs[number].digest
        == sum_digests(Digest(r.records, *(getattr(r, half) for half in HALVES)) for r in several)
    }
