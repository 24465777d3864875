"""The refills of a repair request, carried out before its windows are claimed."""

from __future__ import annotations

import logging
import os
import socket
import time

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.errors import BusyError
from onceover.fault_points import FaultPoint
from onceover.ingest.job import driver, open_source
from onceover.ledger import refills, repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.drivers import as_driver

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 120.0


def refill(
    spark: SparkSession,
    context: PipelineContext,
    known: RegisteredPipeline,
    request_id: int,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Have what the request wants read again and landed, and add the closed windows it fell into to the request.

    A driver that lives does it in its next turns, and is waited for; without one, this process is the driver for as
    long as it takes. What is not done then stays wanted, and the hole stays a finding.
    """
    connection, deadline = context.ledger, time.monotonic() + patience
    owner = f"{socket.gethostname()}:{os.getpid()} (refill)"
    while refills.list_wanted(connection, known.name, request_id):
        try:
            with as_driver(connection, known.name, owner) as epoch, open_source(context) as (topic, offsets):
                loop = driver(spark, context, epoch, known, topic, offsets, FaultPoint())
                while refills.list_wanted(connection, known.name, request_id):
                    progress = loop.turn(refills_only=True)
                    log.info("read %d records again", progress.records)
        except BusyError:
            if time.monotonic() > deadline:
                log.warning("ingest runs and has not read again what is missing; the next repair looks after it")
                break
            time.sleep(0.5)
    repair_requests.add_refilled(
        connection, known.name, request_id, refills.list_refilled_windows(connection, known.name, request_id)
    )
