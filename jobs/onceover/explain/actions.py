"""What a command or a task of Airflow did, in the sentences that a terminal and the task's log both show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from onceover.ledger.takings import Taking
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import Window, WindowRange, format_moment
from onceover.model.wording import format_records, pluralize
from onceover.repair.revisions import RestoreResult
from onceover.retention.expire import ExpiryDue, ExpiryResult
from onceover.retention.rollup import RollupResult


def describe_accepted_loss(
    source: KafkaPartition, lost: Sequence[OffsetRange], reopened: Sequence[datetime], windows: WindowRange
) -> str:
    offsets, ranges = pluralize(sum(map(len, lost)), "offset"), f", in {len(lost):,} ranges" if len(lost) > 1 else ""
    return (
        f"{offsets} of {source} accepted as lost{ranges}; {pluralize(len(reopened), 'window')} from "
        f"{format_moment(windows.start)} to {format_moment(windows.end)} will be judged again, with the loss in their "
        "certificates"
    )


def describe_restore(window: Window, done: RestoreResult) -> str:
    return (
        f"window {window.shown} holds the {pluralize(done.rows, 'row')} of revision {done.source} again, as revision "
        f"{done.revision}: {format_records(done.records)}. It is blocked until you run `onceover repair` over its range"
        + ("; these rows are of an older contract, for the window was restated since" if done.is_restated else "")
    )


def describe_taking(verb: str, windows: int, before: Sequence[Taking]) -> str:
    return f"{pluralize(windows, 'window')} {verb}" + "".join(f"; before: {each.describe()}" for each in before)


def describe_rollup(result: RollupResult, *, dry_run: bool) -> str:
    if not result.batches:
        return "no batch can be joined: Kafka holds their offsets, or their windows are not certified yet"
    joined = "would be joined" if dry_run else "joined"
    left = f"; windows of {result.left:,} more changed meanwhile" if result.left else ""
    return (
        f"{result.batches:,} batches {joined} to {result.rollups + result.alone:,}, {result.alone:,} of which "
        f"have none beside them{left}"
    )


def describe_expiry(due: ExpiryDue, result: ExpiryResult | None) -> list[str]:
    """List what is due and what stays, and the result; without one, as of a dry run, nothing has expired."""
    windows, days = pluralize(due.windows, "certified window"), pluralize(due.quarantine_days, "day")
    what = f"{windows} and {days} of quarantine, {due.bytes:,} bytes,"
    said = [f"{what} {'would expire' if result is None else 'are older than the retention'}"]
    if due.compacted:
        said.append(f"of these, {pluralize(due.compacted, 'window')} stay repairable from compacted files")
    if due.kept_back:
        reasons = "not certified, blocked, held by a repair, or waiting for records"
        said.append(f"{pluralize(due.kept_back, 'window')} of that age stay: {reasons}")
    if result is not None:
        left = f", {result.left:,} not moved yet: the running ingest moves them" if result.left else ""
        said.append(f"{pluralize(result.expired, 'file')} expired{left}")
    return said
