"""spark-submit entry: land quarantined records that the contract in force accepts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from datetime import date

from onceover.context import open_pipeline
from onceover.entrypoint import make_parser, run
from onceover.fault_points import FaultPoint
from onceover.ledger.drivers import as_driver, name_process
from onceover.model.json_text import to_json
from onceover.quarantine.release_job import ReleasePlan, ReleaseRun
from onceover.spark.session import open_session


def main(arguments: Sequence[str]) -> None:
    """Land every record that the contract accepts and print counts by window as JSON. Exits 0 when all have landed."""
    parser = make_parser("release", __doc__)
    parser.add_argument("--day", type=date.fromisoformat, help="the day of quarantine, YYYY-MM-DD; by default all days")
    parser.add_argument("--reason", help="only records whose reason contains this")
    parser.add_argument("--who", required=True, help="kept with the release")
    parser.add_argument("--why", required=True, help="kept with the release")
    parser.add_argument("--dry-run", action="store_true", help="print the plan only; ingest may keep running")
    chosen = parser.parse_args(arguments)
    owner = name_process("release")
    with open_pipeline(chosen.pipeline, "release") as context:
        driving = nullcontext() if chosen.dry_run else as_driver(context.ledger, context.name, owner)
        with driving as epoch:
            registered = context.require_same_contract()
            listed = context.files.list_quarantine_days()
            days = {day: length for day, length in listed.items() if chosen.day in (None, day)}
            found, done = ReleasePlan({}, (), {}), 0
            if days:
                with (
                    open_session(f"onceover release {registered.name}") as spark,
                    closing(ReleaseRun(spark, context, registered)) as release,
                ):
                    found = release.plan(days, chosen.reason)
                    if epoch is not None:
                        fault_point = FaultPoint.from_environment()
                        done = release.carry_out(epoch, found.ids, chosen.who, chosen.why, fault_point)
    print(
        to_json(
            {
                "pipeline": registered.name,
                "version": registered.contract_version,
                "records": sum(found.windows.values()),
                "windows": [{"window": start, "records": n} for start, n in found.windows.items()],
                "batches": done,
                "left": found.left,
            }
        )
    )


if __name__ == "__main__":
    run("release", main)
