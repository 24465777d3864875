"""The groups of a repair request: one group of windows after the other is claimed and rebuilt."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.detection.cuts import compare_log
from onceover.fault_points import FaultPoint, RepairStep
from onceover.ledger import repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.landings import count_landed_lines
from onceover.repair.claims import ClaimRenewer
from onceover.repair.groups import RECORDS_A_CORE, group_windows
from onceover.repair.job import RepairOutcome, RepairRun
from onceover.repair.progress import WindowProgress

log = logging.getLogger(__name__)


def run_rounds(
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
    is_compared = compare_log(context)
    lines = count_landed_lines(ledger, registered.name, request.window_starts)
    progress = WindowProgress(len(request.window_starts), sum(lines.values()))
    repair = RepairRun(spark, context, registered, request, fault_point, progress)
    most = RECORDS_A_CORE * spark.sparkContext.defaultParallelism

    def count(start: datetime) -> int:
        return lines.get(start, 0)

    for starts in group_windows(request.window_starts, count, most):
        group = replace(request, window_starts=tuple(starts))
        claimed, accounted = repair_requests.claim(ledger, group, is_compared=is_compared)
        try:
            with ClaimRenewer(context.address("postgres"), registered.name, claimed):
                fault_point.stop_after(RepairStep.CLAIMED)
                total += repair.run(claimed, accounted)
        finally:
            if not ledger.broken:
                repair_requests.drop_claims(ledger, registered.name, claimed)
        progress.finish(len(starts), sum(map(count, starts)))
    return total
