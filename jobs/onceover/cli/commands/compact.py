"""`onceover compact`: certified windows compressed by zstd, smaller than their text and with each record once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from onceover.cli.arguments import (
    DryRun,
    FromWithTo,
    PipelineName,
    ReasonOrDefault,
    ToIfAny,
    get_user,
    option,
    require_reason,
)
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer, Table
from onceover.cli.ranges import resolve_range_if_any
from onceover.cli.spark_entry import run_job
from onceover.compaction.found import list_due
from onceover.config.duration import DURATION_RULE, parse_duration
from onceover.context import PipelineContext, open_pipeline
from onceover.errors import UsageError
from onceover.explain.local_times import add_local, format_window
from onceover.ledger.compactions import CompactionDue
from onceover.model.window import WindowRange, format_moment
from onceover.model.wording import pluralize

OlderThan = Annotated[
    str, option("--older-than", "DURATION", "Only windows without a new record for that long, like 90d or 0s.")
]


@command(
    "onceover compact flights --dry-run",
    "onceover compact flights --older-than 90d",
    "onceover compact flights --from 2013-01-01T00:00Z --to 2013-02-01T00:00Z --json",
    codes={
        0: "every window is compacted, or there was none to compact",
        FAILED: "a window's raw differs from its certificate, or changed meanwhile; it is listed",
        TRY_LATER: "a service does not answer, or another process compacts this pipeline; retry later",
    },
)
def compact(
    pipeline: PipelineName,
    older_than: OlderThan = "30d",
    start: FromWithTo = None,
    end: ToIfAny = None,
    dry_run: DryRun = False,
    reason: ReasonOrDefault = "to save space",
) -> Answer:
    """Compress certified windows beside their text: a line of each record that counts. `zstdcat` reads the files.

    In a ledger that was restored from a backup, take over the files that compactions after the backup wrote, for
    windows whose text is gone since.

    A file is read back and kept only if its digest equals the certificate's. Text is not deleted: after
    `onceover retention` has expired it, the window is verified, audited and repaired from its compacted file. The
    command may be killed, repeated, or run by two at once.
    """
    with open_pipeline(pipeline, "compact") as context:
        window_range = resolve_range_if_any(context, start, end)
        older_than_ms = parse_duration(older_than)
        if older_than_ms is None:
            raise UsageError(f"--older-than: {older_than[:40]!r} is not a duration; {DURATION_RULE}")
        why = require_reason(reason, "a compaction")
        windowing, due = context.windowing, _list_due(context, older_than_ms, window_range)
    results = [] if dry_run or not due else _run_job(context.name, older_than_ms, window_range, why)
    rows = add_local(windowing, results or map(_to_dict, due))
    failed = [row for row in rows if row["why"]]
    done = [row for row in results if row["bytes"] is not None]
    totals = {name: sum(row[name] for row in done) for name in ("records", "text_bytes", "bytes")}
    value = {"pipeline": context.name, "dry_run": dry_run, "older_than_ms": older_than_ms, "due": len(due),
             "compacted": len(done), **totals, "failed": len(failed), "windows": rows}  # fmt: skip
    return Answer(
        value,
        [
            Table(
                failed or rows, ("window", format_window), ">records", (">bytes of text", "text_bytes"),
                (">compacted", "bytes"), ("failed", "why"),
            ),
            f"{pluralize(len(due), 'certified window')} would be compacted"
            if dry_run
            else f"{pluralize(len(done), 'window')} compacted, {pluralize(totals['records'], 'record')}: "
            f"{totals['text_bytes']:,} bytes of text, {totals['bytes']:,} compacted",
        ],
        FAILED if failed else 0,
    )  # fmt: skip


def _list_due(context: PipelineContext, older_than_ms: int, window_range: WindowRange | None) -> list[CompactionDue]:
    start, end = (window_range.start, window_range.end) if window_range else (None, None)
    context.require_same_contract()
    found, due = list_due(context, older_than_ms, start, end)
    return [*found, *due]


def _run_job(pipeline: str, older_than_ms: int, window_range: WindowRange | None, why: str) -> list[Mapping[str, Any]]:
    """Run `jobs/compact.py` and return each window's result."""
    within = (
        ("--from", format_moment(window_range.start), "--to", format_moment(window_range.end)) if window_range else ()
    )
    results: list[Mapping[str, Any]] = run_job(
        "compact.py", "--pipeline", pipeline, "--older-than-ms", str(older_than_ms), *within, f"--who={get_user()}",
        f"--why={why}",
    )  # fmt: skip
    return results


def _to_dict(due: CompactionDue) -> Mapping[str, Any]:
    return {"window": format_moment(due.window_start), "records": due.digest.records, "text_bytes": due.text_bytes,
            "bytes": None, "why": None, "found": False}  # fmt: skip
