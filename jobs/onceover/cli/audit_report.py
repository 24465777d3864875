"""The run of an audit's Spark job, and its result as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from onceover.audit import service as audit_service
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Part, Table
from onceover.cli.spark_entry import run_job
from onceover.context import PipelineContext
from onceover.explain.local_times import format_window
from onceover.model.wording import pluralize

CODES: Final = {
    0: "all sides hold the same records",
    FAILED: "the sides differ",
    TRY_LATER: "a service does not answer; retry later",
}
_MAX_SHOWN = 50


def carry_out(context: PipelineContext, audit_id: int) -> Mapping[str, Any]:
    """Run `jobs/audit.py` and return the audit's result. Raises typer.Exit with the job's exit code if it failed."""
    run_job("audit.py", "--pipeline", context.name, "--audit", str(audit_id))
    return audit_service.require_result(context, audit_id)


def describe(pipeline: str, result: Mapping[str, Any]) -> Iterator[Part]:
    """Yield what Kafka, raw and aggregates hold of the windows that differ, with the IDs and what to do; of the first
    windows if none does."""
    rows = [row for row in result["rows"] if not row["equal"]] or result["rows"]
    yield Table(
        rows, ("window", format_window), ">held", (">in both", "held_by_both"), (">Kafka", "kafka"), ">raw",
        (">lines", "raw_lines"), ">aggregates", ("verdict", _format_verdict), most=_MAX_SHOWN,
    )  # fmt: skip
    for row in rows[:_MAX_SHOWN]:
        for kind, ids in row["ids"].items():
            more = f" and {ids['count'] - len(ids['first']):,} more" if ids["count"] > len(ids["first"]) else ""
            yield f"{format_window(row)} {kind}: {', '.join(ids['first'])}{more}"
        yield from (f"{format_window(row)} row {difference}" for difference in row["rows"])
    without = result["offsets"] - result["records"]
    others = f", {without:,} without one (markers, aborted, compacted, quarantined, of other windows)"
    yield (
        f"{pluralize(result['windows'], 'window')}, {result['differing']:,} differ; "
        f"{pluralize(result['offsets'], 'offset')} read, {pluralize(result['records'], 'record')} delivered"
        f"{others if without > 0 else ''}"
    )
    yield (
        f"{pluralize(result['held_by_both'], 'record')} in Kafka and raw, {result['only_in_raw']:,} only in raw, "
        f"{result['only_in_kafka']:,} only in Kafka"
    )
    if result["differing"]:
        yield f"`onceover explain {pipeline} WINDOW` says what is known of a window, and which command leads out."
        if result["unaccounted"]:
            yield (
                f'`onceover repair {pipeline} --from TIME --to TIME --force --reason "..."` reads the windows again, '
                "counts records that landed nowhere, and names those that it cannot."
            )
    if result["not_read_yet"]:
        yield f"{pluralize(result['not_read_yet'], 'offset')} not read yet: ingest reads them, the audit did not"
    if result["expired"]:
        gone = pluralize(result["expired"], "expired window")
        yield f"{gone} not compared: raw is gone, and the log does not hold all"


def _format_verdict(row: Mapping[str, Any]) -> str:
    if row["equal"]:
        return f"equal; aggregates not compared: {row['not_compared']}" if row["not_compared"] else "equal"
    wrong = [f"{ids['count']:,} {kind}" for kind, ids in row["ids"].items()]
    if row["aggregates_equal"] is False:
        wrong.append("the aggregates count another set of records")
    if row["rows_differing"]:
        wrong.append(f"{row['rows_differing']:,} rows differ")
    return f"differs, {'; '.join(wrong)}"
