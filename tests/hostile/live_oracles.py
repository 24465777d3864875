"""What must hold after hostile confs: each ended run is red at its first try, shows texts as they were sent, and left
every row of the ledger alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.hostile.live_confs import Sent

from onceover.ledger.database import Connection
from onceover_local.airflow_rest import AirflowRest

RENDERED = re.compile(r"(?<![\d.-])1337(?![\d-])")
"""What `7*191` becomes where a template is rendered."""


def hash_tables(ledger: Connection) -> dict[str, tuple[object, ...]]:
    """Return the number of rows and their hash of every table, and how far every sequence is."""
    names = ledger.execute(
        "SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables "
        "WHERE table_schema IN ('onceover', 'aggregates', 'public') AND table_type = 'BASE TABLE'"
    ).fetchall()
    query = "SELECT count(*) AS n, md5(coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '')) AS hash FROM {} t"
    state: dict[str, tuple[object, ...]] = {}
    for row in names:
        state[row["name"]] = tuple((ledger.execute(query.format(row["name"])).fetchone() or {}).values())
    for row in ledger.execute("SELECT schemaname || '.' || sequencename AS name, last_value FROM pg_sequences"):
        state[row["name"]] = (row["last_value"],)
    return state


def judge_run(airflow: AirflowRest, sent: Sent, run_id: str) -> Iterator[str]:
    """Yield what is wrong with a run that has ended."""
    run = airflow.run(sent.dag, run_id)
    if run["state"] != "failed":
        yield f"the run is {run['state']}"
    if run["conf"] != json.loads(sent.encode())["conf"] or (run["note"] or "") != sent.fields.get("note", ""):
        yield f"the run was kept as {run['conf']!r}, note {run['note']!r}"
    tasks = airflow.tasks(sent.dag, run_id)
    for task in tasks:
        started = task["start_date"] is not None and task["try_number"] > 0
        yield from judge_task(airflow, sent.dag, run_id, task) if started else ()
    if not any(task["state"] == "failed" for task in tasks):
        yield "no task is red"


def judge_task(airflow: AirflowRest, dag: str, run_id: str, task: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a task that has ended: an error that is none of ours is tried again."""
    name, index = task["task_id"], task["map_index"]
    log = airflow.log(dag, run_id, name, index)
    if task["try_number"] != 1:
        yield f"{name} was tried {task['try_number']} times: {log[-300:]!r}"
    if task["state"] == "failed" and not re.search(r"^\w+Error: .{10,}", log, re.MULTILINE):
        yield f"the log of {name} names no error: {log[-300:]!r}"
    if "\x1b" in log:
        yield f"the log of {name} holds a raw ESC"
    shown = {"log": log, "rendered fields": task["rendered_fields"], "result": airflow.result(dag, run_id, name, index)}
    for where, text in shown.items():
        if RENDERED.search(str(text)):
            yield f"the {where} of {name} shows a rendered template"
