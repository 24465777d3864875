"""The groups and rounds of a repair request: one group of windows after the other is claimed and rebuilt, and again
where orphans were adopted."""

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
from onceover.repair.quarantined import adopt_quarantined

log = logging.getLogger(__name__)
_MOST_ROUNDS = 4  # an adoption leaves nothing to adopt, unless Kafka drops more of its log in between


def run_rounds(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    request: repair_requests.RepairRequest,
    fault_point: FaultPoint,
    *,
    reads_quarantine: bool = True,
) -> RepairOutcome:
    """Claim and repair the request's windows, group by group, each until no orphan is left, and drop the claims. The
    counts are of all rounds. What a killed run has left is what the next run of the request begins with. A repair that
    `reads_quarantine` adopts what only raw holds of that, whichever windows were requested.

    The log is compared first, as detection does, for the request may be old. An adoption asks Kafka itself.
    """
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
        for _ in range(_MOST_ROUNDS):
            claimed, accounted = repair_requests.claim(ledger, group, is_compared=is_compared)
            try:
                with ClaimRenewer(context.address("postgres"), registered.name, claimed):
                    fault_point.stop_after(RepairStep.CLAIMED)
                    outcome = repair.run(claimed, accounted)
            finally:
                if not ledger.broken:
                    repair_requests.drop_claims(ledger, registered.name, claimed)
            total += outcome
            if not outcome.adopted:
                break
        progress.finish(len(starts), sum(map(count, starts)))
    if not reads_quarantine:
        return total
    if quarantined := adopt_quarantined(spark, context, registered, request.who, request.why):
        log.warning("%d quarantined records that only raw holds are adopted", quarantined)
    return total
