"""Ingest of one pipeline on its page: whether a process runs it, and if not, since when, what waits, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from onceover.ledger.database import Connection
from onceover.ledger.page_overview import read_consistently, read_driver
from onceover.model.window import format_minute
from onceover.model.wording import pluralize
from onceover.observability.metric_values import DriverState

STALLED_AFTER: Final = timedelta(minutes=15)
"""As long as the alert OnceoverIngestStalled waits."""


@dataclass(frozen=True, slots=True)
class IngestLine:
    """Ingest in words: `sentence` is its state, `advice` what to do by a `command`; both None if nothing is to do."""

    driver: DriverState
    sentence: str
    advice: str | None = None
    command: str | None = None


def read_ingest(connection: Connection, name: str) -> IngestLine:
    """Describe the pipeline's ingest, as the ledger has it now."""
    with read_consistently(connection):
        return describe_ingest(name, read_driver(connection, name))


def describe_ingest(name: str, row: Mapping[str, Any]) -> IngestLine:
    """Describe a driver as `read_driver` returns it."""
    driver, heard_at, waiting = DriverState(row["driver"]), row["heard_at"], row["waiting"]
    since = format_minute(heard_at) if heard_at else "an unknown time"
    command = f"onceover ingest {name}"
    if driver is DriverState.DEAD:
        kept = "Kafka keeps new records meanwhile"
        if row["log_retention"] is not None and heard_at is not None:
            kept += f", the first of them until {format_minute(heard_at + row['log_retention'])}"
        return IngestLine(
            driver,
            f"Ingest is dead since {since}: its process was killed, or gave up. No new record is counted, and no "
            f"window closes. {kept}.",
            "See the end of its log for the reason. Then start it again where it ran; it takes over what was left half "
            "done, and the next repair puts right what that shows:",
            command,
        )
    if driver is DriverState.STOPPED and waiting:
        wait = "waits" if waiting == 1 else "wait"
        return IngestLine(
            driver,
            f"Ingest was stopped at {since}, and {pluralize(waiting, 'record')} {wait} in Kafka.",
            "Start it again:",
            command,
        )
    progress_at = row["progress_at"]
    if driver is DriverState.ALIVE and progress_at is not None and row["at"] - progress_at > STALLED_AFTER:
        idle = format_minute(progress_at)
        return IngestLine(
            driver,
            f"Ingest is stalled: its process is alive, and since {idle} it has neither landed a batch nor found none "
            "to read. It hangs, or each try fails.",
            "See which part does not answer, and the end of its log. Then stop the process and start it again:",
            f"onceover doctor && {command}",
        )
    if driver is DriverState.ALIVE and row["unknown_schema"] is not None:
        return IngestLine(
            driver,
            f"Ingest runs, and waits before records whose schema it cannot get: {row['unknown_schema']}.",
            "Start the registry, or see what keeps ingest from it; then ingest goes on by itself:",
            "onceover doctor",
        )
    state = "Ingest runs." if driver is DriverState.ALIVE else f"Ingest was stopped at {since}."
    if row["schemas"] is not None:
        state += f" It met other schemas than the contract's: {row['schemas']}."
    return IngestLine(driver, state)
