"""An audit carried out by its Spark job, and its result as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import typer

from onceover.audit import service as audit_service
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import draw_table, print_progress, say
from onceover.cli.spark_entry import entry, run_entry
from onceover.context import PipelineContext
from onceover.explain.finding_text import pluralize

CODES: Final = {0: "all sides hold the same", FAILED: "they differ", TRY_LATER: "a part does not answer"}
_MOST_SHOWN = 50


def carry_out(context: PipelineContext, audit_id: int) -> Mapping[str, Any]:
    """What came out of the audit, once `jobs/audit.py` has ended. Ends as the job did where it failed."""
    print_progress("starting Spark")
    if ended := run_entry(entry("audit.py", "--pipeline", context.name, "--audit", str(audit_id))):
        raise typer.Exit(ended)
    return audit_service.require_result(context, audit_id)


def show(found: Mapping[str, Any]) -> None:
    """The three sides of the windows that differ, or of the first ones, with the IDs that differ."""
    rows = [row for row in found["rows"] if not row["equal"]] or found["rows"]
    say(
        draw_table(
            ["window", ">Kafka", ">raw", ">lines", ">aggregates", "verdict"],
            (
                (row["window"], row["kafka"], row["raw"], row["raw_lines"], row["aggregates"], _verdict(row))
                for row in rows[:_MOST_SHOWN]
            ),
        )
    )
    if len(rows) > _MOST_SHOWN:
        say(f"and {len(rows) - _MOST_SHOWN:,} more; all of them with --json")
    for row in rows[:_MOST_SHOWN]:
        for kind, ids in row["ids"].items():
            more = f" and {ids['count'] - len(ids['first']):,} more" if ids["count"] > len(ids["first"]) else ""
            say(f"{row['window']} {kind}: {', '.join(ids['first'])}{more}")
        for difference in row["rows"]:
            say(f"{row['window']} row {difference}")
    silent = found["offsets"] - found["records"]
    say(
        f"{pluralize(found['windows'], 'window')}, {found['differing']:,} differ; "
        f"{pluralize(found['offsets'], 'offset')} read, {pluralize(found['records'], 'record')} delivered"
        + (f", {silent:,} hold none (markers, aborted, compacted, or of other windows)" if silent else "")
    )


def _verdict(row: Mapping[str, Any]) -> str:
    if row["equal"]:
        return f"equal; aggregates not compared: {row['not_compared']}" if row["not_compared"] else "equal"
    wrong = [f"{ids['count']:,} {kind}" for kind, ids in row["ids"].items()]
    if row["aggregates_equal"] is False:
        wrong.append("the aggregates count another set")
    if row["rows_differing"]:
        wrong.append(f"{row['rows_differing']:,} rows differ")
    return "; ".join(wrong)
