"""spark-submit entry: write a pipeline's batches, landings, windows and frontiers anew from its raw alone."""

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
from onceover.spark.failure import one_line
from onceover.spark.session import running


def main(arguments: Sequence[str]) -> int:
    """Exit 0 when all of raw stands in the ledger again. Killed before, nothing of it does."""
    parser = argparse.ArgumentParser(prog="rebuild_ledger.py", description=__doc__)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    chosen = parser.parse_args(arguments)
    owner = f"{socket.gethostname()}:{os.getpid()} (rebuild)"
    with open_pipeline(chosen.pipeline, "rebuild") as context:
        upgrade_schema(context.address("postgres"))
        facts, pipeline = _facts(context), context.pipeline
        files = context.files.list_files()
        _refuse_compacted(pipeline.name, context.files)
        require_no_batches(context.ledger, pipeline.name)
        print(f"{len(files):,} files, {sum(file.length for file in files):,} bytes", file=sys.stderr, flush=True)
        with running(f"onceover rebuild {pipeline.name}") as spark:
            try:
                known = register_pipeline(context.ledger, pipeline, check_contract(spark, pipeline.contract))
                with as_driver(context.ledger, pipeline.name, owner) as epoch:
                    logs = _logs(facts)
                    runs, released = scan(spark, context.address("hdfs"), files, known.contract.window_minutes, logs)
                    whole = logs if pipeline.ingest.first_start == "earliest" else {}
                    topic_ids = {facts.generation: facts.topic_id} if facts else {}
                    done = write_ledger(context.ledger, epoch, known, files, runs, released, topic_ids, whole)
            except (PySparkException, Py4JError) as error:
                raise TransientError(f"Spark failed, nothing was written: {one_line(error)}") from error
    print(
        to_json(
            {
                "pipeline": pipeline.name,
                "files": len(files),
                "batches": done.batches,
                "landings": done.landings,
                "windows": done.windows,
                "records": done.records,
                "holes": done.holes,
                "beyond_reading": done.unreadable,
            }
        )
    )
    return 0


def _refuse_compacted(name: str, raw: WindowFiles) -> None:
    """What stands in Parquet files is not read here: a window rebuilt without it would be too small, and look right."""
    if windows := raw.list_compacted_windows():
        raise TerminalError(
            f"{len(windows)} windows of {name} were compacted, the first {format_moment(windows[0])}, and a ledger is "
            "rebuilt from text alone: bring back a backup of the ledger; or, if the text of these windows is still "
            "whole, move their .parquet files out of the pipeline's folder"
        )


def _logs(facts: TopicFacts | None) -> dict[KafkaPartition, int]:
    """Where each living Kafka partition's log begins."""
    return {KafkaPartition(facts.generation, p): start for p, start in facts.earliest.items()} if facts else {}


def _facts(context: PipelineContext) -> TopicFacts | None:
    """The topic as it is; None if it is gone: raw outlives it."""
    pipeline, kafka = context.pipeline, context.address("kafka")
    try:
        with closing(Topic(kafka, pipeline.contract.topic, pipeline.ingest.isolation, pipeline.kafka)) as topic:
            return topic.facts()
    except TerminalError as error:
        logging.getLogger("onceover").warning("of the topic's log nothing is known: %s", error)
        return None


if __name__ == "__main__":
    run("rebuild", main)
