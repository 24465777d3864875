"""Raw that goes, as a command or a schedule asks for it: listed first, let go with who and why, then moved away by
whoever is the pipeline's driver.
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
from onceover.ledger.expiries import Expiring
from onceover.retention.expire import carry_out

PATIENCE_SECONDS = 60.0
"""How long to wait for an ingest that runs and moves the files away itself."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ExpiryDue:
    """What nothing has come to for longer than the pipeline keeps it, oldest first. `kept_back` windows are as old and
    stay: not certified, blocked, or held by a repair."""

    pipeline: str
    older_than_ms: int
    files: tuple[Expiring, ...]
    kept_back: int

    @property
    def windows(self) -> int:
        return sum(one.window_start is not None for one in self.files)

    @property
    def compacted(self) -> int:
        """Of the windows, those whose records stand in a Parquet file as well."""
        return sum(one.compacted for one in self.files)

    @property
    def quarantine_days(self) -> int:
        return len(self.files) - self.windows

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.files)

    def as_dict(self) -> dict[str, Any]:
        """Without the files themselves."""
        return {
            "pipeline": self.pipeline,
            "older_than_ms": self.older_than_ms,
            "windows": self.windows,
            "compacted": self.compacted,
            "quarantine_days": self.quarantine_days,
            "bytes": self.bytes,
            "records": sum(one.records for one in self.files),
            "kept_back": self.kept_back,
        }


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """How many files were let go, and how many an ingest that runs has still to move away."""

    expired: int
    left: int


def plan_expiry(context: PipelineContext) -> ExpiryDue:
    """What would go now; writes nothing. Raises UsageError for a pipeline that keeps raw for ever or has not run."""
    keeps = context.pipeline.storage.retention_ms
    if keeps is None:
        remedy = 'to let it go, write retention = "400d" under [storage] in its TOML'
        raise UsageError(f"pipeline {context.name} keeps raw for ever; {remedy}")
    context.registered()
    files = tuple(expiries.list_expirable(context.ledger, context.name, keeps))
    return ExpiryDue(context.name, keeps, files, expiries.kept_back(context.ledger, context.name, keeps))


def expire(
    context: PipelineContext, listed: ExpiryDue, who: str, why: str, say: Say = lambda text: None
) -> ExpiryResult:
    """Let go what was listed, each file only if it still is as it was listed, and have it moved away, with what earlier
    calls have left. Killed anywhere, or called by two at once, the next call goes on."""
    gone = expiries.mark_expired(context.ledger, context.name, listed.files, who, why)
    return ExpiryResult(gone, _wait_for_driver(context, who, say))


def _wait_for_driver(context: PipelineContext, who: str, say: Say) -> int:
    """Have it done by the driver: the ingest that runs, or this process. Returns how many files are left."""
    connection, name = context.ledger, context.name
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with as_driver(connection, name, f"{who} (retention)") as epoch:
                while carry_out(connection, epoch, context.files):
                    say(f"{expiries.left(connection, name):,} files left to move away")
        except BusyError:
            left = expiries.left(connection, name)
            if not left or time.monotonic() > deadline:
                return left
            say(f"ingest runs and moves them away between its batches: {left:,} files left")
            time.sleep(0.2)
        else:
            return expiries.left(connection, name)
