"""spark-submit entry: land a pipeline's records in their window files and keep its near-real-time aggregates."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime

from py4j.protocol import Py4JError

from onceover.endpoints import address
from onceover.errors import BusyError, OnceoverError
from onceover.ingest import Heart, Ingest
from onceover.ingest_report import show
from onceover.kafka import Topic, TopicFacts
from onceover.ledger import drivers
from onceover.ledger.catalog import register
from onceover.ledger.database import Connection, connect, migrate
from onceover.offset_store import OFFSET_STORES
from onceover.offsets import OffsetRange
from onceover.pipelines import find
from onceover.spark.contract_check import check
from onceover.spark.hdfs_leases import Leases
from onceover.spark.micro_batch import MicroBatch
from onceover.spark.session import build
from onceover.spark.source import KafkaSource
from onceover.steps import Holding
from onceover.window_files import Layout, WindowFiles


def main(arguments: list[str]) -> int:
    """Run until SIGTERM or SIGINT: then finish the batch under way, commit it and exit 0."""
    parser = argparse.ArgumentParser(prog="ingest.py", description=__doc__)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    pipeline = find(parser.parse_args(arguments).pipeline)
    stop, holding = threading.Event(), Holding.from_environment()
    kafka, webhdfs, hdfs, postgres = (address(part) for part in ("kafka", "webhdfs", "hdfs", "postgres"))
    layout = Layout(pipeline.storage.raw_root, pipeline.name)
    migrate(postgres)
    WindowFiles(webhdfs, layout).check()
    policy, properties = pipeline.ingest, pipeline.kafka
    with (
        closing(Topic(kafka, pipeline.contract.topic, policy.isolation, properties)) as topic,
        closing(OFFSET_STORES[policy.offset_store](kafka, topic.topic, policy.group, properties)) as store,
        connect(postgres, f"onceover ingest {pipeline.name}") as ledger,
    ):
        topic.facts()  # an unreachable broker or an unknown topic is told before Spark starts
        drivers.refuse_beside_a_living_one(ledger, pipeline.name)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        spark = build(f"onceover ingest {pipeline.name}")
        try:
            known = register(ledger, pipeline, check(spark, pipeline.contract))
            epoch = _acquire(ledger, pipeline.name, stop)
            if epoch is None:
                return 0
            known.table.sweep(ledger, "batch:")
            leases = Leases(spark, hdfs)

            def work(ranges: Sequence[OffsetRange], facts: TopicFacts) -> MicroBatch:
                source = KafkaSource(kafka, facts.topic, facts.topic_id, policy.isolation, properties)
                today = datetime.now(UTC).date()
                return MicroBatch(spark, known, source, ranges, webhdfs, layout, today, leases)

            driver = Ingest(ledger, epoch, known, policy, topic, store, work, holding)
            with Heart(postgres, epoch) as heart:
                driver.run(stop, heart.lost, show(pipeline.name))
            drivers.release(ledger, epoch)
        finally:
            with suppress(Py4JError, OSError):  # a JVM that died has nothing left to stop
                spark.stop()
    return 0


def _acquire(ledger: Connection, pipeline: str, stop: threading.Event) -> drivers.Epoch | None:
    """The driver's epoch, after waiting for a driver that just died to be known as dead; None if told to stop."""
    owner = f"{socket.gethostname()}:{os.getpid()}"
    waited = 0.0
    while not stop.is_set():
        try:
            return drivers.acquire(ledger, pipeline, owner)
        except BusyError:
            # One that lives keeps its heartbeat fresh for longer than this.
            if waited > 2 * drivers.LEASE_SECONDS:
                raise
        stop.wait(drivers.HEARTBEAT_SECONDS)
        waited += drivers.HEARTBEAT_SECONDS
    return None


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("onceover").setLevel(logging.INFO)
    try:
        sys.exit(main(sys.argv[1:]))
    except OnceoverError as error:
        print(f"ingest: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
