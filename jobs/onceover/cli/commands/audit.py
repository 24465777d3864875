"""`onceover audit`: the comparison of Kafka's log with raw and the aggregates."""

from __future__ import annotations

from onceover.audit import service as audit_service
from onceover.cli.arguments import FromIfAny, PipelineName, ToIfAny, get_user
from onceover.cli.audit_report import CODES, carry_out, describe
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED
from onceover.cli.output import Answer
from onceover.cli.ranges import resolve_range_if_any
from onceover.context import open_pipeline
from onceover.errors import UsageError
from onceover.explain.local_times import add_local_in


@command(
    "onceover audit flights",
    "onceover audit flights --from 2013-01-05T00:00Z --to 2013-01-06T00:00Z --json",
    codes=CODES,
)
def audit(pipeline: PipelineName, start: FromIfAny = None, end: ToIfAny = None) -> Answer:
    """Read Kafka's log and raw again and compare all records that they hold with the aggregates, window by window.

    A record counts if the log or raw holds it, whether or not the ledger knows it. Records that ingest is still to read
    are no difference. Without a range, audit all windows, and quarantine. With a range, the log is read whole too.
    Changes nothing but the ledger's table `onceover.action`, which keeps the result.
    """
    with open_pipeline(pipeline, "audit") as context:
        chosen = resolve_range_if_any(context, start, end)
        audit_id = audit_service.request_audit(
            context, "log", start=chosen.start if chosen else None, end=chosen.end if chosen else None, who=get_user()
        )
        if audit_id is None:
            raise UsageError(f"pipeline {context.name} has not run yet; start it with `onceover ingest {context.name}`")
        result = add_local_in(context.windowing, carry_out(context, audit_id), "rows")
    value = {"pipeline": context.name, "audit_id": audit_id, **result}
    return Answer(value, describe(context.name, result), 0 if result["equal"] else FAILED)
