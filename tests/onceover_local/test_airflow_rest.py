"""The REST client, against a small server that answers as Airflow does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from onceover.errors import TerminalError, TransientError, UnreachableError
from onceover_local.airflow_rest import AirflowRest, wait_for

RUN_ID = "manual__2013-01-01T05:00:00+00:00"


class Airflow(ThreadingHTTPServer):
    """Remembers every request; answers what a test laid down for `METHOD path`, the last of them for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str, Any, str | None]] = []
        self.answers: dict[str, list[tuple[int, Any]]] = {"POST /auth/token": [(201, {"access_token": "t1"})]}

    def lay(self, call: str, *answers: tuple[int, Any]) -> None:
        self.answers[call] = list(answers)


class Handler(BaseHTTPRequestHandler):
    server: Airflow

    def _answer(self) -> None:
        path = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else parse_qs(path.query)
        self.server.seen.append((self.command, path.path, body, self.headers.get("Authorization")))
        left = self.server.answers.get(f"{self.command} {path.path}", [(404, {"detail": "not there"})])
        status, answer = left.pop(0) if len(left) > 1 else left[0]
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def airflow() -> Iterator[Airflow]:
    with Airflow() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def client(airflow: Airflow) -> Iterator[AirflowRest]:
    rest = AirflowRest(f"http://127.0.0.1:{airflow.server_port}/", "admin", "hush")
    yield rest
    rest.close()


def test_backfill_is_what_the_form_sends(airflow: Airflow, client: AirflowRest) -> None:
    airflow.lay("POST /api/v2/backfills", (200, {"id": 4}))
    days = datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC)

    assert client.backfill("repair_history", *days, {"pipeline": "flights"}, reprocess="completed") == 4

    assert airflow.seen[-1][2] == {
        "dag_id": "repair_history",
        "from_date": "2013-01-01T00:00:00+00:00",
        "to_date": "2013-01-03T00:00:00+00:00",
        "dag_run_conf": {"pipeline": "flights"},
        "reprocess_behavior": "completed",
        "max_active_runs": 1,
    }


def test_expired_token_is_renewed_once(airflow: Airflow, client: AirflowRest) -> None:
    airflow.lay("POST /auth/token", (201, {"access_token": "t1"}), (201, {"access_token": "t2"}))
    airflow.lay("GET /api/v2/backfills/4", (401, {"detail": "expired"}), (200, {"completed_at": "now"}))

    assert client.wait_for_backfill(4, 5)["completed_at"] == "now"

    assert [seen[3] for seen in airflow.seen if seen[0] == "GET"] == ["Bearer t1", "Bearer t2"]


def test_refusal_keeps_airflows_words_and_no_password(airflow: Airflow, client: AirflowRest) -> None:
    airflow.lay(
        "POST /api/v2/dags/repair_on_call/dagRuns",
        (400, {"detail": "Invalid input for param pipeline\n\nFailed validating ..."}),
    )

    with pytest.raises(TerminalError, match="Invalid input for param pipeline") as refused:
        client.trigger("repair_on_call")

    assert "hush" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_wrong_password_is_reported_in_one_line(airflow: Airflow, client: AirflowRest) -> None:
    airflow.lay("POST /auth/token", (401, {"detail": "Invalid credentials"}))

    with pytest.raises(TerminalError, match="refuses the login of 'admin'"):
        client.import_errors()


def test_run_that_misses_its_deadline_is_reported_with_blockers(airflow: Airflow, client: AirflowRest) -> None:
    path = "/api/v2/dags/d/dagRuns"
    runs = [{"dag_run_id": "old", "state": "success"}, {"dag_run_id": "first", "state": "running"},
            {"dag_run_id": RUN_ID, "state": "queued"}]  # fmt: skip
    tasks = [{"task_id": "detect", "map_index": 0, "state": "success", "try_number": 1},
             {"task_id": "repair", "map_index": 0, "state": "up_for_retry", "try_number": 2}]  # fmt: skip
    airflow.lay(f"GET {path}", (200, {"dag_runs": runs, "total_entries": 3}))
    airflow.lay(f"GET {path}/manual__2013-01-01T05%3A00%3A00%2B00%3A00", (200, runs[2]))
    airflow.lay(f"GET {path}/first/taskInstances", (200, {"task_instances": tasks, "total_entries": 2}))
    of_run = f"{path}/manual__2013-01-01T05%3A00%3A00%2B00%3A00/taskInstances"
    airflow.lay(f"GET {of_run}", (200, {"task_instances": [], "total_entries": 0}))

    with pytest.raises(
        TransientError, match=r"to finish; first is running: repair\[0\] up_for_retry, try 2\. manual__"
    ):
        client.wait_for_run("d", RUN_ID, 0)


def test_wait_ends_at_its_deadline(airflow: Airflow, client: AirflowRest) -> None:
    airflow.lay("GET /api/v2/backfills/4", (200, {"completed_at": None}))

    with pytest.raises(TransientError, match="waiting for backfill 4 to be completed"):
        client.wait_for_backfill(4, 0)


def test_pages_are_all_read(airflow: Airflow, client: AirflowRest) -> None:
    pages = [{"dag_runs": [{"dag_run_id": name}], "total_entries": 2} for name in ("a", "b")]
    airflow.lay("GET /api/v2/dags/d/dagRuns", *((200, page) for page in pages))

    assert [run["dag_run_id"] for run in client.runs("d", "backfill")] == ["a", "b"]
    assert airflow.seen[-1][2] == {
        "order_by": ["run_after"],
        "limit": ["100"],
        "run_type": ["backfill"],
        "offset": ["1"],
    }


def test_existing_pool_keeps_its_slots(airflow: Airflow, client: AirflowRest) -> None:
    airflow.lay("GET /api/v2/pools/onceover_spark", (404, {}), (200, {"slots": 3}))
    airflow.lay("POST /api/v2/pools", (201, {}))

    client.ensure_pool("onceover_spark", 1, "one Spark application at a time")
    client.ensure_pool("onceover_spark", 1, "one Spark application at a time")

    assert [body for method, path, body, _ in airflow.seen if path == "/api/v2/pools" and method == "POST"] == [
        {"name": "onceover_spark", "slots": 1, "description": "one Spark application at a time"}
    ]


def test_missing_result_is_none(airflow: Airflow, client: AirflowRest) -> None:
    path = "/api/v2/dags/d/dagRuns/r/taskInstances/windows.detect/xcomEntries/return_value"
    airflow.lay(f"GET {path}", (404, {}), (200, {"value": '{"request_id": 7}'}))

    assert client.result("d", "r", "windows.detect", 0) is None
    assert client.result("d", "r", "windows.detect", 0) == {"request_id": 7}


def test_missing_airflow_is_unreachable_and_not_healthy() -> None:
    rest = AirflowRest("http://127.0.0.1:1", "admin", "hush")

    assert not rest.healthy()
    with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:1 does not answer"):
        rest.import_errors()
    rest.close()


def test_wait_tolerates_a_server_that_is_starting() -> None:
    tries = iter(["starting", "busy", "done"])

    def done() -> bool:
        state = next(tries)
        if state == "starting":
            raise UnreachableError("not yet")
        return state == "done"

    wait_for(done, 5, "it", every_s=0)
