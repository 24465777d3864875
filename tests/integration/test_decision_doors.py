"""A person's decision in Airflow writes what the command line writes: in every table, in every row, but for its run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from tests.airflow_home import DAGS, name_airflow_home
from tests.integration.events import event
from tests.integration.extras import repair
from tests.integration.lane import Lane, Lanes
from tests.integration.ledger_backup import back_up, put_back
from tests.integration.planted_failures import expire, land_twice, skip_to
from tests.integration.program import succeed
from tests.programs import run_python

from onceover.cli.arguments import get_user
from onceover.ledger import frontiers
from onceover.ledger.database import Connection

pytestmark = [pytest.mark.stack, pytest.mark.rare]
NOON, HALF = "2026-03-01T12:00Z", "2026-03-01T12:30Z"
WHY = "a test"
TASKS = """
import json
import sys
from types import SimpleNamespace

from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.execution_time.context import OutletEventAccessors

dags, user, forms = sys.argv[1:]
bag = DagBag(dags)
for name, form in json.loads(forms).items():
    dag = bag.dags[name]
    (task,) = dag.tasks
    dag.params.update(form)
    run = SimpleNamespace(dag_id=name, run_id="manual", run_type="manual", triggering_user_name=user)
    events = OutletEventAccessors()
    context = {"dag_run": run, "params": dag.params.validate(), "outlet_events": events}
    task.render_template_fields(context)
    task.execute(context)
"""


def make_lane_to_decide(lane: Lane) -> str:
    """Plant lost offsets, and rows that a repair replaced; return the offsets."""
    land_twice(lane, [*(event(n, amount=n) for n in range(10)), event(11, amount=11)])
    repair(lane)
    lane.produce(event(12) for _ in range(3))
    skip_to(lane, 14)
    expire(lane, 14)
    lane.produce([event(21)])
    lane.turn()
    (hole,) = read_lost(lane)
    return hole


def read_lost(lane: Lane) -> list[str]:
    with lane.open() as context:
        return [str(each) for each in frontiers.read_holes(context.ledger, lane.name)]


def read_all(ledger: Connection, since: datetime) -> dict[str, list[str]]:
    """Return the rows of every table, in which each time after `since` is `now`."""
    names = ledger.execute(
        "SELECT table_schema || '.' || quote_ident(table_name) AS name FROM information_schema.tables "
        "WHERE table_schema IN ('onceover', 'aggregates') AND table_type = 'BASE TABLE'"
    ).fetchall()
    rows = {each["name"]: ledger.execute(f"SELECT to_jsonb(t) AS row FROM {each['name']} t") for each in names}
    return {name: sorted(json.dumps(replace_new(r["row"], since), sort_keys=True) for r in rows[name]) for name in rows}


def replace_new(value: Any, since: datetime) -> Any:
    if isinstance(value, dict):
        return {key: replace_new(each, since) for key, each in value.items()}
    if isinstance(value, list):
        return [replace_new(each, since) for each in value]
    try:
        return "now" if isinstance(value, str) and datetime.fromisoformat(value) > since else value
    except (ValueError, TypeError):  # no time, or one of no zone
        return value


def run_dags(forms: Mapping[str, object]) -> None:
    """Run the one task of each DAG with that form, in a process of its own, by the command line's user."""
    name_airflow_home()
    run_python("-c", TASKS, str(DAGS), get_user(), json.dumps(forms))


def test_decision_by_dag_writes_what_the_command_writes(lanes: Lanes) -> None:
    lane = lanes()
    lost = make_lane_to_decide(lane)
    span, why = {"from": NOON, "to": HALF}, {"pipeline": lane.name, "reason": WHY}
    with lane.ledger() as ledger:
        (since,) = (row["now"] for row in ledger.execute("SELECT clock_timestamp() AS now"))
        before = read_all(ledger, since)
    backup = back_up()

    for command in (
        ("take", lane.name, "--from", NOON, "--to", HALF, "--ticket", "INC-42"),
        ("accept-loss", lane.name, lost, "--from", NOON, "--to", HALF, "--reason", WHY),
        ("restore", lane.name, "2026-03-01T12:10Z", "--reason", WHY),
    ):
        succeed(*command)
    with lane.ledger() as ledger:
        by_commands = read_all(ledger, since)
    put_back(backup)
    with lane.ledger() as ledger:
        assert read_all(ledger, since) == before

    run_dags(
        {
            "take_windows": {**why, **span, "ticket": "INC-42", "reason": None},
            "accept_loss": {**why, **span, "offsets": lost},
            "restore_window": {**why, "window": "2026-03-01T12:10Z"},
        }
    )

    with lane.ledger() as ledger:
        named = ledger.execute(
            "UPDATE onceover.repair_request SET dag_id = NULL, run_id = NULL WHERE dag_id = 'restore_window' "
            "AND run_id = 'manual' AND pipeline = %s", [lane.name],
        )  # fmt: skip
        assert named.rowcount == 1, "the restore's request names its run"
        assert read_all(ledger, since) == by_commands
    changed = {name.partition(".")[2] for name in before if before[name] != by_commands[name]}
    assert changed >= {"action", "accepted_loss", "repair", '"window"', lane.name}
