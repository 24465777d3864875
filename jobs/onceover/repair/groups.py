"""The groups in which a repair claims, reads and publishes its windows: one that is killed loses its last group's work,
and holds no window of a later group."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.detection.cuts import compare_log
from onceover.errors import OnceoverError
from onceover.fault_points import FaultPoint, RepairStep
from onceover.ledger import claims, repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.claims import clear_dead_stages
from onceover.ledger.database import DatabaseError, connect
from onceover.ledger.landings import count_landed_lines
from onceover.model.claim import CLAIM_SECONDS, ClaimedWindow
from onceover.repair.job import RepairOutcome, RepairRun
from onceover.repair.progress import WindowProgress

log = logging.getLogger(__name__)
MAX_WINDOWS = 2_000
RECORDS_A_CORE = 2_000_000  # some seconds of reading
W = TypeVar("W")


def group_windows(windows: Iterable[W], count: Callable[[W], int], most_records: int) -> Iterator[list[W]]:
    """Yield the windows in their order, in groups of at most MAX_WINDOWS, and, unless of a single window,
    `most_records` of those that `count` says landed."""
    group: list[W] = []
    size = 0
    for window in windows:
        records = count(window)
        if group and (len(group) == MAX_WINDOWS or size + records > most_records):
            yield group
            group, size = [], 0
        group.append(window)
        size += records
    if group:
        yield group


def repair_groups(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    request: repair_requests.RepairRequest,
    fault_point: FaultPoint,
) -> RepairOutcome:
    """Claim and repair the request's windows, group by group, and drop the claims. What a killed run has left is what
    the next run of the request begins with. The log is compared first, as detection does, for the request may be
    old."""
    ledger, total = context.ledger, RepairOutcome()
    clear_dead_stages(ledger, registered)
    is_compared = compare_log(context)
    lines = count_landed_lines(ledger, registered.name, request.window_starts)
    progress = WindowProgress(len(request.window_starts), sum(lines.values()))
    repair = RepairRun(spark, context, registered, request, fault_point, progress)
    most = RECORDS_A_CORE * spark.sparkContext.defaultParallelism

    def count(start: datetime) -> int:
        return lines.get(start, 0)

    for starts in group_windows(request.window_starts, count, most):
        group = replace(request, window_starts=tuple(starts))
        claimed, accounted = claims.claim(ledger, group, is_compared=is_compared)
        try:
            with renew_claims(context.address("postgres"), registered.name, claimed):
                fault_point.stop_after(RepairStep.CLAIMED)
                total += repair.run(claimed, accounted)
        finally:
            if not ledger.broken:
                claims.drop_claims(ledger, registered.name, claimed)
        progress.finish(len(starts), sum(map(count, starts)))
    return total


@contextmanager
def renew_claims(address: str, pipeline: str, claimed: Sequence[ClaimedWindow]) -> Iterator[None]:
    """Renew the request's claims, in a thread and on a connection of its own, until the end of the block."""
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(CLAIM_SECONDS / 4):
            try:
                with connect(address, "onceover claims") as connection:
                    claims.renew(connection, pipeline, claimed)
            except (OnceoverError, DatabaseError) as error:
                log.warning("claims not renewed: %s", error)  # publishing checks the token, so this costs work only

    thread = threading.Thread(target=renew, name="claims", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=10)
