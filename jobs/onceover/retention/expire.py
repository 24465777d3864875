"""Retention for Airflow and the command line: list the raw that is due, mark it as expired with who and why, and wait
until the pipeline's driver has moved it aside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onceover.context import PipelineContext
from onceover.errors import BusyError, UsageError
from onceover.ledger import expiries
from onceover.ledger.drivers import as_driver
from onceover.ledger.expiries import ExpiringFile
from onceover.retention.removal import carry_out

PATIENCE_SECONDS = 60.0
"""How long to wait for a running ingest, which moves the files aside itself."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ExpiryDue:
    """Files without a landing for longer than the pipeline keeps raw, oldest first. `kept_back` counts windows as old
    that stay: not certified, blocked, held by a repair, or waiting for records."""

    pipeline: str
    older_than_ms: int
    files: tuple[ExpiringFile, ...]
    kept_back: int

    @property
    def windows(self) -> int:
        return sum(file.window_start is not None for file in self.files)

    @property
    def compacted(self) -> int:
        """The number of these windows whose records are in a compacted file as well."""
        return sum(file.compacted for file in self.files)

    @property
    def quarantine_days(self) -> int:
        return len(self.files) - self.windows

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def as_dict(self) -> dict[str, Any]:
        """Return the totals, without the files."""
        return {
            "pipeline": self.pipeline,
            "older_than_ms": self.older_than_ms,
            "windows": self.windows,
            "compacted": self.compacted,
            "quarantine_days": self.quarantine_days,
            "bytes": self.bytes,
            "records": sum(file.records for file in self.files),
            "kept_back": self.kept_back,
        }


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """How many files have expired, and how many the running ingest has `left` to move aside."""

    expired: int
    left: int


def plan_expiry(context: PipelineContext) -> ExpiryDue:
    """Return the files that would expire now. Raises UsageError if the pipeline keeps raw for ever or has not run."""
    keeps = context.pipeline.storage.retention_ms
    if keeps is None:
        remedy = 'for raw to expire, write retention = "400d" under [storage] in its TOML'
        raise UsageError(f"pipeline {context.name} keeps raw for ever; {remedy}")
    context.read_registration()
    files = tuple(expiries.list_expirable(context.ledger, context.name, keeps))
    return ExpiryDue(context.name, keeps, files, expiries.count_kept_windows(context.ledger, context.name, keeps))


def expire(
    context: PipelineContext, listed: ExpiryDue, who: str, why: str, say: Say = lambda text: None
) -> ExpiryResult:
    """Mark the listed files as expired, each only if it has not changed since, and have the driver move them aside,
    with those that earlier calls have left. If killed, or called twice at once, the next call continues."""
    context.require_own_root()
    marked = expiries.mark_expired(context.ledger, context.name, listed.files, who, why)
    return ExpiryResult(marked, _wait_for_driver(context, who, say))


def _wait_for_driver(context: PipelineContext, who: str, say: Say) -> int:
    """Have the driver, a running ingest or else this process, move the files; return how many are left."""
    connection, name = context.ledger, context.name
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with as_driver(connection, name, f"{who} (retention)") as epoch:
                context.root.mark_driver(epoch, who, "expired raw was moved aside")
                while carry_out(connection, epoch, context.files):
                    say(f"{expiries.count_files_to_move(connection, name):,} files left to move aside")
        except BusyError:
            left = expiries.count_files_to_move(connection, name)
            if not left or time.monotonic() > deadline:
                return left
            say(f"ingest is running and moves them aside between its batches: {left:,} files left")
            time.sleep(0.2)
        else:
            return expiries.count_files_to_move(connection, name)
