"""spark-submit entry: find what the raw of one window lacks, and request that Kafka is read again for it."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.context import open_pipeline
from onceover.entrypoint import make_parser, run
from onceover.model.dag_run import DagRun
from onceover.model.json_text import to_json
from onceover.repair.read_again import plan_reread, request_reread
from onceover.spark.session import open_session


def main(arguments: Sequence[str]) -> None:
    """Print the plan and the ID of the repair request as JSON; the request is null if there is nothing to request."""
    parser = make_parser("reread", __doc__)
    parser.add_argument("--window", required=True, help="start of the window")
    parser.add_argument("--who", required=True, help="kept with the request")
    parser.add_argument("--why", help="kept with the request; without a reason nothing is requested")
    parser.add_argument("--dag", help="of the run of Airflow that asks; kept with the request")
    parser.add_argument("--run", help="of Airflow, by its ID")
    chosen = parser.parse_args(arguments)
    dag_run = DagRun(chosen.dag, chosen.run) if chosen.dag and chosen.run else None
    request_id = None
    with open_pipeline(chosen.pipeline, "reread") as context:
        registered = context.require_same_contract()
        window = registered.windowing.parse_window(chosen.window)
        with open_session(f"onceover reread {registered.name}", is_brief=True) as spark:
            plan = plan_reread(spark, context, registered, window)
            if chosen.why:
                request_id, plan = request_reread(spark, context, registered, plan, chosen.who, chosen.why, dag_run)
    print(to_json({"pipeline": registered.name, **plan.as_dict(), "request_id": request_id}))


if __name__ == "__main__":
    run("reread", main)
