"""A pipeline's driver: the ingest loop with its topic, its offset store and its Spark side.

`jobs/ingest.py` runs the driver until it is stopped; a repair runs one for what its request has read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.fault_points import FaultPoint
from onceover.ingest.batch_queries import BatchQueries
from onceover.ingest.batch_steps import BatchResult
from onceover.ingest.contracts import keep_registered_contracts
from onceover.ingest.driver import Ingest
from onceover.ingest.micro_batch import append_batch
from onceover.ingest.restatements import share_restatements
from onceover.kafka import Topic
from onceover.kafka.reader import KafkaSource
from onceover.ledger.catalog import RegisteredPipeline, require_in_force
from onceover.ledger.drivers import Epoch, name_process, record_versions
from onceover.model.batch_plan import cut_into_shards
from onceover.model.offsets import OffsetRange
from onceover.offset_stores import open_store
from onceover.offset_stores.tracker import OffsetTracker
from onceover.spark.session import read_zone_data

MAX_IDLE_SECONDS = 30
"""The longest pause of a driver within a transaction: PostgreSQL ends the connection then."""


@contextmanager
def open_source(context: PipelineContext) -> Iterator[tuple[Topic, OffsetTracker]]:
    """Open the pipeline's topic and its stored offsets until the end of the block. Connects to neither yet."""
    pipeline, policy = context.pipeline, context.pipeline.ingest
    with (
        context.open_topic() as topic,
        closing(open_store(policy.offset_store, context)) as store,
    ):
        yield topic, OffsetTracker(context.ledger, pipeline.name, policy.offset_store, store)


def build_driver(
    spark: SparkSession,
    context: PipelineContext,
    epoch: Epoch,
    registered: RegisteredPipeline,
    topic: Topic,
    offsets: OffsetTracker,
    fault_point: FaultPoint,
) -> Ingest:
    """Return the driver that holds `epoch`, which keeps out migrations, and mark the raw root with it. Raises
    ContractChangedError if the pipeline was migrated since `registered` was read, RootRefusedError if the root is not
    the ledger's own."""
    require_in_force(context.ledger, registered)
    # A paused or cut-off driver must not keep out its successor, nor keep windows locked, by an open transaction.
    context.ledger.execute(f"SET idle_in_transaction_session_timeout = '{MAX_IDLE_SECONDS}s'")
    root = context.root.claim(epoch, topic.read_cluster_id(), name_process())
    keep_registered_contracts(spark, context, registered)
    share_restatements(context)
    record_versions(context.ledger, epoch, spark.version, read_zone_data(spark))
    policy, queries = context.pipeline.ingest, BatchQueries(spark, context)

    def append(
        registered: RegisteredPipeline, ranges: Sequence[OffsetRange], source: KafkaSource, only: datetime | None
    ) -> BatchResult:
        shards = cut_into_shards(policy.sharding, ranges, spark.sparkContext.defaultParallelism)
        make_query = partial(queries.find, registered, source, shards, only)
        return append_batch(spark, context, make_query, ranges, shards)

    return Ingest(
        context.ledger,
        epoch,
        registered,
        policy,
        topic,
        offsets,
        append,
        context.files,
        root,
        fault_point,
        context.build_source,
        context.ask_registry(keep=True),
    )
