"""The refills of a repair request, which run before its windows are claimed."""

from __future__ import annotations

import logging
import os
import socket
import time

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.errors import BusyError
from onceover.fault_points import FaultPoint
from onceover.ingest.job import build_driver, open_source
from onceover.ledger import refills, rereads
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import as_driver
from onceover.ledger.request_list import add_refilled

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 120.0


def is_waiting(connection: Connection, pipeline: str, request_id: int) -> bool:
    """Return whether offsets of the request are still to be read again."""
    return bool(
        refills.list_wanted(connection, pipeline, request_id) or rereads.list_wanted(connection, pipeline, request_id)
    )


def refill(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    request_id: int,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Have the request's missing offsets read again and landed, and add the closed windows of their records to it; have
    ranges that one window file has lost appended to that file.

    Waits `patience` seconds for a live driver to do it in its next turns; without one, this process is the driver
    meanwhile. Offsets that are still missing then stay in the queue, and their hole stays a finding.
    """
    connection, deadline = context.ledger, time.monotonic() + patience
    owner = f"{socket.gethostname()}:{os.getpid()} (refill)"
    while is_waiting(connection, registered.name, request_id):
        try:
            with as_driver(connection, registered.name, owner) as epoch, open_source(context) as (topic, offsets):
                loop = build_driver(spark, context, epoch, registered, topic, offsets, FaultPoint())
                while is_waiting(connection, registered.name, request_id):
                    progress = loop.turn(refills_only=True)
                    log.info("read %d records again", progress.records)
                    if progress.batch_id is None:  # the record that fails each batch is searched for
                        time.sleep(0.5)
        except BusyError:
            if time.monotonic() > deadline:
                log.warning("ingest is running and has not read the missing offsets again yet; the next repair retries")
                break
            time.sleep(0.5)
    add_refilled(
        connection, registered.name, request_id, refills.list_refilled_windows(connection, registered.name, request_id)
    )
