"""spark-submit entry: land a pipeline's records in their window files and keep its near-real-time aggregates."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import threading
from collections.abc import Sequence
from typing import Final

from onceover.config.endpoints import PartName
from onceover.context import open_pipeline
from onceover.entrypoint import run
from onceover.errors import BusyError, TerminalError
from onceover.fault_points import FaultPoint
from onceover.ingest.job import driver, open_source
from onceover.ingest.report import show
from onceover.kafka import Topic
from onceover.ledger import drivers
from onceover.ledger.catalog import keep_log_retention, register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Heartbeat
from onceover.ledger.migrate import upgrade_schema
from onceover.spark.contract_check import check_contract
from onceover.spark.session import running

_PARTS: Final[tuple[PartName, ...]] = ("kafka", "webhdfs", "hdfs", "postgres")


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT: then finish the batch under way, commit it and exit 0."""
    parser = argparse.ArgumentParser(prog="ingest.py", description=__doc__)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    chosen = parser.parse_args(arguments)
    stop, fault_point = threading.Event(), FaultPoint.from_environment()
    with open_pipeline(chosen.pipeline, "ingest") as context:
        *_, postgres = map(context.address, _PARTS)
        upgrade_schema(postgres)
        context.files.check()
        pipeline, ledger = context.pipeline, context.ledger
        with open_source(context) as (topic, offsets):
            topic.facts()  # an unreachable broker or an unknown topic is told before Spark starts
            drivers.refuse_second_driver(ledger, pipeline.name)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
            with running(f"onceover ingest {pipeline.name}") as spark:
                known = register_pipeline(ledger, pipeline, check_contract(spark, pipeline.contract))
                _keep_log_retention(ledger, pipeline.name, topic)
                epoch = _acquire(ledger, pipeline.name, stop)
                if epoch is None:
                    return 0
                known.table.sweep(ledger, "batch:")
                loop = driver(spark, context, epoch, known, topic, offsets, fault_point)
                with Heartbeat(postgres, epoch) as heart:
                    loop.run(stop, heart.lost, show(pipeline.name))
                drivers.end_epoch(ledger, epoch)
    return 0


def _keep_log_retention(ledger: Connection, pipeline: str, topic: Topic) -> None:
    try:
        keep_log_retention(ledger, pipeline, topic.policy().retention_ms)
    except TerminalError as error:  # nothing but how long a window stays repairable depends on it
        logging.getLogger("onceover").warning("how long the log lasts is not known: %s", error)


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
    run("ingest", main)
