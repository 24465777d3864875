"""The DAGs that sweep and expire run as wired, with doubles of the library and of spark-submit."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from tests.dags.doubles import WINDOW, Library, run

from onceover.audit import service as audit_service
from onceover.context import PipelineContext
from onceover.detection import sweep
from onceover.detection.sweep import SweepResult
from onceover.errors import TerminalError
from onceover.retention import expire as expiring
from onceover.retention import rollup
from onceover.retention.expire import ExpiryDue, ExpiryResult
from onceover.retention.rollup import RollupResult

# Airflow starts its own API inside this process, and its libraries warn each other there.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("default")]


def test_sweep_of_one_pipeline_fails_without_delaying_the_other(
    dag_bag: DagBag, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep_pipeline(context: PipelineContext, *, say: sweep.Say) -> SweepResult:
        if context.name == "events":
            raise TerminalError("its TOML is wrong")
        return SweepResult(context.name, 24, (), 0)

    seeds: list[str] = []
    monkeypatch.setattr(sweep, "sweep_pipeline", sweep_pipeline)
    monkeypatch.setattr(audit_service, "request_sample", lambda context, seed, who: seeds.append(seed))

    state, tasks = run(dag_bag, "sweep_certified")

    assert state == "failed"
    assert (tasks["sweep[0]"], tasks["sweep[1]"]) == ("failed", "success")
    assert (tasks["verify[0]"], tasks["verify[1]"]) == ("skipped", "skipped"), "neither has a certified window"
    assert len(seeds) == 2
    assert len(set(seeds)) == 1, "the run's name chooses, so that a cleared task verifies the same window"


@pytest.mark.parametrize("differences", [[], ["aggregates: 2 rows differ (- the table's, + raw's): + (a,5,10,4)"]])
def test_sweep_verifies_one_window_and_is_red_for_a_difference(
    dag_bag: DagBag,
    library: Library,
    spark: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    differences: list[str],
) -> None:
    sides = {side: {"records": 5, "digest": "00"} for side in ("certificate", "raw", "aggregates")}
    result = {"equal": not differences, "differences": differences, **sides}
    chosen = {"events": 31}
    monkeypatch.setattr(sweep, "sweep_pipeline", lambda context, say: SweepResult(context.name, 24, (), 0))
    monkeypatch.setattr(audit_service, "request_sample", lambda context, seed, who: chosen.get(context.name))
    monkeypatch.setattr(audit_service, "read_sample", lambda context, audit_id: (WINDOW.start, result))

    state, tasks = run(dag_bag, "sweep_certified")

    said = "events: window 2013-01-01T05:00Z is not as certified: aggregates: 2 rows differ"
    expected = ("failed", True) if differences else ("success", False)
    assert (state, said in "".join(capfd.readouterr())) == expected
    assert (tasks["verify[0]"], tasks["verify[1]"]) == (state, "skipped")
    assert spark.read_text().splitlines() == [f"{home}/jobs/audit.py --pipeline events --audit 31"]


def test_retention_of_one_pipeline_fails_without_delaying_others(
    dag_bag: DagBag, library: Library, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    went: list[tuple[str, str, str]] = []

    def expire(context: PipelineContext, listed: ExpiryDue, who: str, why: str, say: expiring.Say) -> ExpiryResult:
        went.append((context.name, who, why))
        return ExpiryResult(0, 0)

    monkeypatch.setattr(expiring, "plan_expiry", lambda context: ExpiryDue(context.name, 1, (), 0))
    monkeypatch.setattr(expiring, "expire", expire)
    joined: list[tuple[str, bool]] = []

    def roll_up_batches(context: PipelineContext, *, dry_run: bool) -> RollupResult:
        joined.append((context.name, dry_run))
        return RollupResult(context.name, 720, 1, 0, 0)

    monkeypatch.setattr(rollup, "roll_up_batches", roll_up_batches)
    monkeypatch.setattr(PipelineContext, "is_registered", lambda context: True)
    toml = home / "pipelines" / "orders.toml"
    before = toml.read_text()
    (home / "pipelines" / "broken.toml").write_text("[contract")
    try:
        toml.write_text(before + '\n[storage]\nretention = "30d"\n')
        state, tasks = run(dag_bag, "expire_raw", conf={"reason": "room"})
    finally:
        toml.write_text(before)
        (home / "pipelines" / "broken.toml").unlink()

    assert (state, tasks) == (
        "failed",
        {
            "pipelines": "success",
            **{f"{task}[{n}]": "success" if n else "failed" for task in ("expire", "roll_up") for n in range(3)},
        },
    )
    assert [(name, why) for name, _, why in went] == [("orders", "room")]
    assert sorted(joined) == [("events", False), ("orders", False)]
