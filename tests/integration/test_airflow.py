"""The three ways in, through the real Airflow: its REST API, its scheduler, its spark-submit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.chromium import open_chromium
from tests.conftest import pause_when_all_have_ended
from tests.integration.events import NOON_MS, event, moment
from tests.integration.lane import Lane, Lanes
from tests.integration.page_visits import repair_on_page
from tests.integration.planted_failures import backdate, land_twice, replay
from tests.integration.test_avro_topics import Writer, count_trips, make_lane, make_schema, stopped

from onceover.config.endpoints import address
from onceover.model.window import format_moment, to_ms
from onceover_local.airflow_rest import AirflowRest, wait_for
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.airflow]
DAY_MS = 86_400_000
JANUARY = to_ms(datetime(2013, 1, 1, tzinfo=UTC))


def make_event(day: int, hour: float) -> bytes:
    return b'{"at": %d, "kind": "a", "amount": 1}' % (JANUARY + (day - 1) * DAY_MS + int(hour * 3_600_000))


def list_states(airflow: AirflowRest, dag: str, run: str, pipeline_index: int = -1) -> dict[str, str]:
    tasks = airflow.tasks(dag, run)
    return {t["task_id"]: t["state"] for t in tasks if pipeline_index in (-1, t["map_index"])}


def wait_for_end(airflow: AirflowRest, dag: str, run: str, state: str = "success", deadline_s: float = 300) -> None:
    assert airflow.wait_for_run(dag, run, deadline_s)["state"] == state


def run_dag(airflow: AirflowRest, dag: str, conf: dict[str, Any], deadline_s: float = 300) -> str:
    """Run the DAG, which has to succeed, once its form offers the pipeline."""
    if "pipeline" in conf:
        airflow.wait_for_choice(dag, "pipeline", conf["pipeline"])
    run = airflow.trigger(dag, conf)
    wait_for_end(airflow, dag, run, deadline_s=deadline_s)
    return run


def read_result(airflow: AirflowRest, dag: str, run: str, pipeline: str, task: str) -> dict[str, Any]:
    """Return the task's result for that pipeline, from any of its mapped instances."""
    for t in airflow.tasks(dag, run):
        if t["task_id"] == task and t["state"] == "success":
            found = airflow.result(dag, run, task, t["map_index"])
            if isinstance(found, dict) and found.get("pipeline") == pipeline:
                return found
    raise AssertionError(f"{task} of {run} returned nothing for {pipeline}: {airflow.tasks(dag, run)}")


def list_heard(airflow: AirflowRest, pipeline: str) -> list[dict[str, Any]]:
    """Return what the example DAG, which is scheduled on the assets, heard of the pipeline."""
    heard: list[dict[str, Any]] = []
    for run in airflow.runs("example_downstream"):
        if run["state"] == "success":
            result = airflow.result("example_downstream", run["dag_run_id"], "rerun")
            assert isinstance(result, dict)
            assert result["day"] == run["partition_key"]
            heard += [{**e, "day": result["day"]} for e in result["published"] if e["pipeline"] == pipeline]
    return heard


