"""Ingest in words: what a dead, a stopped and a hanging driver's page says, and what it says to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from onceover.explain.page.ingest import describe_ingest
from onceover.observability.metric_values import DriverState

AT = datetime(2013, 1, 5, 14, tzinfo=UTC)
HEARD = AT - timedelta(hours=3)


@pytest.mark.parametrize(("driver", "progress", "waiting", "retention", "said", "command"), [
    (DriverState.DEAD, HEARD, 0, timedelta(days=7), "dead since 2013-01-05T11:00Z", "onceover ingest p"),
    (DriverState.DEAD, HEARD, 0, timedelta(days=7), "the first of them until 2013-01-12T11:00Z", "onceover ingest p"),
    (DriverState.DEAD, HEARD, 0, None, "Kafka keeps new records meanwhile.", "onceover ingest p"),
    (DriverState.STOPPED, HEARD, 2, None, "stopped at 2013-01-05T11:00Z, and 2 records wait in", "onceover ingest p"),
    (DriverState.STOPPED, HEARD, 0, None, "Ingest was stopped at 2013-01-05T11:00Z.", None),
    (DriverState.ALIVE, HEARD, 0, None, "since 2013-01-05T11:00Z it has", "onceover doctor && onceover ingest p"),
    (DriverState.ALIVE, AT, 5, None, "Ingest runs.", None),
])  # fmt: skip
def test_driver_is_described_with_what_to_do(
    driver: DriverState, progress: datetime, waiting: int, retention: timedelta | None, said: str, command: str | None
) -> None:
    row = {"driver": driver, "at": AT, "heard_at": HEARD, "progress_at": progress, "waiting": waiting}
    line = describe_ingest("p", {**row, "log_retention": retention, "unknown_schema": None, "schemas": None})
    assert said in line.sentence
    assert line.command == command
    assert (line.advice is None) == (command is None)


@pytest.mark.parametrize(
    ("unknown", "refused", "said", "command"),
    [
        (
            "schema 7 is not known yet",
            "schema 3 (no)",
            "waits before records whose",
            "onceover doctor",
        ),
        (None, "schema 3 since then (no)", "It met other schemas than the contract's: schema 3 since then (no).", None),
    ],
)
def test_schemas_of_a_registry_are_told(
    unknown: str | None, refused: str | None, said: str, command: str | None
) -> None:
    row = {"driver": DriverState.ALIVE, "at": AT, "heard_at": HEARD, "progress_at": AT, "waiting": 0}
    schemas = {"unknown_schema": unknown, "schemas": refused}
    line = describe_ingest("p", {**row, "log_retention": None, **schemas})
    assert said in line.sentence
    assert line.command == command
