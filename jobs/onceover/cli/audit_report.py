"""The run of an audit's Spark job, and its result as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import typer

from onceover.audit import service as audit_service
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import draw_table, print_progress, say
from onceover.cli.spark_entry import make_command, run_entry
from onceover.context import PipelineContext
from onceover.model.wording import pluralize

CODES: Final = {
    0: "all sides hold the same records",
    FAILED: "the sides differ",
    TRY_LATER: "a service does not answer; retry later",
}
_MOST_SHOWN = 50


def carry_out(context: PipelineContext, audit_id: int) -> Mapping[str, Any]:
    """Run `jobs/audit.py` and return the audit's result. Raises typer.Exit with the job's exit code if it failed."""
    print_progress("starting Spark")
    if exit_code := run_entry(make_command("audit.py", "--pipeline", context.name, "--audit", str(audit_id))):
        raise typer.Exit(exit_code)
    return audit_service.require_result(context, audit_id)


def show(pipeline: str, result: Mapping[str, Any]) -> None:
    """Print what Kafka, raw and aggregates hold of the windows that differ, with the IDs and what to do; of the first
    windows if none does."""
    rows = [row for row in result["rows"] if not row["equal"]] or result["rows"]
    say(
        draw_table(
            ["window", ">held", ">in both", ">Kafka", ">raw", ">lines", ">aggregates", "verdict"],
            (
                (
                    *(row[side] for side in ("window", "held", "held_by_both", "kafka", "raw", "raw_lines")),
                    row["aggregates"],
                    _format_verdict(row),
                )
                for row in rows[:_MOST_SHOWN]
            ),
        )
    )
    if len(rows) > _MOST_SHOWN:
        say(f"and {len(rows) - _MOST_SHOWN:,} more; --json lists all")
    for row in rows[:_MOST_SHOWN]:
        for kind, ids in row["ids"].items():
            more = f" and {ids['count'] - len(ids['first']):,} more" if ids["count"] > len(ids["first"]) else ""
            say(f"{row['window']} {kind}: {', '.join(ids['first'])}{more}")
        for difference in row["rows"]:
            say(f"{row['window']} row {difference}")
    without = result["offsets"] - result["records"]
    say(
        f"{pluralize(result['windows'], 'window')}, {result['differing']:,} differ; "
        f"{pluralize(result['offsets'], 'offset')} read, {pluralize(result['records'], 'record')} delivered"
        + (
            f", {without:,} without one (markers, aborted, compacted, quarantined, of other windows)"
            if without > 0
            else ""
        )
    )
    say(
        f"{pluralize(result['held_by_both'], 'record')} in Kafka and raw, {result['only_in_raw']:,} only in raw, "
        f"{result['only_in_kafka']:,} only in Kafka"
    )
    if result["differing"]:
        say(f"`onceover explain {pipeline} WINDOW` says what is known of a window, and which command leads out.")
        if result["unaccounted"]:
            say(
                f'`onceover repair {pipeline} --from TIME --to TIME --force --reason "..."` reads the windows again, '
                "counts records that landed nowhere, and names those that it cannot."
            )
    if result["not_read_yet"]:
        say(f"{pluralize(result['not_read_yet'], 'offset')} not read yet: ingest reads them, the audit did not")
    if result["expired"]:
        say(
            f"{pluralize(result['expired'], 'expired window')} not compared: raw is gone, and the log does not hold all"
        )


def _format_verdict(row: Mapping[str, Any]) -> str:
    if row["equal"]:
        return f"equal; aggregates not compared: {row['not_compared']}" if row["not_compared"] else "equal"
    wrong = [f"{ids['count']:,} {kind}" for kind, ids in row["ids"].items()]
    if row["aggregates_equal"] is False:
        wrong.append("the aggregates count another set of records")
    if row["rows_differing"]:
        wrong.append(f"{row['rows_differing']:,} rows differ")
    return f"differs, {'; '.join(wrong)}"
