"""spark-submit entry: rebuild the windows of one repair request from raw, overwrite and certify them."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.context import open_pipeline
from onceover.entrypoint import make_parser, run
from onceover.fault_points import FaultPoint
from onceover.ingest.restatements import share_restatements
from onceover.ledger import repair_requests
from onceover.ledger.read_again import list_wanted
from onceover.repair.groups import repair_groups
from onceover.repair.read_again import run_read_again
from onceover.spark.session import open_session


def main(arguments: Sequence[str]) -> None:
    """Repair the request's windows; failures and their reasons are in the ledger. Exits 0 even where windows failed."""
    parser = make_parser("repair", __doc__)
    parser.add_argument("--request", required=True, type=int, help="id of a repair request in the ledger")
    chosen = parser.parse_args(arguments)
    fault_point = FaultPoint.from_environment()
    with open_pipeline(chosen.pipeline, "repair") as context:
        share_restatements(context)
        registered, ledger = context.require_same_contract(), context.ledger
        request = repair_requests.read_request(ledger, registered.name, chosen.request)
        if not (request.window_starts or list_wanted(ledger, registered.name, request.request_id)):
            print(f"request {request.request_id}: nothing left to repair")
            return
        context.files.check()
        with open_session(f"onceover repair {registered.name}", is_brief=True) as spark:
            run_read_again(spark, context, registered, request.request_id)
            request = repair_requests.read_request(ledger, registered.name, request.request_id)
            outcome = repair_groups(spark, context, registered, request, fault_point)
    print(
        f"request {request.request_id}: {len(request.window_starts)} windows, {outcome.published} repaired, "
        f"{outcome.changed} changed meanwhile, {outcome.failed} failed, {outcome.blocked} of them blocked"
    )


if __name__ == "__main__":
    run("repair", main)