def test_dags_of_all_three_ways_repair_prove_and_record_who(lanes: Lanes, stack: Stack, airflow: AirflowRest) -> None:
    lane = lanes(minutes=60)
    assert not airflow.import_errors()
    airflow.pause("example_downstream", False)  # a paused DAG hears nothing of what is announced meanwhile

    # On schedule: what was landed twice is repaired, everything else certified.
    lane.produce([make_event(day, hour) for day in (1, 2, 3, 4) for hour in (1, 1.5, 2)])
    replay(lane)
    lane.land([make_event(4, 5)])
    assert lane.aggregates()[_hour(1, 1)] == (4, 4, 1)
    airflow.wait_for_choice("repair_on_call", "pipeline", lane.name)
    # A rival requests the same windows at the same time: one of the two publishes, the other finds nothing to do.
    month = {"pipeline": lane.name, "from": "2013-01-01T00:00Z", "to": "2013-01-05T00:00Z"}
    rival = airflow.trigger("repair_on_call", {**month, "reason": "the dashboard looks doubled"})
    airflow.pause("repair_failed_windows", False)
    # It waits for the run of the schedule, and that for the rival's Spark: three times a cold one, one after another.
    run_dag(airflow, "repair_failed_windows", {}, 600)
    wait_for_end(airflow, "repair_on_call", rival)
    pause_when_all_have_ended(airflow, "repair_failed_windows")
    assert lane.aggregates()[_hour(1, 1)] == (2, 2, 1)
    assert count_uncertified(lane) == 0
    assert count_published(lane) == 8, "each of the eight windows that were landed twice, once"

    # A dry run on call writes nothing and says what it would do.
    land_twice(lane, [make_event(day, 1) for day in (1, 2)])
    whole = {"pipeline": lane.name, "from": "2013-01-01T00:00Z", "to": "2013-01-03T00:00Z"}
    refused = airflow.trigger("repair_on_call", whole)  # for want of a reason; looked at below
    dry = run_dag(airflow, "repair_on_call", {**whole, "dry_run": True})
    planned = read_result(airflow, "repair_on_call", dry, lane.name, "windows.detect")
    plan = planned["plan"]
    assert [(row["window"], row["counted"], row["distinct"]) for row in plan] == [
        ("2013-01-01T01:00Z", 4, 3),
        ("2013-01-02T01:00Z", 4, 3),
    ]
    assert list_states(airflow, "repair_on_call", dry)["windows.repair"] == "skipped"
    assert count_uncertified(lane) == 2

    # A real run needs a reason, and the reason lands in the ledger with who asked: here by an alert's link, a login and
    # one click on the page, which follows the run until every window is certified.
    wait_for_end(airflow, "repair_on_call", refused, "failed")
    one_day = {**whole, "to": "2013-01-02T00:00Z", "reason": "numbers look doubled"}
    other = airflow.trigger("repair_on_call", {**one_day, "plan": planned["token"]})  # the token of two days
    wait_for_end(airflow, "repair_on_call", other, "failed")
    link = f"{lane.name}/range?from={one_day['from']}&to={one_day['to']}"
    with open_chromium() as browser:
        asked = repair_on_page(browser, stack, address("airflow"), link, one_day["reason"])
    run_of_page = airflow.run("repair_on_call", asked)
    assert run_of_page["state"] == "success"
    assert run_of_page["note"].startswith("numbers look doubled\nhttp")
    assert len(run_of_page["conf"]["plan"]) == 64, "the token of what was previewed"
    query = "SELECT who, why FROM onceover.repair_request WHERE pipeline = %s ORDER BY request_id DESC"
    who = lane.query(query, [lane.name])[0]
    assert who == {"who": "admin", "why": "numbers look doubled"}
    assert lane.aggregates()[_hour(1, 1)] == (3, 3, 1)
    assert count_uncertified(lane) == 1

    # Clearing a finished repair, or all of the run, does it again and changes nothing.
    before = lane.aggregates()
    for cleared in (["windows.repair"], ["windows.detect", "windows.repair", "windows.confirm"]):
        airflow.clear("repair_on_call", asked, cleared)
        wait_for_end(airflow, "repair_on_call", asked)
    assert lane.aggregates() == before
    assert count_published(lane) == 9

    # A backfill of two days of Los Angeles, which are a part of three: only the second one has something to repair, so
    # only there Spark starts.
    first, last = (datetime(2013, 1, day, 8, tzinfo=UTC) for day in (1, 2))
    airflow.wait_for_choice("repair_history", "pipeline", lane.name)
    backfill = airflow.backfill("repair_history", first, last, {"pipeline": lane.name})
    airflow.wait_for_backfill(backfill, 400)
    runs = airflow.runs("repair_history", "backfill")
    spark = {r["data_interval_start"][:10]: list_states(airflow, "repair_history", r["dag_run_id"])["windows.repair"]
             for r in runs}  # fmt: skip
    assert spark == {"2013-01-01": "skipped", "2013-01-02": "success", "2013-01-03": "skipped"}
    assert count_uncertified(lane) == 0
    assert lane.aggregates()[_hour(2, 1)] == (3, 3, 1)

    # A restore by Airflow's user blocks the window; the on-call repair lifts that.
    known = {"pipeline": lane.name, "window": "2013-01-02T01:00Z", "reason": "a second look"}
    run_dag(airflow, "restore_window", known)
    blocked = lane.query(
        'SELECT blocked_why FROM onceover."window" WHERE pipeline = %s AND blocked_at IS NOT NULL', [lane.name]
    )
    assert [row["blocked_why"] for row in blocked] == ["restored to revision 1 by admin: a second look"]
    assert lane.aggregates()[_hour(2, 1)] == (4, 4, 1)
    second_day = {**whole, "from": "2013-01-02T00:00Z", "reason": "right after all"}
    again = run_dag(airflow, "repair_on_call", second_day)
    assert lane.aggregates()[_hour(2, 1)] == (3, 3, 1)
    (repaired,) = (t for t in airflow.tasks("repair_on_call", again)
                   if (t["task_id"], t["state"]) == ("windows.repair", "success"))  # fmt: skip
    log = airflow.log("repair_on_call", again, "windows.repair", repaired["map_index"], repaired["try_number"])
    assert "reading 1 window files, 0 compacted ones" in log, "the log of the task says how far it is"

    # A DAG that is scheduled on the asset hears of all of it: repairs and restore, with windows, revisions and reasons.
    run_dag(airflow, "announce_published", {})
    reasons = {"numbers look doubled", "a second look", "right after all"}
    wait_for(lambda: reasons <= {e["reason"] for e in list_heard(airflow, lane.name)}, 120, "the example to run")
    by_reason = {e["reason"]: e for e in list_heard(airflow, lane.name)}
    assert [by_reason[why]["day"] for why in sorted(reasons)] == ["2013-01-02", "2013-01-01", "2013-01-02"]
    revisions = [[(w["start"], w["revision"]) for w in by_reason[why]["windows"]] for why in sorted(reasons)]
    assert revisions == [[("2013-01-02T01:00Z", 3)], [("2013-01-01T01:00Z", 2)], [("2013-01-02T01:00Z", 4)]]
    assert (by_reason["a second look"]["by"], by_reason["a second look"]["who"]) == ("restore", "admin")
    airflow.pause("example_downstream", True)

    # A third reader: Kafka's log, raw and the aggregates hold the same records.
    audit = run_dag(airflow, "audit_against_log", {"pipeline": lane.name}, 400)
    said = airflow.result("audit_against_log", audit, "audit")
    assert isinstance(said, dict)
    assert (said["differing"], said["records"]) == (0, len(lane.log()))


