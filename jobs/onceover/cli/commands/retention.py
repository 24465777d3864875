"""`onceover retention`: the expiry of raw files that are older than the pipeline's retention."""

from __future__ import annotations

from typing import Annotated

from onceover.cli.arguments import DryRun, PipelineName, ReasonOrDefault, flag, get_user, require_reason
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer, Occasionally, Table
from onceover.context import PipelineContext, open_pipeline
from onceover.detection.sweep import find_short_quarantine
from onceover.explain.actions import describe_expiry
from onceover.explain.local_times import add_local, format_window, name_source
from onceover.model.wording import pluralize
from onceover.repair.lost_windows import give_up, list_lost
from onceover.retention.expire import expire, plan_expiry

_BY_THE_POLICY = "by the policy"

AdoptMissing = Annotated[
    bool, flag("--adopt-missing", "Declare windows and days expired whose raw is lost; needs --reason.")
]


@command(
    "onceover retention flights --dry-run",
    "onceover retention flights",
    'onceover retention flights --reason "space for the new cluster" --json',
    'onceover retention flights --adopt-missing --reason "the ledger was restored from Tuesday\'s backup"',
    codes={
        FAILED: "with --adopt-missing: a window that lacks raw cannot be declared expired; it is listed",
        TRY_LATER: "the running ingest has not moved all files yet; or, with --adopt-missing, a batch is "
        "landing; or a service or DataNode does not answer",
    },
)
def retention(
    pipeline: PipelineName,
    dry_run: DryRun = False,
    adopt_missing: AdoptMissing = False,
    reason: ReasonOrDefault = _BY_THE_POLICY,
) -> Answer:
    """Expire raw files of certified windows, and quarantine files, that are older than the pipeline's retention.

    The retention is `storage.retention` in the TOML, counted from the last record that landed. A window that
    `onceover compact` has compressed stays repairable from its compacted file. Any other becomes expired: it
    keeps its certificate, detection skips it, and repair refuses it. Files are moved to ROOT/PIPELINE/expired, by
    ingest if it runs, and deleted a day later, by ingest or the next run of this command. The command may be killed,
    repeated, or run by two at once.

    After a restore of the ledger from a backup, --adopt-missing declares windows expired whose file is gone: certified
    ones whose rows are as certified. Where Kafka still holds the records, `onceover reread` brings the file back. It
    also declares days of quarantine expired whose file is gone or has lost records: no aggregate counts those. And it
    gives up closed windows whose raw has lost records that Kafka no longer holds: their rows stay, unproved. All are
    declared at once, for good. --dry-run lists them, and the others with the reason.
    """
    with open_pipeline(pipeline, "retention") as context:
        if adopt_missing:
            return _adopt_missing(context, dry_run, reason)
        why = require_reason(reason, "retention")
        due, windowing = plan_expiry(context), context.windowing
        done = None if dry_run else expire(context, due, get_user(), why, Occasionally())
    table = Table(
        due.files, ("raw of", lambda each: name_source(windowing, each)), ">records", ">bytes",
        ("last landed", "landed_at"),
    )  # fmt: skip
    result = {"expired": done.expired if done else 0, "left": done.left if done else 0}
    return Answer(
        {**due.as_dict(), "dry_run": dry_run, **result, "files": due.files},
        [table, *describe_expiry(due, done)],
        TRY_LATER if result["left"] else 0,
    )


def _adopt_missing(context: PipelineContext, dry_run: bool, reason: str) -> Answer:
    given = None if reason == _BY_THE_POLICY else reason
    why = "" if dry_run else require_reason(given, "declaring windows expired", ", or --dry-run")
    lost, days = list_lost(context), find_short_quarantine(context)
    missing = add_local(context.windowing, lost.rows)
    windows, of_quarantine = (0, 0) if dry_run else give_up(context, lost.declarable, days, get_user(), why)
    value = {"pipeline": context.name, "dry_run": dry_run, "expired": windows, "expired_days": of_quarantine,
             "missing": missing, "missing_quarantine": days, "changing": lost.changing}  # fmt: skip
    if dry_run:
        windows, of_quarantine = len(lost.declarable), len(days)
    of_days = f" and {pluralize(of_quarantine, 'day')} of quarantine" if of_quarantine else ""
    unproved = sum(not each.keeps_certificate for each in lost.declarable)
    return Answer(
        value,
        [
            Table(
                missing, ("raw of", format_window), ">records", ">bytes", ("what is lost", "what"),
                ("not declared, because", "why_not"),
            ),
            Table(
                days, ("quarantine that has lost records", "day"), (">bytes", "file_length"),
                (">bytes that landed", "expected_length"),
            ),
            f"a batch is landing in {pluralize(lost.changing, 'window')}: run the command again once it has landed"
            if lost.changing
            else None,
            f"{pluralize(windows, 'window')}{of_days} {'would be ' if dry_run else ''}declared expired",
            f"of {pluralize(unproved, 'window')} of these, the rows stay as they are and are never proved again"
            if unproved
            else None,
        ],
        FAILED if lost.others else TRY_LATER if lost.changing else 0,
    )  # fmt: skip
