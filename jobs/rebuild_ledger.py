"""spark-submit entry: rebuild a pipeline's batches, landings, windows and frontiers from its raw alone."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import closing

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from onceover.context import PipelineContext, open_pipeline
from onceover.entrypoint import run
from onceover.errors import TerminalError, TransientError
from onceover.kafka import Topic, TopicFacts
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.drivers import as_driver
from onceover.ledger.migrate import upgrade_schema
from onceover.model.json_text import to_json
from onceover.model.offsets import KafkaPartition
from onceover.model.window import format_moment
from onceover.raw.window_files import WindowFiles
from onceover.recovery.rebuild_ledger import require_no_batches, write_ledger
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
        files = context.files.list_files()
        _refuse_compacted(pipeline.name, context.files)
        require_no_batches(context.ledger, pipeline.name)
        print(f"{len(files):,} files, {sum(file.length for file in files):,} bytes", file=sys.stderr, flush=True)
        with open_session(f"onceover rebuild {pipeline.name}") as spark:
            try:
                registered = register_pipeline(context.ledger, pipeline, check_contract(spark, pipeline.contract))
                with as_driver(context.ledger, pipeline.name, owner) as epoch:
                    logs = _list_log_starts(facts)
                    runs, released = scan(
                        spark, context.address("hdfs"), files, registered.contract.window_minutes, logs
                    )
                    whole = logs if pipeline.ingest.first_start == "earliest" else {}
                    topic_ids = {facts.generation: facts.topic_id} if facts else {}
                    counts = write_ledger(context.ledger, epoch, registered, files, runs, released, topic_ids, whole)
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
                "records": counts.records,
                "holes": counts.holes,
                "beyond_reading": counts.unreadable,
            }
        )
    )
    return 0


def _refuse_compacted(name: str, raw: WindowFiles) -> None:
    """Raise TerminalError for compacted windows: rebuilt from text alone, they would be too small and look right."""
    if windows := raw.list_compacted_windows():
        raise TerminalError(
            f"{len(windows)} windows of {name} were compacted, the first {format_moment(windows[0])}, and a ledger is "
            "rebuilt from text alone: restore a backup of the ledger; or, if the text of these windows is still "
            "whole, move their .parquet files out of the pipeline's folder"
        )


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
