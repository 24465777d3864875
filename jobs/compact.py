"""spark-submit entry: compress certified windows beside their text, each record once."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.compaction.found import list_due
from onceover.compaction.job import CompactRun, take_over_found
from onceover.context import open_pipeline
from onceover.entrypoint import make_parser, run
from onceover.fault_points import FaultPoint
from onceover.ledger import compactions
from onceover.ledger.actions import record_action
from onceover.model.json_text import to_json
from onceover.model.window import parse_moment
from onceover.spark.session import open_session


def main(arguments: Sequence[str]) -> None:
    """Compact each window that is due and print the results as JSON. Exits 0 even where windows failed."""
    parser = make_parser("compact", __doc__)
    parser.add_argument(
        "--older-than-ms",
        required=True,
        type=int,
        help="only windows without a new landing for so long, in milliseconds",
    )
    parser.add_argument("--from", dest="start", type=parse_moment, help="start of the first window")
    parser.add_argument("--to", dest="end", type=parse_moment, help="end of the last window; exclusive")
    parser.add_argument("--who", required=True, help="who asked for it, which the ledger keeps")
    parser.add_argument("--why", required=True, help="the reason, which the ledger keeps")
    chosen = parser.parse_args(arguments)
    fault_point = FaultPoint.from_environment()
    with open_pipeline(chosen.pipeline, "compact") as context:
        registered = context.require_same_contract()
        compactions.hold_compaction(context.ledger, registered.name)
        found, due = list_due(context, chosen.older_than_ms, chosen.start, chosen.end)
        context.files.check()
        detail = {"windows": len(found) + len(due)}
        record_action(context.ledger, registered.name, "compact raw", chosen.who, chosen.why, detail)
        with open_session(f"onceover compact {registered.name}") as spark:
            results = take_over_found(spark, context, found)
            results += CompactRun(spark, context, registered, fault_point).run(due)
    print(to_json(results))


if __name__ == "__main__":
    run("compact", main)
