"""spark-submit entry: rebuild the windows of one repair request from raw, overwrite and certify them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from onceover.context import open_pipeline
from onceover.entrypoint import run
from onceover.fault_points import FaultPoint, RepairStep
from onceover.ledger import refills, repair_requests
from onceover.model.claim import ClaimedWindow
from onceover.repair.job import KeepClaims, RepairRun
from onceover.repair.refill import refill
from onceover.spark.session import running


def main(arguments: Sequence[str]) -> int:
    """Exit 0 when every window of the request was dealt with, failed ones too: the ledger says which and why."""
    parser = argparse.ArgumentParser(prog="repair.py", description=__doc__)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    parser.add_argument("--request", required=True, type=int, help="id of a repair request in the ledger")
    chosen = parser.parse_args(arguments)
    fault_point = FaultPoint.from_environment()
    with open_pipeline(chosen.pipeline, "repair") as context:
        known, ledger = context.require_same_contract(), context.ledger
        wanted = repair_requests.read_request(ledger, known.name, chosen.request)
        if not wanted.window_starts and not refills.list_wanted(ledger, known.name, wanted.request_id):
            print(f"request {wanted.request_id}: nothing left to repair")
            return 0
        context.files.check()
        claimed: list[ClaimedWindow] = []
        with running(f"onceover repair {known.name}") as spark:
            try:
                refill(spark, context, known, wanted.request_id)
                wanted = repair_requests.read_request(ledger, known.name, wanted.request_id)
                claimed, accounted = repair_requests.claim(ledger, wanted)
                with KeepClaims(context.address("postgres"), known.name, claimed):
                    fault_point.stop_after(RepairStep.CLAIMED)
                    outcome = RepairRun(spark, context, known, wanted, fault_point).run(claimed, accounted)
            finally:
                repair_requests.drop_claims(ledger, known.name, claimed)
    print(
        f"request {wanted.request_id}: {len(wanted.window_starts)} windows, {outcome.published} repaired, "
        f"{outcome.changed} changed meanwhile, {outcome.failed} failed, {outcome.blocked} of them blocked"
    )
    return 0


if __name__ == "__main__":
    run("repair", main)
