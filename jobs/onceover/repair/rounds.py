"""The rounds of a repair request: windows whose orphans were adopted are claimed and rebuilt again."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.detection.cuts import compare_log
from onceover.fault_points import FaultPoint, RepairStep
from onceover.ledger import repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.repair.claims import ClaimRenewer
from onceover.repair.job import RepairOutcome, RepairRun
from onceover.repair.quarantined import adopt_quarantined

log = logging.getLogger(__name__)
_MOST_ROUNDS = 4  # an adoption leaves nothing to adopt, unless Kafka drops more of its log in between


def run_rounds(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    request: repair_requests.RepairRequest,
    fault_point: FaultPoint,
) -> RepairOutcome:
    """Claim and repair the request's windows until no orphan is left; drop the claims. The counts are of all rounds.

    The log is compared first, as detection does, for the request may be old. An adoption asks Kafka itself.
    """
    ledger, total = context.ledger, RepairOutcome()
    is_compared = compare_log(context)
    for _ in range(_MOST_ROUNDS):
        claimed, accounted = repair_requests.claim(ledger, request, is_compared=is_compared)
        try:
            with ClaimRenewer(context.address("postgres"), registered.name, claimed):
                fault_point.stop_after(RepairStep.CLAIMED)
                outcome = RepairRun(spark, context, registered, request, fault_point).run(claimed, accounted)
        finally:
            if not ledger.broken:
                repair_requests.drop_claims(ledger, registered.name, claimed)
        total += outcome
        if not outcome.adopted:
            break
    quarantined = adopt_quarantined(spark, context, registered, request.who, request.why)
    if quarantined:
        log.warning("%d quarantined records that only raw holds are adopted", quarantined)
    return total
