"""The queries of one driver, kept from batch to batch: planning one takes longer than a small batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.ingest.batch_query import BatchQuery, read_day
from onceover.kafka.reader import KafkaSource
from onceover.ledger.catalog import RegisteredPipeline
from onceover.model.batch_plan import MAX_PER_CORE
from onceover.model.offsets import OffsetRange
from onceover.spark.decoding import find_decoding
from onceover.spark.source import read_shards

FEW_OFFSETS: Final = 5_000
"""Offsets of a batch that one task reads and appends: more tasks, and a shuffle between them, cost more than they
gain."""
_MAX_KEPT: Final = 8


@dataclass(slots=True)
class BatchQueries:
    """Queries by what they depend on: contract, incarnation of the topic, what it holds that no reader gets, day,
    number of tasks, and poison records."""

    spark: SparkSession
    context: PipelineContext
    _kept: dict[object, BatchQuery] = field(default_factory=dict)

    def find(
        self,
        registered: RegisteredPipeline,
        source: KafkaSource,
        shards: Sequence[OffsetRange],
        only: datetime | None,
    ) -> BatchQuery:
        """Return the query that reads so many shards, of one generation; that of `only` one window is not kept."""
        most = max(len({shard.source for shard in shards}), MAX_PER_CORE * self.spark.sparkContext.defaultParallelism)
        tasks = 1 if sum(map(len, shards)) <= FEW_OFFSETS else min(len(shards), most)  # shards of holes may be many
        key = (
            registered.contract_version, source.topic_id, source.one_batch_a_fetch, source.unreadable, read_day(),
            tasks, registered.poison,
        )  # fmt: skip
        if only is None and key in self._kept:
            return self._kept[key]
        schemas = self.context.ask_registry(keep=True)
        decoding = find_decoding(self.spark, registered.contract, schemas, plain=True)
        records = read_shards(self.spark, source, tasks, decoding)
        query = BatchQuery(
            self.spark, self.context, registered, shards[0].source.generation, records, tasks, only, schemas
        )
        if only is None:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[key] = query
        return query
