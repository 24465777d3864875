"""spark-submit entry: rebuild a pipeline's batches, landings, windows and frontiers from its raw alone."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from onceover.context import PipelineContext, open_pipeline
from onceover.entrypoint import run
from onceover.errors import TerminalError, TransientError
from onceover.kafka import Topic, TopicFacts
from onceover.kafka.topic import read_cluster_id
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.drivers import as_driver
from onceover.ledger.migrate import upgrade_schema
from onceover.model.json_text import to_json
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawContents
from onceover.model.root_marker import join_origins
from onceover.offset_stores.postgres import LedgerOffsetStore
from onceover.recovery.rebuild_ledger import find_ends, require_no_batches, write_ledger
from onceover.recovery.scan import scan
from onceover.spark.contract_check import check_contract
from onceover.spark.failure import summarize
from onceover.spark.session import open_session


def main(arguments: Sequence[str]) -> int:
    """Rebuild the ledger in one transaction: a killed run leaves nothing behind. Exits 0 when all of raw is in it."""
    parser = argparse.ArgumentParser(prog="rebuild_ledger.py", description=__doc__)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    chosen = parser.parse_args(arguments)
    owner = f"{socket.gethostname()}:{os.getpid()} (rebuild)"
    with open_pipeline(chosen.pipeline, "rebuild") as context:
        upgrade_schema(context.address("postgres"))
        facts, pipeline = _read_facts(context), context.pipeline
        files = [*context.files.list_files(), *context.files.list_parquet_files()]
        require_no_batches(context.ledger, pipeline.name)
        print(f"{len(files):,} files, {sum(file.length for file in files):,} bytes", file=sys.stderr, flush=True)
        with open_session(f"onceover rebuild {pipeline.name}") as spark:
            try:
                registered = register_pipeline(context.ledger, pipeline, check_contract(spark, pipeline.contract))
                with as_driver(context.ledger, pipeline.name, owner) as epoch:
                    marker = context.markers.read_newest_readable().marker
                    cluster = read_cluster_id(context.address("kafka"), pipeline)
                    contents = scan(spark, context.address("hdfs"), files, registered.contract.window_minutes)
                    whole = _list_log_starts(facts) if pipeline.ingest.first_start == "earliest" else {}
                    origins = join_origins([marker.origins if marker else {}, whole])
                    topic_ids = {facts.generation: facts.topic_id} if facts else {}
                    with context.ledger.transaction():
                        counts = write_ledger(context.ledger, epoch, registered, files, contents, topic_ids, origins)
                        _store_offsets(context, facts, contents)
                    # Last: until then every writer refuses the root, so that none works with half of a ledger.
                    context.root.take_rebuilt(epoch, cluster, owner)
            except (PySparkException, Py4JError) as error:
                raise TransientError(f"Spark failed, nothing was written: {summarize(error)}") from error
    print(
        to_json(
            {
                "pipeline": pipeline.name,
                "files": len(files),
                "batches": counts.batches,
                "landings": counts.landings,
                "windows": counts.windows,
                "expired": counts.expired,
                "records": counts.records,
                "conflicts": counts.conflicts,
                "holes": [hole.format() for hole in counts.holes],
                "beyond_reading": sum(map(len, _clip_to_lost(counts.holes, facts))),
            }
        )
    )
    return 0


def _store_offsets(context: PipelineContext, facts: TopicFacts | None, contents: RawContents) -> None:
    """Continue reading behind what raw holds, where the offsets were lost with the ledger."""
    if facts is None or context.pipeline.ingest.offset_store != "postgres":
        return
    ends = {at.kafka_partition: end for at, end in find_ends(contents).items() if at.generation == facts.generation}
    if ends:
        LedgerOffsetStore(context.ledger, context.name).save(ends, facts.topic_id)


def _clip_to_lost(holes: Iterable[OffsetRange], facts: TopicFacts | None) -> Iterator[OffsetRange]:
    """Yield the parts of the holes that the log does not hold."""
    for hole in holes:
        number = hole.source.kafka_partition
        if facts is None or hole.source.generation != facts.generation or number not in facts.end:
            yield hole
            continue
        start = min(max(hole.start, facts.earliest[number]), hole.end)
        yield OffsetRange(hole.source, hole.start, start)
        yield OffsetRange(hole.source, max(start, min(hole.end, facts.end[number])), hole.end)


def _list_log_starts(facts: TopicFacts | None) -> dict[KafkaPartition, int]:
    """Return the earliest offset in the log of each Kafka partition that exists."""
    return {KafkaPartition(facts.generation, p): start for p, start in facts.earliest.items()} if facts else {}


def _read_facts(context: PipelineContext) -> TopicFacts | None:
    """Return the topic's facts; None if the topic does not exist: raw outlives it."""
    pipeline, kafka = context.pipeline, context.address("kafka")
    try:
        with closing(Topic(kafka, pipeline.contract.topic, pipeline.ingest.isolation, pipeline.kafka)) as topic:
            return topic.facts()
    except TerminalError as error:
        logging.getLogger("onceover").warning("cannot read the topic's log, rebuilding from raw alone: %s", error)
        return None


if __name__ == "__main__":
    run("rebuild", main)
