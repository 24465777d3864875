"""`onceover retention`: raw that is older than its pipeline keeps it goes, listed first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.codes import TRY_LATER, epilog
from onceover.cli.output import Occasionally, as_json, say, table
from onceover.cli.repair import given, who
from onceover.cli.sentences import counted
from onceover.errors import BusyError, UsageError

if TYPE_CHECKING:
    from onceover.ledger.database import Connection
    from onceover.ledger.expiries import Expiring
    from onceover.pipeline import Pipeline

_PATIENCE_SECONDS = 60.0
_MOST_SHOWN = 40

DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Only say what would go; write nothing.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Kept with what goes, and with who said so.")]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover retention flights --dry-run",
            "onceover retention flights",
            'onceover retention flights --reason "room for the new cluster" --json',
            codes={TRY_LATER: "all is let go, and the ingest that runs has not moved all of it away yet"},
        )
    )(retention)


def retention(
    pipeline: PipelineName, dry_run: DryRun = False, reason: Reason = "by the policy", json: AsJson = False
) -> None:
    """Let raw and quarantine go that nothing has come to for longer than `retention` under [storage] says.

    Only windows whose certificate stands go. Then they are expired: the certificate stays, detection is silent about
    them, a repair is refused. Files are moved to ROOT/PIPELINE/expired, by ingest if it runs, and deleted a day later
    by ingest or by the next run of this. It may be killed, run twice, or run by two at once.
    """
    from onceover.endpoints import address
    from onceover.ledger import expiries
    from onceover.ledger.catalog import registered
    from onceover.ledger.database import connect, require_current
    from onceover.pipelines import find
    from onceover.retention import totals

    known = find(pipeline)
    keeps = known.storage.retention_ms
    if keeps is None:
        remedy = 'to let it go, write retention = "400d" under [storage] in its TOML'
        raise UsageError(f"pipeline {known.name} keeps raw for ever; {remedy}")
    why = given(reason, "retention")
    with connect(address("postgres"), f"onceover retention {known.name}") as connection:
        require_current(connection)
        registered(connection, known.name)
        due, kept = expiries.due(connection, known.name, keeps), expiries.kept_back(connection, known.name, keeps)
        let_go = 0 if dry_run else expiries.let_go(connection, known.name, due, who(), why)
        left = 0 if dry_run else _carried_out(connection, known)
    if json:
        as_json(
            {
                "pipeline": known.name, "dry_run": dry_run, "older_than_ms": keeps, **totals(due), "kept_back": kept,
                "let_go": let_go, "left": left,
                "files": [{"window": x.window_start, "quarantine_day": x.quarantine_day, "bytes": x.bytes,
                           "records": x.records, "landed_at": x.landed_at} for x in due],
            }
        )  # fmt: skip
    else:
        _show(due, kept, dry_run, let_go, left)
    if left:
        raise typer.Exit(TRY_LATER)


def _carried_out(connection: Connection, pipeline: Pipeline) -> int:
    """Have it done by the driver: the ingest that runs, or this process. Returns how many files are left."""
    from onceover.endpoints import address
    from onceover.heart import as_driver
    from onceover.ledger import expiries
    from onceover.retention import carry_out
    from onceover.window_files import Layout, WindowFiles

    deadline, told = time.monotonic() + _PATIENCE_SECONDS, Occasionally()
    while True:
        try:
            with as_driver(connection, pipeline.name, f"{who()} (retention)") as epoch:
                files = WindowFiles(address("webhdfs"), Layout(pipeline.storage.raw_root, pipeline.name))
                while carry_out(connection, epoch, files):
                    told(f"{expiries.left(connection, pipeline.name):,} files left to move away")
        except BusyError:
            left = expiries.left(connection, pipeline.name)
            if not left or time.monotonic() > deadline:
                return left
            told(f"ingest runs and moves them away between its batches: {left:,} files left")
            time.sleep(0.2)
        else:
            return expiries.left(connection, pipeline.name)


def _show(due: Sequence[Expiring], kept: int, dry_run: bool, let_go: int, left: int) -> None:
    from onceover.retention import totals

    if due:
        rows = ((x.window_start or f"quarantine {x.quarantine_day}", x.records, x.bytes, x.landed_at) for x in due)
        say(table(["raw of", ">records", ">bytes", "last landed"], list(rows)[:_MOST_SHOWN]))
    if len(due) > _MOST_SHOWN:
        say(f"and {len(due) - _MOST_SHOWN:,} more; all of them with --json")
    found = totals(due)
    windows, days = counted(found["windows"], "certified window"), counted(found["quarantine_days"], "day")
    what = f"{windows} and {days} of quarantine, {found['bytes']:,} bytes,"
    say(f"{what} {'would go' if dry_run else 'are older than the pipeline keeps them'}")
    if kept:
        say(f"{counted(kept, 'window')} as old stay: not certified, blocked, or held by a repair")
    if not dry_run:
        say(f"{counted(let_go, 'file')} let go" + (f", {left:,} still to be moved away" if left else ""))