@pytest.mark.rare
def test_retention_dag_expires_certified_windows_and_records_who(lanes: Lanes, airflow: AirflowRest) -> None:
    lane = lanes(more='[storage]\nretention = "30d"')
    lane.land([event(1), event(6)])
    lane.detect()
    backdate(lane)
    run = run_dag(airflow, "expire_raw", {"reason": "room"})
    said = read_result(airflow, "expire_raw", run, lane.name, "expire")
    assert (said["windows"], said["expired"], said["left"]) == (2, 2, 0)
    assert read_result(airflow, "expire_raw", run, lane.name, "roll_up")["batches"] == 0, "Kafka holds their offsets"
    kept = lane.query("SELECT DISTINCT who, why, state FROM onceover.expiry WHERE pipeline = %s", [lane.name])
    assert kept == [{"who": "admin", "why": "room", "state": "moved"}]
    assert sorted(name.rpartition(".")[0] for name in lane.raw()) == [
        "expired/2026-03-01/1200.log",
        "expired/2026-03-01/1205.log",
    ]


@pytest.mark.rare
def test_dags_repair_avro_while_the_registry_is_away(
    lanes: Lanes, registry: str, stack: Stack, airflow: AirflowRest
) -> None:
    lane = make_lane(lanes)
    with SchemaRegistryClient({"url": registry}) as client:
        writer = Writer(client, lane, make_schema())
        land_twice(lane, [writer.write(number) for number in range(10)])
    assert lane.aggregates() != count_trips(range(10))
    hour = {"pipeline": lane.name, "from": format_moment(moment(0)), "to": format_moment(moment(60))}
    with stopped(stack):
        run_dag(airflow, "repair_on_call", {**hour, "reason": "landed twice"})
        assert lane.aggregates() == count_trips(range(10))
        lane.overwrite(lane.window_file(0), b"")
        run_dag(airflow, "reread_window", {"pipeline": lane.name, "window": hour["from"], "reason": "lost"})
        assert lane.verify(0)["equal"]
    assert lane.aggregates() == count_trips(range(10))
    assert count_uncertified(lane) == 0


def count_uncertified(lane: Lane) -> int:
    (row,) = lane.query(
        "SELECT count(*) AS n FROM onceover.window w LEFT JOIN onceover.certificate c USING (certificate_id) "
        "WHERE w.pipeline = %s AND c.version IS DISTINCT FROM w.version",
        [lane.name],
    )
    return int(row["n"])


def count_published(lane: Lane) -> int:
    """Return how many repairs ever overwrote a window."""
    (row,) = lane.query(
        "SELECT count(*) AS n FROM onceover.repair WHERE pipeline = %s AND state IN ('published', 'confirmed')",
        [lane.name],
    )
    return int(row["n"])


def _hour(day: int, hour: int) -> tuple[float, str]:
    return ((JANUARY + (day - 1) * DAY_MS + hour * 3_600_000 - NOON_MS) / 60_000, "a")
