"""A client of Airflow's REST API: starts runs and backfills, waits for them with a deadline, reads and clears tasks.

The calls are those of the UI's forms, so that permissions and the audit log hold. Airflow's database is not touched.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from onceover.errors import TerminalError, TransientError, UnreachableError
from onceover_local.airflow_session import AirflowSession

_FINISHED = frozenset({"success", "failed"})
_TASK_FINISHED = _FINISHED | {"skipped", "upstream_failed", "removed"}

Json = dict[str, Any]
_P = ParamSpec("_P")
_R = TypeVar("_R")
_MAX_ROWS = 100_000
"""Of a list: a server that sends more is not Airflow."""


def _as_documented(
    call: Callable[Concatenate[AirflowRest, _P], _R],
) -> Callable[Concatenate[AirflowRest, _P], _R]:
    """Return the call with a TerminalError for every answer that has not the form that Airflow's API documents."""

    @wraps(call)
    def checked(self: AirflowRest, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return call(self, *args, **kwargs)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise TerminalError(
                f"Airflow at {self.address} did not answer as its API documents ({type(error).__name__} in "
                f"{call.__name__}); check that this is the address of an Airflow 3"
            ) from error

    return checked


class AirflowRest(AirflowSession):
    """One user's session with one Airflow. A call raises UnreachableError, or TerminalError with Airflow's message."""

    @_as_documented
    def healthy(self) -> bool:
        """Return whether metadata database, scheduler and DAG processor all report themselves healthy."""
        try:
            parts = self._send("GET", "/api/v2/monitor/health").json()
        except (UnreachableError, TerminalError):
            return False
        return all(
            parts.get(name, {}).get("status") == "healthy" for name in ("metadatabase", "scheduler", "dag_processor")
        )

    def wait_until_healthy(self, deadline_s: float) -> None:
        wait_for(self.healthy, deadline_s, f"Airflow at {self.address} to be healthy")

    @_as_documented
    def ensure_pool(self, name: str, slots: int, description: str) -> None:
        """Create the pool unless it exists: a task in a pool that does not exist never starts."""
        answer = self._send("GET", f"/api/v2/pools/{_part(name)}", allowed=(404,))
        if answer.status_code == 404:
            self._call("POST", "/api/v2/pools", {"name": name, "slots": slots, "description": description})

    @_as_documented
    def wait_for_dag(self, dag_id: str, deadline_s: float) -> None:
        """Wait until the DAG processor has read the DAG. Raises TransientError at the deadline."""

        def exists() -> bool:
            return self._send("GET", f"/api/v2/dags/{_part(dag_id)}", allowed=(404,)).status_code == 200

        wait_for(exists, deadline_s, f"Airflow to read the DAG {dag_id}")

    @_as_documented
    def choices(self, dag_id: str, param: str) -> list[Any]:
        """Return the choices that a DAG's form offers for a param; each parse of the DAG updates them."""
        details: Json = self._call("GET", f"/api/v2/dags/{_part(dag_id)}/details")["params"][param]
        return list(details["schema"].get("enum", ()))

    @_as_documented
    def wait_for_choice(self, dag_id: str, param: str, choice: str, deadline_s: float = 120) -> None:
        """Wait until the DAG's form offers the choice: Airflow refuses a run with a value that the form lacks, and
        parses each DAG at a time of its own. Raises TransientError at the deadline."""
        wait_for(lambda: choice in self.choices(dag_id, param), deadline_s, f"the form of {dag_id} to offer {choice}")

    @_as_documented
    def import_errors(self) -> list[Json]:
        errors: list[Json] = self._call("GET", "/api/v2/importErrors")["import_errors"]
        return errors

    @_as_documented
    def pause(self, dag_id: str, paused: bool) -> None:
        self._call("PATCH", f"/api/v2/dags/{_part(dag_id)}", {"is_paused": paused})

    @_as_documented
    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, logical_date: datetime | None = None) -> str:
        """Start a manual run and return its run id."""
        body = {"logical_date": logical_date.isoformat() if logical_date else None, "conf": dict(conf or {})}
        return str(self._call("POST", f"/api/v2/dags/{_part(dag_id)}/dagRuns", body)["dag_run_id"])

    @_as_documented
    def backfill(
        self,
        dag_id: str,
        first: datetime,
        last: datetime,
        conf: Mapping[str, Any] | None = None,
        *,
        reprocess: str = "none",
        max_active_runs: int = 1,
    ) -> int:
        """Start a backfill, both ends included, and return its id. `reprocess` is none, failed or completed."""
        body = {
            "dag_id": dag_id,
            "from_date": first.isoformat(),
            "to_date": last.isoformat(),
            "dag_run_conf": dict(conf or {}),
            "reprocess_behavior": reprocess,
            "max_active_runs": max_active_runs,
        }
        return int(self._call("POST", "/api/v2/backfills", body)["id"])

    @_as_documented
    def wait_for_backfill(self, backfill_id: int, deadline_s: float) -> Json:
        """Wait until the backfill is completed and return it; the states of its runs are in `runs`. Raises
        TransientError at the deadline."""
        last: Json = {}

        def completed() -> bool:
            last.update(self._call("GET", f"/api/v2/backfills/{backfill_id}"))
            return last.get("completed_at") is not None

        wait_for(completed, deadline_s, f"backfill {backfill_id} to be completed")
        return last

    @_as_documented
    def run(self, dag_id: str, run_id: str) -> Json:
        return self._call("GET", f"/api/v2/dags/{_part(dag_id)}/dagRuns/{_part(run_id)}")

    @_as_documented
    def runs(self, dag_id: str, run_type: str | None = None) -> list[Json]:
        """Return the DAG's runs, oldest first; `run_type` is manual, scheduled or backfill."""
        query = {"order_by": "run_after", "limit": 100, **({"run_type": run_type} if run_type else {})}
        return self._pages(f"/api/v2/dags/{_part(dag_id)}/dagRuns", "dag_runs", query)

    @_as_documented
    def wait_for_run(self, dag_id: str, run_id: str, deadline_s: float) -> Json:
        """Wait until the run has finished and return it; `state` is success or failed. Raises TransientError at the
        deadline, which names the DAG's unfinished runs."""
        last: Json = {}

        def finished() -> bool:
            last.update(self.run(dag_id, run_id))
            return last["state"] in _FINISHED

        try:
            wait_for(finished, deadline_s, f"run {run_id} of {dag_id} to finish")
        except TransientError as error:
            raise TransientError(f"{error}; {self._unfinished(dag_id)}" if last else str(error)) from error
        return last

    @_as_documented
    def tasks(self, dag_id: str, run_id: str) -> list[Json]:
        """Return the run's task instances, each mapped one: `task_id`, `map_index`, `state`, `start_date`, ..."""
        return self._pages(f"{_run_path(dag_id, run_id)}/taskInstances", "task_instances", {"limit": 100})

    @_as_documented
    def links(self, dag_id: str, run_id: str, task_id: str) -> Json:
        """Return the buttons of a task that has ended: their names, with what they open."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{_part(task_id)}/links"
        links: Json = self._call("GET", path)["extra_links"]
        return links

    @_as_documented
    def result(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> object:
        """Return the task's return value, None without one."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{_part(task_id)}/xcomEntries/return_value"
        answer = self._send("GET", path, query={"map_index": map_index}, allowed=(404,))
        if answer.status_code == 404:
            return None
        value = answer.json()["value"]
        return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value

    @_as_documented
    def log(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1, try_number: int = 1) -> str:
        """Return the task's log as text, one event per line, and below it the exceptions that it reports."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{_part(task_id)}/logs/{try_number}"
        content = self._call("GET", path, query={"map_index": map_index, "full_content": "true"})["content"]
        if isinstance(content, str):
            return content
        return "\n".join(map(_format_line, content))

    @_as_documented
    def clear(
        self, dag_id: str, run_id: str, task_ids: Sequence[str | tuple[str, int]], *, downstream: bool = True
    ) -> int:
        """Clear tasks of a run so that they run again; return their number."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": list(task_ids),
            "only_failed": False,
            "include_downstream": downstream,
            "reset_dag_runs": True,
        }
        return int(self._call("POST", f"/api/v2/dags/{_part(dag_id)}/clearTaskInstances", body)["total_entries"])

    def _unfinished(self, dag_id: str) -> str:
        """Return the DAG's unfinished runs and their unfinished tasks, in words."""
        parts: list[str] = []
        for run in self.runs(dag_id):
            if run["state"] not in _FINISHED:
                tasks = [t for t in self.tasks(dag_id, run["dag_run_id"]) if t["state"] not in _TASK_FINISHED]
                names = (f"{t['task_id']}[{t['map_index']}] {t['state']}, try {t['try_number']}" for t in tasks)
                parts.append(f"{run['dag_run_id']} is {run['state']}: {'; '.join(names)}")
        return ". ".join(parts)[:2_000] or "no run is unfinished now"

    def _pages(self, path: str, name: str, query: Mapping[str, Any]) -> list[Json]:
        rows: list[Json] = []
        while True:
            page = self._call("GET", path, query={**query, "offset": len(rows)})
            rows += page[name]
            if not page[name] or len(rows) >= page["total_entries"]:
                return rows
            if len(rows) > _MAX_ROWS:
                raise ValueError(f"more than {_MAX_ROWS} rows")

    def _call(self, method: str, path: str, body: Json | None = None, query: Mapping[str, Any] | None = None) -> Json:
        answer: Json = self._send(method, path, body, query).json()
        return answer


def _format_line(line: object) -> str:
    if not isinstance(line, dict):
        return str(line)
    errors = (f"{each.get('exc_type')}: {each.get('exc_value')}" for each in line.get("error_detail") or ())
    return "\n".join([str(line.get("event", line)), *errors])


def wait_for(done: Callable[[], bool], deadline_s: float, what: str, every_s: float = 0.5) -> None:
    """Wait until `done` returns true. Raises TransientError at the deadline; before it, `done` may raise one."""
    end = time.monotonic() + deadline_s
    while True:
        trouble = ""
        try:
            if done():
                return
        except TransientError as error:
            trouble = f"; last: {error}"
        if time.monotonic() >= end:
            raise TransientError(f"timed out after {deadline_s:.0f} s waiting for {what[:300]}{trouble[:500]}")
        time.sleep(every_s)


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{_part(dag_id)}/dagRuns/{_part(run_id)}"


def _part(text: str) -> str:
    return quote(text, safe="")
