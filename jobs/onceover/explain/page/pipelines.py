"""The list of pipelines, worst first: how each one is, how wrong its readers' numbers are, and who repairs it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from onceover.ledger.database import Connection
from onceover.ledger.page_overview import list_running, read_consistently, sum_wrong
from onceover.ledger.takings import list_takings
from onceover.ledger.windows import WindowState
from onceover.model.finding_kinds import Kind, failures
from onceover.observability.metric_values import DriverState, Signals, read_signals

OVERDUE_AFTER: Final = timedelta(hours=1)
_WRONG_KINDS: Final = sorted(failures(kind for kind in Kind if kind.meaning.of_window))


def list_pipelines(connection: Connection) -> list[Mapping[str, Any]]:
    """Return every pipeline that ever ran, worst first: some of its signals; `wrong` has `windows` with open findings,
    `too_many` and `too_few` records as far as the ledger alone shows them, and `since`; `log_until`: until when Kafka
    holds all records of windows that are not certified; `running`: the repairs that hold windows now; `taken`: what
    persons have taken."""
    signals = read_signals(connection, OVERDUE_AFTER)
    with read_consistently(connection):
        return [_describe(connection, each) for each in sorted(signals, key=rank)]


def rank(signals: Signals) -> tuple[bool, bool, int, int, int, str]:
    """Return the order on a list, worst first: what no schedule puts right, and of that first the ingest that is dead,
    for its pipeline gets worse by the minute."""
    count, is_dead = signals.windows.get, signals.driver is DriverState.DEAD
    return (
        not (is_dead or count(WindowState.BLOCKED) or signals.holes),
        not is_dead,
        -count(WindowState.BLOCKED, 0),
        -count(WindowState.FAILED, 0),
        -signals.overdue,
        signals.pipeline,
    )


def _describe(connection: Connection, signals: Signals) -> Mapping[str, Any]:
    return {
        "name": signals.pipeline,
        "driver": signals.driver,
        "watermark": signals.watermark,
        "windows": signals.windows,
        "overdue": signals.overdue,
        "wrong": sum_wrong(connection, signals.pipeline, _WRONG_KINDS),
        "findings": signals.findings,
        "holes": signals.holes,
        "log_until": None if signals.log_until is None else datetime.fromtimestamp(signals.log_until, UTC),
        "running": list_running(connection, signals.pipeline),
        "taken": list_takings(connection, signals.pipeline),
    }
