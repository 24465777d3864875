"""What other DAGs hear of published windows: all that got new rows, at least once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bench import large_ledger
from bench.large_ledger import MINUTES, LargeLedger, start_of
from psycopg.types.json import Jsonb

from onceover.ledger import repair_requests
from onceover.ledger.database import Connection
from onceover.ledger.repair_requests import EAGER, EAGER_WHY
from onceover.ledger.repair_tries import mark_announced
from onceover.model.dag_run import DagRun
from onceover.model.window import WindowRange
from onceover.observability.announce import MAX_WINDOWS, build_announcements, collect_announcements

NAME = f"p{uuid.uuid4().hex[:10]}"
IN_AIRFLOW = DagRun("repair_on_call", "r1")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    """A pipeline whose windows alone wait to be announced, whatever other tests published: as far as the test sees."""
    built = large_ledger.build(connection, NAME, 20)
    with connection.transaction(force_rollback=True):
        connection.execute("UPDATE onceover.repair SET announced_at = clock_timestamp() WHERE announced_at IS NULL")
        yield built
    large_ledger.drop(connection, built)


def publish(
    connection: Connection,
    windows: range,
    state: str = "confirmed",
    *,
    rewritten: bool = True,
    who: str = "kim",
    dag_run: DagRun | None = IN_AIRFLOW,
    window_range: WindowRange | None = None,
    why: str = "INC-1",
) -> int:
    request = repair_requests.create_request(
        connection, NAME, who, why, {start_of(n): [] for n in windows}, dag_run=dag_run, window_range=window_range
    )
    sides = [
        Jsonb({"control": {"records": records}, "revision": revision})
        for records, revision in ((7, 0), (5, int(rewritten)))
    ]
    connection.execute(
        "UPDATE onceover.repair SET state = %s, before = %s, after = %s WHERE request_id = %s",
        [state, *sides, request],
    )
    return request


@pytest.mark.stack
def test_new_rows_are_announced_with_who_and_why(connection: Connection, ledger: LargeLedger) -> None:
    request = publish(connection, range(3, 5))
    publish(connection, range(5, 7), rewritten=False)

    (announced,) = collect_announcements(connection, "r1")

    changed = {"revision": 1, "before": 7, "after": 5}
    assert announced == {
        "pipeline": NAME,
        "by": "repair",
        "via": "DAG",
        "who": "kim",
        "reason": "INC-1",
        "request": request,
        "dag_id": "repair_on_call",
        "run_id": "r1",
        "windows": [
            {"start": "2025-01-01T00:15Z", "end": "2025-01-01T00:20Z", **changed},
            {"start": "2025-01-01T00:20Z", "end": "2025-01-01T00:25Z", **changed},
        ],
    }


@pytest.mark.stack
def test_ways_to_publish_are_told_apart(connection: Connection, ledger: LargeLedger) -> None:
    span = WindowRange(start_of(5), start_of(6), MINUTES)
    publish(connection, range(3, 4))
    publish(connection, range(4, 5), who=EAGER, dag_run=None, why=EAGER_WHY)
    publish(connection, range(5, 6), dag_run=None, window_range=span)
    publish(connection, range(6, 7), who=EAGER, dag_run=None)  # a person of that name, who asks for a reread
    publish(connection, range(7, 8), "restored", who=EAGER, dag_run=None)
    publish(connection, range(8, 9), "restored")

    heard = collect_announcements(connection, "r1")
    said = [(each["by"], each["via"]) for each in heard]

    assert said == [
        ("repair", "DAG"),
        ("repair", "ingest"),
        ("repair", "command line"),
        ("repair", "command line"),
        ("restore", "command line"),
        ("restore", "DAG"),
    ]


@pytest.mark.stack
def test_what_a_run_did_not_mark_is_announced_again(connection: Connection, ledger: LargeLedger) -> None:
    publish(connection, range(3, 4))
    first = collect_announcements(connection, "r1")
    publish(connection, range(4, 5), "restored")

    again = collect_announcements(connection, "r2")

    assert [each["by"] for each in again] == ["repair", "restore"]
    assert again[:1] == first
    assert mark_announced(connection, "r1") == 0, "the first run marks no window that a later one announced"
    assert mark_announced(connection, "r2") == 2
    assert collect_announcements(connection, "r3") == []


def test_large_request_has_several_announcements() -> None:
    def row(number: int, request: int) -> dict[str, Any]:
        start = NOON + number * timedelta(minutes=5)
        of_request = {"request_id": request, "who": "kim", "why": "x", "dag_id": None, "run_id": None, "via": "DAG"}
        of_window = {"start": start, "end": start, "revision": 1, "before": None, "after": 1}
        return {"pipeline": "things", "state": "published", **of_request, **of_window}

    rows = [row(number, 1) for number in range(MAX_WINDOWS + 1)] + [row(0, 2)]

    announced = list(build_announcements(rows))

    assert [len(each["windows"]) for each in announced] == [MAX_WINDOWS, 1, 1]
    assert [each["request"] for each in announced] == [1, 1, 2]
    assert list(build_announcements([])) == []
