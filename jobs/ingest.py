"""spark-submit entry: land a pipeline's records in their window files and keep its near-real-time aggregates."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from onceover.context import open_pipeline
from onceover.entrypoint import make_parser, run
from onceover.errors import BusyError, HungSparkError
from onceover.fault_points import FaultPoint
from onceover.ingest.job import build_driver, open_source
from onceover.ingest.quarantine_alarm import QuarantineAlarm
from onceover.ingest.report import Progress, make_reporter
from onceover.ledger import drivers
from onceover.ledger.catalog import read_registered, register_pipeline
from onceover.ledger.database import Connection, upgrade_schema
from onceover.ledger.drivers import Heartbeat, name_process
from onceover.model.record import Record
from onceover.repair.eager import EagerRepair
from onceover.spark.contract_check import check_contract
from onceover.spark.session import UNDER_SUBMIT, open_session
from onceover.spark.sql_failure import explain_sql_failure

log = logging.getLogger("onceover")


def main(arguments: Sequence[str]) -> None:
    """Run until SIGTERM or SIGINT, then finish and commit the batch under way. Exits 0. Starts again, in the same
    process, after a Spark that hung; under spark-submit the process is Spark's own, and ends."""
    chosen = make_parser("ingest", __doc__).parse_args(arguments)
    stop = threading.Event()
    try:
        _ingest(chosen.pipeline, stop)
    except HungSparkError as error:
        if stop.is_set() or UNDER_SUBMIT in os.environ:
            raise
        log.error("%s; ingest starts again", error)
        with suppress(OSError):  # what a full disk does not take is lost here, what comes later is not
            sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _ingest(name: str, stop: threading.Event) -> None:
    fault_point = FaultPoint.from_environment()
    with open_pipeline(name, "ingest") as context:
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
                    return
                registered.table.sweep(ledger, "batch:")
                loop = build_driver(spark, context, epoch, registered, topic, offsets, fault_point)

                def explain(reason: str, record: Record) -> str | None:
                    poison = read_registered(ledger, pipeline.name).poison
                    return explain_sql_failure(spark, pipeline.contract, reason, record, poison, context.schemas)

                alarm = QuarantineAlarm(pipeline.name, context.layout, context.files, explain)
                report, eager = make_reporter(pipeline.name, alarm.hear), EagerRepair(spark, context, fault_point)

                def hear(progress: Progress) -> None:
                    report(progress)
                    if pipeline.repair.eager:
                        eager.look()

                with Heartbeat(postgres, epoch) as heart:
                    loop.run(stop, heart.lost, hear)
                drivers.end_epoch(ledger, epoch)


def _acquire(ledger: Connection, pipeline: str, stop: threading.Event) -> drivers.Epoch | None:
    """Return the driver's epoch, waiting for the lease of a dead driver to expire; None if `stop` is set."""
    owner = name_process()
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
