"""spark-submit entry: rebuild the windows of one repair request from raw, overwrite and certify them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from onceover.config.endpoints import address
from onceover.config.pipelines import find
from onceover.entrypoint import run
from onceover.fault_points import Holding, RepairStep
from onceover.ledger import refills, repair_requests
from onceover.ledger.catalog import require_same_contract
from onceover.ledger.database import connect, require_current
from onceover.model.claim import Claimed
from onceover.raw.window_files import Layout, WindowFiles
from onceover.repair.job import KeepClaims, RepairRun
from onceover.repair.refill import refill
from onceover.spark.session import running


def main(arguments: Sequence[str]) -> int:
    """Exit 0 when every window of the request was dealt with, failed ones too: the ledger says which and why."""
    parser = argparse.ArgumentParser(prog="repair.py", description=__doc__)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    parser.add_argument("--request", required=True, type=int, help="id of a repair request in the ledger")
    chosen = parser.parse_args(arguments)
    pipeline, holding = find(chosen.pipeline), Holding.from_environment()
    webhdfs, hdfs, postgres = address("webhdfs"), address("hdfs"), address("postgres")
    with connect(postgres, f"onceover repair {pipeline.name}") as connection:
        require_current(connection)
        known = require_same_contract(connection, pipeline)
        wanted = repair_requests.read_request(connection, pipeline.name, chosen.request)
        if not wanted.window_starts and not refills.wanted(connection, pipeline.name, wanted.request_id):
            print(f"request {wanted.request_id}: nothing left to repair")
            return 0
        files = WindowFiles(webhdfs, Layout(pipeline.storage.raw_root, pipeline.name))
        files.check()
        claimed: list[Claimed] = []
        with running(f"onceover repair {pipeline.name}") as spark:
            try:
                refill(spark, connection, pipeline, known, wanted.request_id)
                wanted = repair_requests.read_request(connection, pipeline.name, wanted.request_id)
                claimed, accounted = repair_requests.claim(connection, wanted)
                with KeepClaims(postgres, pipeline.name, claimed):
                    holding.reached(RepairStep.CLAIMED)
                    tries = pipeline.repair.max_tries
                    repairing = RepairRun(spark, connection, known, wanted, files, hdfs, tries, holding)
                    outcome = repairing.run(claimed, accounted)
            finally:
                repair_requests.release(connection, pipeline.name, claimed)
    print(
        f"request {wanted.request_id}: {len(wanted.window_starts)} windows, {outcome.published} repaired, "
        f"{outcome.changed} changed meanwhile, {outcome.failed} failed, {outcome.blocked} of them blocked"
    )
    return 0


if __name__ == "__main__":
    run("repair", main)
