"""The task of daily retention, against a double of the library that records its calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk import Context
from tests.dags.doubles import AirflowRun

from onceover.context import PipelineContext
from onceover.errors import UsageError
from onceover.ledger.expiries import ExpiringFile
from onceover.retention import expire as expiring
from onceover.retention.expire import ExpiryDue, ExpiryResult, Say
from onceover_airflow.operators.retention import ExpireOperator

pytestmark = pytest.mark.airflow

START = datetime(2013, 1, 1, 5, tzinfo=UTC)
LANDED = datetime(2013, 2, 1, 7, 30, 1, 250, tzinfo=UTC)
FILES = (
    ExpiringFile(START, None, 4, 11, 99_000, 1_200, LANDED),
    ExpiringFile(None, date(2013, 1, 1), None, 12, 300, 2, LANDED),
)


@dataclass
class Library:
    """A double of onceover.retention.expire that records its calls."""

    has_run: bool = True
    left: int = 0
    files: tuple[ExpiringFile, ...] = FILES
    calls: list[dict[str, Any]] = field(default_factory=list)

    def plan_expiry(self, context: PipelineContext) -> ExpiryDue:
        return ExpiryDue(context.name, context.pipeline.storage.retention_ms or 0, self.files, 3)

    def expire(self, context: PipelineContext, listed: ExpiryDue, who: str, why: str, say: Say) -> ExpiryResult:
        self.calls.append({"pipeline": context.name, "files": listed.files, "who": who, "why": why})
        for _ in range(3):
            say("7 files left")
        return ExpiryResult(len(listed.files), self.left)


SCHEDULED = AirflowRun("expire_raw", "scheduled__2013-03-01", "scheduled", None)


@pytest.fixture
def library(project: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    stand_in = Library()
    monkeypatch.setattr(expiring, "plan_expiry", stand_in.plan_expiry)
    monkeypatch.setattr(expiring, "expire", stand_in.expire)
    monkeypatch.setattr(PipelineContext, "is_registered", lambda context: stand_in.has_run)
    with (project / "pipelines" / "events.toml").open("a") as toml:
        toml.write('\n[storage]\nretention = "30d"\n')
    return stand_in


def run(
    pipeline: str = "events", params: dict[str, Any] | None = None, by: AirflowRun = SCHEDULED
) -> dict[str, Any] | None:
    context = cast(Context, {"dag_run": by, "params": params or {}})
    return ExpireOperator(task_id="expire", pipeline=pipeline).execute(context)


def test_due_windows_expire_for_the_scheduler_and_are_logged(
    library: Library, capfd: pytest.CaptureFixture[str]
) -> None:
    result = run()

    why = "expire_raw, run scheduled__2013-03-01"
    assert library.calls == [{"pipeline": "events", "files": FILES, "who": "scheduler", "why": why}]
    assert result == {
        "pipeline": "events", "older_than_ms": 30 * 86_400_000, "windows": 1, "compacted": 0, "quarantine_days": 1,
        "bytes": 99_300, "records": 1_202, "kept_back": 3, "expired": 2, "left": 0, "who": "scheduler", "why": why,
    }  # fmt: skip
    logged = "".join(capfd.readouterr())
    assert f"for scheduler, because: {why}" in logged
    assert "2013-01-01T05:00Z        1,200  99,000  2013-02-01T07:30:01Z" in logged
    assert "quarantine 2013-01-01" in logged
    assert "3 windows of that age stay" in logged
    assert logged.count("7 files left") == 1


def test_manual_run_keeps_its_reason_and_its_user(library: Library) -> None:
    run(params={"reason": " room for\nthe new cluster "}, by=AirflowRun())

    assert [(call["who"], call["why"]) for call in library.calls] == [("ada", "room for the new cluster")]


def test_dry_run_only_lists(library: Library, capfd: pytest.CaptureFixture[str]) -> None:
    result = run(params={"dry_run": True}) or {}

    assert library.calls == []
    assert (result["dry_run"], result["windows"]) == (True, 1)
    assert "dry run, nothing is written" in "".join(capfd.readouterr())


def test_malformed_dry_run_is_refused_before_anything_expires(library: Library) -> None:
    with pytest.raises(UsageError, match="'dry_run' is a str"):
        run(params={"dry_run": "false"})

    assert library.calls == []


def test_retention_with_nothing_due_is_green(library: Library) -> None:
    library.files = ()

    result = run() or {}

    assert (result["windows"], result["expired"]) == (0, 0)


def test_windows_left_for_an_ingest_to_move_are_logged_not_red(
    library: Library, capfd: pytest.CaptureFixture[str]
) -> None:
    library.left = 1_234

    assert (run() or {})["left"] == 1_234
    assert "1,234 not moved yet: the running ingest moves them" in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("pipeline", "has_run"), [("orders", True), ("events", False)], ids=["for ever", "not yet run"]
)
def test_pipeline_without_raw_to_expire_is_left_alone(library: Library, pipeline: str, has_run: bool) -> None:
    library.has_run = has_run

    assert run(pipeline) is None
    assert library.calls == []
