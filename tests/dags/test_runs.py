"""The DAGs that repair run as wired, with doubles of the library and of spark-submit that record their calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from tests.dags.doubles import WINDOW, Library, run

from onceover.model.window import WindowRange

# Airflow starts its own API inside this process, and its libraries warn each other there.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("default")]

TIMES = {"from": "2013-01-01T05:00Z", "to": "2013-01-01T07:00Z"}


def test_nothing_failed_starts_no_spark(dag_bag: DagBag, library: Library, spark: Path) -> None:
    state, tasks = run(dag_bag, "repair_failed_windows")

    assert state == "success"
    assert set(library.detected) == {"events", "orders"}
    assert {name: kept for name, kept in tasks.items() if "repair" in name} == {
        "windows.repair[0]": "skipped",
        "windows.repair[1]": "skipped",
    }
    assert not spark.exists()


def test_failed_window_of_one_pipeline_is_one_application(
    dag_bag: DagBag, library: Library, spark: Path, home: Path
) -> None:
    library.requests = {"orders": 12}

    state, tasks = run(dag_bag, "repair_failed_windows")

    assert state == "success"
    assert spark.read_text().splitlines() == [f"{home}/jobs/repair.py --pipeline orders --request 12"]
    assert library.confirmed == [("orders", 12)]
    assert (tasks["windows.confirm[0]"], tasks["windows.confirm[1]"]) == ("skipped", "success")


def test_newly_blocked_window_turns_the_run_red_at_once(dag_bag: DagBag, library: Library, spark: Path) -> None:
    library.requests = {"orders": 12}
    library.outcome = {"newly_blocked": ((str(WINDOW), "corrupt line"),)}

    state, tasks = run(dag_bag, "repair_failed_windows")

    assert state == "failed"
    assert tasks["windows.confirm[1]"] == "failed"
    assert library.confirmed == [("orders", 12)]


def test_day_of_history_is_judged_for_the_chosen_pipeline_only(dag_bag: DagBag, library: Library, spark: Path) -> None:
    state, _ = run(
        dag_bag, "repair_history", logical_date=datetime(2013, 1, 3, tzinfo=UTC), conf={"pipeline": "events"}
    )

    assert state == "success"
    [(pipeline, asked)] = library.detected.items()
    day = WindowRange(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))
    assert (pipeline, asked["window_range"]) == ("events", day)


def test_history_without_a_pipeline_fails_instead_of_taking_all(dag_bag: DagBag, library: Library, spark: Path) -> None:
    state, tasks = run(dag_bag, "repair_history", logical_date=datetime(2013, 1, 4, tzinfo=UTC))

    assert (state, tasks["choose"]) == ("failed", "failed")
    assert library.detected == {}


def test_on_call_repairs_the_range_and_keeps_the_reason(dag_bag: DagBag, library: Library, spark: Path) -> None:
    library.requests = {"events": 3}

    state, _ = run(dag_bag, "repair_on_call", conf={"pipeline": "events", "reason": "disk full", **TIMES})

    assert state == "success"
    asked = library.detected["events"]
    hours = WindowRange(datetime(2013, 1, 1, 5, tzinfo=UTC), datetime(2013, 1, 1, 7, tzinfo=UTC))
    assert (asked["why"], asked["window_range"]) == ("disk full", hours)
    assert spark.read_text().splitlines()[0].endswith("--pipeline events --request 3")


@pytest.mark.parametrize("request_id", [3, None])
def test_on_call_is_red_for_a_window_that_is_not_right(
    dag_bag: DagBag, library: Library, spark: Path, capfd: pytest.CaptureFixture[str], request_id: int | None
) -> None:
    library.requests = {"events": request_id} if request_id else {}
    library.wrong = ((str(WINDOW), "failed: raw holds 1 of 2"),)

    state, tasks = run(dag_bag, "repair_on_call", conf={"pipeline": "events", "reason": "disk full", **TIMES})

    assert (state, tasks["windows.check"]) == ("failed", "failed")
    assert "1 window is not right: 2013-01-01T05:00Z (failed: raw holds 1 of 2)" in "".join(capfd.readouterr())


def test_on_call_judges_a_range_into_the_future_up_to_now(
    dag_bag: DagBag, library: Library, spark: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = {"pipeline": "events", "reason": "x", "from": "2013-01-01T05:00Z", "to": "2999-01-01T00:00Z"}

    state, _ = run(dag_bag, "repair_on_call", conf=asked)

    judged = library.detected["events"]["window_range"]
    assert (state, judged.end <= datetime.now(UTC) < judged.end + timedelta(hours=1)) == ("success", True)
    assert "the range ends in the future: it is judged up to" in "".join(capfd.readouterr())


def test_on_call_dry_run_writes_nothing(dag_bag: DagBag, library: Library, spark: Path) -> None:
    state, tasks = run(dag_bag, "repair_on_call", conf={"pipeline": "events", "dry_run": True, **TIMES})

    assert (state, tasks["windows.repair"], tasks["windows.check"]) == ("success", "skipped", "skipped")
    assert library.detected == {}
    assert not spark.exists()


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({**TIMES}, "a repair needs a reason"),
        ({**TIMES, "to": "2013-01-01T05:00Z", "reason": "x"}, "empty or reversed"),
        ({**TIMES, "from": "2013-01-01T05:01Z", "reason": "x"}, "is not the start of a window"),
        ({"from": "2998-01-01T00:00Z", "to": "2999-01-01T00:00Z", "reason": "x"}, "in the future"),
        ({**TIMES, "reason": "x", "dryrun": True}, "unknown key 'dryrun' in the conf; did you mean `dry_run`?"),
    ],
)
def test_on_call_refuses_a_malformed_request(
    dag_bag: DagBag, library: Library, spark: Path, capfd: pytest.CaptureFixture[str], conf: dict[str, Any], said: str
) -> None:
    state, tasks = run(dag_bag, "repair_on_call", conf={"pipeline": "events", **conf})

    assert (state, tasks["windows.detect"]) == ("failed", "failed")
    assert said in "".join(capfd.readouterr())
    assert library.detected == {}
    assert not spark.exists()
