"""`onceover retention`: the expiry of raw files that are older than the pipeline's retention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, PipelineName, get_user, require_reason
from onceover.cli.exit_codes import FAILED, TRY_LATER, format_epilog
from onceover.cli.output import Occasionally, draw_table, print_json, say
from onceover.context import PipelineContext, open_pipeline
from onceover.ledger.lost_windows import LostWindow
from onceover.model.wording import pluralize
from onceover.repair.lost_windows import LostWindows, give_up, list_lost
from onceover.retention.missing import MissingText, declare_expired, list_missing
from onceover.retention.service import ExpiryDue, ExpiryResult, expire, plan_expiry

_MOST_SHOWN = 40
_BY_THE_POLICY = "by the policy"

DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Only list what would expire; write nothing.")]
AdoptMissing = Annotated[
    bool,
    typer.Option(
        "--adopt-missing", metavar="", help="Declare windows and days expired whose raw is lost; needs --reason."
    ),
]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why you do this; kept in the ledger with your name.")
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover retention flights --dry-run",
            "onceover retention flights",
            'onceover retention flights --reason "space for the new cluster" --json',
            'onceover retention flights --adopt-missing --reason "the ledger was restored from Tuesday\'s backup"',
            codes={
                FAILED: "with --adopt-missing: a window that lacks raw cannot be declared expired; it is listed",
                TRY_LATER: "the running ingest has not moved all files yet; or, with --adopt-missing, Kafka's log was "
                "cut, or a batch is landing; or a service or DataNode does not answer",
            },
        )
    )(retention)


def retention(
    pipeline: PipelineName,
    dry_run: DryRun = False,
    adopt_missing: AdoptMissing = False,
    reason: Reason = _BY_THE_POLICY,
    json: AsJson = False,
) -> None:
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
            _adopt_missing(context, dry_run, reason, json)
            return
        why = require_reason(reason, "retention")
        due = plan_expiry(context)
        result = ExpiryResult(0, 0) if dry_run else expire(context, due, get_user(), why, Occasionally())
    if json:
        print_json(
            {
                **due.as_dict(), "dry_run": dry_run, "expired": result.expired, "left": result.left,
                "files": [{"window": x.window_start, "quarantine_day": x.quarantine_day, "bytes": x.bytes,
                           "records": x.records, "landed_at": x.landed_at, "compacted": x.compacted}
                          for x in due.files],
            }
        )  # fmt: skip
    else:
        _show(due, dry_run, result)
    if result.left:
        raise typer.Exit(TRY_LATER)


def _adopt_missing(context: PipelineContext, dry_run: bool, reason: str, json: bool) -> None:
    why = ""
    if not dry_run:
        given = None if reason == _BY_THE_POLICY else reason
        why = require_reason(given, "declaring windows expired", ", or --dry-run")
    listed = list_missing(context)
    lost = list_lost(context, {text.window_start for text in listed.declarable})
    given_up = 0 if dry_run else give_up(context, lost.declarable, get_user(), why)
    declared, days = (0, 0) if dry_run else declare_expired(context, listed, get_user(), why)
    others = merge_others(listed, lost)
    if json:
        print_json(
            {
                **listed.as_dict(), "dry_run": dry_run, "expired": declared + given_up, "expired_days": days,
                "missing": list_all(listed, lost, others), "changing": lost.changing,
            }
        )  # fmt: skip
    else:
        if dry_run:
            declared, given_up, days = len(listed.declarable), len(lost.declarable), len(listed.days)
        _show_missing(listed, lost, others)
        of_days = f" and {pluralize(days, 'day')} of quarantine" if days else ""
        say(f"{pluralize(declared + given_up, 'window')}{of_days} {'would be ' if dry_run else ''}declared expired")
        if given_up:
            say(f"of {pluralize(given_up, 'window')} of these, the rows stay as they are and are never proved again")
    if others:
        raise typer.Exit(FAILED)
    if lost.changing:
        raise typer.Exit(TRY_LATER)


def merge_others(listed: MissingText, lost: LostWindows) -> list[tuple[LostWindow, str]]:
    """Return the windows that cannot be declared, in order, each with every reason."""
    given_up = {each.window_start for each in lost.declarable}
    others = {each.window_start: (each, why) for each, why in lost.others}
    for text, why in listed.others:
        start = text.window_start
        if start in others:
            others[start] = (others[start][0], f"{why}; {others[start][1]}")
        elif start not in given_up:
            gone = LostWindow(start, text.version, text.digest.records, text.bytes, "its file is gone")
            others[start] = (gone, why)
    return [others[start] for start in sorted(others)]


def list_all(
    listed: MissingText, lost: LostWindows, others: Sequence[tuple[LostWindow, str]]
) -> list[dict[str, object]]:
    """Return all windows whose raw lacks records, in order, as values; `why_not` is None if one can be declared."""
    kept = "its file is gone, its rows are as certified"
    rows: list[tuple[datetime, int, int, str, str | None]] = [
        (text.window_start, text.digest.records, text.bytes, kept, None) for text in listed.declarable
    ]
    pairs = [*((each, None) for each in lost.declarable), *others]
    rows += [(each.window_start, each.records, each.bytes, each.what, why) for each, why in pairs]
    names = ("window", "records", "bytes", "what", "why_not")
    return [dict(zip(names, row, strict=True)) for row in sorted(rows, key=lambda row: row[0])]


def _show_missing(listed: MissingText, lost: LostWindows, others: Sequence[tuple[LostWindow, str]]) -> None:
    cells: list[tuple[object, ...]] = [tuple(row.values()) for row in list_all(listed, lost, others)]
    cells += [
        (f"quarantine {file.quarantine_day}", file.records, file.bytes, "its file is gone or has lost records", "")
        for file in listed.days
    ]
    if cells:
        columns = ["raw of", ">records", ">bytes", "what is lost", "not declared, because"]
        say(draw_table(columns, cells[:_MOST_SHOWN]))
    if len(cells) > _MOST_SHOWN:
        say(f"and {len(cells) - _MOST_SHOWN:,} more; --json lists all")
    if lost.changing:
        say(f"a batch is landing in {pluralize(lost.changing, 'window')}: run the command again once it has landed")


def _show(due: ExpiryDue, dry_run: bool, result: ExpiryResult) -> None:
    files = due.files
    if files:
        rows = ((x.window_start or f"quarantine {x.quarantine_day}", x.records, x.bytes, x.landed_at) for x in files)
        say(draw_table(["raw of", ">records", ">bytes", "last landed"], list(rows)[:_MOST_SHOWN]))
    if len(files) > _MOST_SHOWN:
        say(f"and {len(files) - _MOST_SHOWN:,} more; --json lists all")
    windows, days = pluralize(due.windows, "certified window"), pluralize(due.quarantine_days, "day")
    what = f"{windows} and {days} of quarantine, {due.bytes:,} bytes,"
    say(f"{what} {'would expire' if dry_run else 'are older than the retention'}")
    if due.compacted:
        say(f"of these, {pluralize(due.compacted, 'window')} stay repairable from compacted files")
    if due.kept_back:
        reasons = "not certified, blocked, held by a repair, or waiting for records"
        say(f"{pluralize(due.kept_back, 'window')} of that age stay: {reasons}")
    if not dry_run:
        left = f", {result.left:,} not moved yet" if result.left else ""
        say(f"{pluralize(result.expired, 'file')} expired{left}")
