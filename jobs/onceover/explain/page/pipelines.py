"""The list of pipelines, worst first: how each one is, how wrong its readers' numbers are, and who repairs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from onceover.ledger.database import Connection
from onceover.ledger.page_windows import list_running, read_consistently, sum_wrong
from onceover.ledger.takings import Taking, list_takings
from onceover.ledger.windows import WindowState
from onceover.model.finding_kinds import Kind, failures
from onceover.model.gap import Reason
from onceover.observability.snapshot import DriverState, Signals, read_signals

OVERDUE_AFTER: Final = timedelta(hours=1)
_WRONG_KINDS: Final = sorted(failures(kind for kind in Kind if kind.meaning.of_window))


@dataclass(frozen=True, slots=True)
class PipelineLine:
    """A pipeline: `windows` by state, `overdue` windows, `holes` offsets by reason. `wrong` has `windows` with open
    findings, `too_many` and `too_few` records as far as the ledger alone shows them, and `since`. `log_until`: until
    when Kafka holds all records of windows that are not certified. `running`: the repairs that hold windows now.
    `taken`: what persons have taken."""

    name: str
    driver: DriverState
    watermark: datetime | None
    windows: Mapping[WindowState, int]
    overdue: int
    wrong: Mapping[str, Any]
    findings: Mapping[Kind, int]
    holes: Mapping[Reason, int]
    log_until: datetime | None
    running: tuple[Mapping[str, Any], ...]
    taken: tuple[Taking, ...]

    @property
    def rank(self) -> tuple[bool, bool, int, int, int, str]:
        """The order on a list, worst first: what no schedule puts right, and of that first the ingest that is dead, for
        its pipeline gets worse by the minute."""
        count, is_dead = self.windows.get, self.driver is DriverState.DEAD
        return (
            not (is_dead or count(WindowState.BLOCKED) or self.holes),
            not is_dead,
            -count(WindowState.BLOCKED, 0),
            -count(WindowState.FAILED, 0),
            -self.overdue,
            self.name,
        )


def list_pipelines(connection: Connection) -> list[PipelineLine]:
    """Return every pipeline that ever ran, worst first."""
    signals = read_signals(connection, OVERDUE_AFTER)
    with read_consistently(connection):
        lines = [_build_line(connection, each) for each in signals]
    return sorted(lines, key=lambda line: line.rank)


def _build_line(connection: Connection, signals: Signals) -> PipelineLine:
    return PipelineLine(
        name=signals.pipeline,
        driver=signals.driver,
        watermark=signals.watermark,
        windows=signals.windows,
        overdue=signals.overdue,
        wrong=sum_wrong(connection, signals.pipeline, _WRONG_KINDS),
        findings=signals.findings,
        holes=signals.holes,
        log_until=None if signals.log_until is None else datetime.fromtimestamp(signals.log_until, UTC),
        running=tuple(list_running(connection, signals.pipeline)),
        taken=tuple(list_takings(connection, signals.pipeline)),
    )
