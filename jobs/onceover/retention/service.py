"""Raw that goes, as a command or a schedule asks for it: listed first, let go with who and why, then moved away by
whoever is the pipeline's driver.

Imports of the database and of HDFS happen inside the calls, so that loading a DAG file costs neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onceover.errors import BusyError, UsageError

if TYPE_CHECKING:
    from onceover.ledger.database import Connection
    from onceover.ledger.expiries import Expiring
    from onceover.model.pipeline import Pipeline

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
class LetGo:
    """How many files were let go, and how many an ingest that runs has still to move away."""

    let_go: int
    left: int


def due(pipeline: Pipeline) -> ExpiryDue:
    """What would go now; writes nothing. Raises UsageError for a pipeline that keeps raw for ever or has not run."""
    from onceover.config.endpoints import address
    from onceover.ledger import expiries
    from onceover.ledger.catalog import registered
    from onceover.ledger.database import connect, require_current

    keeps = pipeline.storage.retention_ms
    if keeps is None:
        remedy = 'to let it go, write retention = "400d" under [storage] in its TOML'
        raise UsageError(f"pipeline {pipeline.name} keeps raw for ever; {remedy}")
    with connect(address("postgres"), f"onceover retention {pipeline.name}") as connection:
        require_current(connection)
        registered(connection, pipeline.name)
        files = tuple(expiries.due(connection, pipeline.name, keeps))
        return ExpiryDue(pipeline.name, keeps, files, expiries.kept_back(connection, pipeline.name, keeps))


def let_go(pipeline: Pipeline, listed: ExpiryDue, who: str, why: str, say: Say = lambda text: None) -> LetGo:
    """Let go what was listed, each file only if it still is as it was listed, and have it moved away, with what earlier
    calls have left. Killed anywhere, or called by two at once, the next call goes on."""
    from onceover.config.endpoints import address
    from onceover.ledger import expiries
    from onceover.ledger.database import connect, require_current

    with connect(address("postgres"), f"onceover retention {pipeline.name}") as connection:
        require_current(connection)
        gone = expiries.let_go(connection, pipeline.name, listed.files, who, why)
        return LetGo(gone, _carried_out(connection, pipeline, who, say))


def _carried_out(connection: Connection, pipeline: Pipeline, who: str, say: Say) -> int:
    """Have it done by the driver: the ingest that runs, or this process. Returns how many files are left."""
    from onceover.config.endpoints import address
    from onceover.ledger import expiries
    from onceover.ledger.drivers import as_driver
    from onceover.raw.window_files import Layout, WindowFiles
    from onceover.retention.expire import carry_out

    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with as_driver(connection, pipeline.name, f"{who} (retention)") as epoch:
                files = WindowFiles(address("webhdfs"), Layout(pipeline.storage.raw_root, pipeline.name))
                while carry_out(connection, epoch, files):
                    say(f"{expiries.left(connection, pipeline.name):,} files left to move away")
        except BusyError:
            left = expiries.left(connection, pipeline.name)
            if not left or time.monotonic() > deadline:
                return left
            say(f"ingest runs and moves them away between its batches: {left:,} files left")
            time.sleep(0.2)
        else:
            return expiries.left(connection, pipeline.name)
