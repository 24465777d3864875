"""spark-submit entry: land a pipeline's records in their window files and keep its near-real-time aggregates."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import threading
from collections.abc import Sequence
from functools import partial

from onceover.context import open_pipeline
from onceover.entrypoint import run
from onceover.errors import BusyError
from onceover.fault_points import FaultPoint
from onceover.ingest.job import build_driver, open_source
from onceover.ingest.quarantine_alarm import QuarantineAlarm
from onceover.ingest.report import Progress, make_reporter
from onceover.ledger import drivers
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Heartbeat
from onceover.ledger.migrate import upgrade_schema
from onceover.repair.eager import EagerRepair
from onceover.spark.contract_check import check_contract
from onceover.spark.session import open_session
from onceover.spark.sql_failure import explain_sql_failure


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT, then finish and commit the batch under way. Exits 0."""
    parser = argparse.ArgumentParser(prog="ingest.py", description=__doc__)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    chosen = parser.parse_args(arguments)
    stop, fault_point = threading.Event(), FaultPoint.from_environment()
    with open_pipeline(chosen.pipeline, "ingest") as context:
        context.require_addresses("kafka")
        postgres = context.address("postgres")
        upgrade_schema(postgres)
        context.files.check()
        pipeline, ledger = context.pipeline, context.ledger
        with open_source(context) as (topic, offsets):
            topic.facts()  # report an unreachable broker or an unknown topic before Spark starts
            drivers.refuse_second_driver(ledger, pipeline.name)
            context.require_own_root(topic.read_cluster_id())
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
            with open_session(f"onceover ingest {pipeline.name}") as spark:
                registered = register_pipeline(ledger, pipeline, check_contract(spark, pipeline.contract))
                epoch = _acquire(ledger, pipeline.name, stop)
                if epoch is None:
                    return 0
                registered.table.sweep(ledger, "batch:")
                loop = build_driver(spark, context, epoch, registered, topic, offsets, fault_point)
                explain = partial(explain_sql_failure, spark, pipeline.contract)
                alarm = QuarantineAlarm(pipeline.name, context.layout, context.files, explain)
                report, eager = make_reporter(pipeline.name, alarm.hear), EagerRepair(spark, context, fault_point)

                def hear(progress: Progress) -> None:
                    report(progress)
                    if pipeline.repair.eager:
                        eager.look()

                with Heartbeat(postgres, epoch) as heart:
                    loop.run(stop, heart.lost, hear)
                drivers.end_epoch(ledger, epoch)
    return 0


def _acquire(ledger: Connection, pipeline: str, stop: threading.Event) -> drivers.Epoch | None:
    """Return the driver's epoch, waiting for the lease of a dead driver to expire; None if `stop` is set."""
    owner = f"{socket.gethostname()}:{os.getpid()}"
    waited = 0.0
    while not stop.is_set():
        try:
            return drivers.acquire(ledger, pipeline, owner)
        except BusyError:
            # A live driver renews its heartbeat more often than this.
            if waited > 2 * drivers.LEASE_SECONDS:
                raise
        stop.wait(drivers.HEARTBEAT_SECONDS)
        waited += drivers.HEARTBEAT_SECONDS
    return None


if __name__ == "__main__":
    run("ingest", main)
