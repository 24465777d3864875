"""What other DAGs hear of published windows: all that got new rows, at least once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of
from psycopg.types.json import Jsonb

from onceover.ledger import announcements, repair_requests
from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.announcements import is_due, mark_announced
from onceover.ledger.certificates import Certificate, certify
from onceover.ledger.database import Connection
from onceover.ledger.repair_requests import EAGER, EAGER_WHY
from onceover.model.dag_run import DagRun
from onceover.model.digest import Digest
from onceover.model.window import WindowRange
from onceover.observability.announce import collect_announcements

NAME = f"p{uuid.uuid4().hex[:10]}"
IN_AIRFLOW = DagRun("repair_on_call", "r1")


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    """A pipeline of two days, each window of which is certified."""
    built = large_ledger.build(connection, NAME, 300)
    with connection.transaction(force_rollback=True):
        yield built
    large_ledger.drop(connection, built)


def mark_all(connection: Connection) -> None:
    collect(connection, "earlier")
    mark_announced(connection, "earlier")


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
        "UPDATE onceover.repair SET state = %s, before = %s, after = %s, finished_at = statement_timestamp() "
        "WHERE request_id = %s",
        [state, *sides, request],
    )
    return request


def collect(connection: Connection, run: str = "r1") -> list[Mapping[str, Any]]:
    return collect_announcements(connection, run, [NAME])


def read_window(connection: Connection, window: int) -> Mapping[str, Any]:
    query = 'SELECT * FROM onceover."window" WHERE pipeline = %s AND window_start = %s'
    (row,) = connection.execute(query, [NAME, start_of(window)])
    return cast(Mapping[str, Any], row)


def certify_again(
    connection: Connection, ledger: LargeLedger, window: int, aggregates: Fingerprint, **more: Any
) -> int:
    """Certify the window as it is, with these rows; return the certificate's number."""
    version = read_window(connection, window)["version"]
    stated = Certificate(start_of(window), version, (), 0, Digest(9), aggregates, "scheduler", "detected", **more)
    return certify(connection, ledger.known, stated)


@pytest.mark.stack
def test_day_is_announced_with_windows_who_and_why(connection: Connection, ledger: LargeLedger) -> None:
    request = publish(connection, range(3, 5))
    publish(connection, range(5, 7), rewritten=False)

    announced = collect(connection)

    changed = {"revision": 1, "verdict": "exact", "before": 7, "after": 5}
    certificates = [{"certificate": read_window(connection, window)["certificate_id"]} for window in (3, 4)]
    of_request = {
        "pipeline": NAME,
        "by": "repair",
        "via": "DAG",
        "who": "kim",
        "reason": "INC-1",
        "request": request,
        "dag_id": "repair_on_call",
        "run_id": "r1",
        "windows": [
            {"start": "2025-01-01T00:15Z", "end": "2025-01-01T00:20Z", **changed, **certificates[0]},
            {"start": "2025-01-01T00:20Z", "end": "2025-01-01T00:25Z", **changed, **certificates[1]},
        ],
    }
    assert announced == [{"pipeline": NAME, "day": "2025-01-01", "published": [of_request]}]


@pytest.mark.stack
def test_each_day_in_utc_has_an_announcement(connection: Connection, ledger: LargeLedger) -> None:
    publish(connection, range(286, 290))
    connection.execute("SET LOCAL TIME ZONE 'America/Los_Angeles'")

    announced = collect(connection)

    starts = [[window["start"] for window in each["published"][0]["windows"]] for each in announced]
    assert [each["day"] for each in announced] == ["2025-01-01", "2025-01-02"]
    assert starts == [["2025-01-01T23:50Z", "2025-01-01T23:55Z"], ["2025-01-02T00:00Z", "2025-01-02T00:05Z"]]


@pytest.mark.stack
def test_other_pipelines_days_are_not_offered(connection: Connection, ledger: LargeLedger) -> None:
    publish(connection, range(3, 4))

    assert collect_announcements(connection, "r1", ["other"]) == []
    assert [is_due(connection, names) for names in ([], ["other"], ["other", NAME])] == [False, False, True]


@pytest.mark.stack
def test_late_records_are_announced_without_a_repair(connection: Connection, ledger: LargeLedger) -> None:
    first = certify_again(connection, ledger, 3, Fingerprint(1, "a"))
    mark_all(connection)
    certify_again(connection, ledger, 3, Fingerprint(1, "a"))
    assert collect(connection) == [], "the same rows"

    late = certify_again(connection, ledger, 3, Fingerprint(1, "b"))
    certify_again(connection, ledger, 4, Fingerprint(1, "b"), are_rows_replaced=True)  # its repair announces it

    ((announced,),) = (each["published"] for each in collect(connection))
    (window,) = announced["windows"]
    assert (announced["by"], announced["via"], announced["who"]) == ("late records", "ingest", "scheduler")
    assert (window["start"], window["certificate"], window["revision"]) == ("2025-01-01T00:15Z", late, 0)
    assert late > first


@pytest.mark.stack
def test_first_certificate_is_no_announcement(connection: Connection, ledger: LargeLedger) -> None:
    connection.execute(
        'UPDATE onceover."window" SET certificate_id = NULL WHERE pipeline = %s AND window_start = %s',
        [NAME, start_of(3)],
    )
    connection.execute(
        "DELETE FROM onceover.certificate WHERE pipeline = %s AND window_start = %s", [NAME, start_of(3)]
    )

    certify_again(connection, ledger, 3, Fingerprint(1, "a"))

    assert collect(connection) == []


@pytest.mark.stack
def test_uncertified_window_is_announced_without_certificate(connection: Connection, ledger: LargeLedger) -> None:
    publish(connection, range(3, 4), "restored")
    connection.execute('UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s', [NAME])

    ((announced,),) = (each["published"] for each in collect(connection))

    (window,) = announced["windows"]
    assert (announced["by"], window["revision"], window["certificate"]) == ("restore", 1, None)


@pytest.mark.stack
def test_day_waits_for_its_repairs_for_an_hour(connection: Connection, ledger: LargeLedger) -> None:
    publish(connection, range(3, 4))
    publish(connection, range(290, 291))
    repair_requests.create_request(connection, NAME, "kim", "INC-2", {start_of(9): []})

    assert [each["day"] for each in collect(connection)] == ["2025-01-02"]
    connection.execute(
        "UPDATE onceover.repair SET finished_at = finished_at - interval '61 minutes' WHERE pipeline = %s", [NAME]
    )
    assert [each["day"] for each in collect(connection)] == ["2025-01-01", "2025-01-02"]


@pytest.mark.stack
def test_day_is_offered_whole_and_the_rest_later(connection: Connection, ledger: LargeLedger) -> None:
    publish(connection, range(280, 292))
    mark_all(connection)
    publish(connection, range(280, 292))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(announcements, "MAX_WINDOWS", 1)
        first = collect(connection)
    assert [(each["day"], len(each["published"][0]["windows"])) for each in first] == [("2025-01-01", 8)]
    mark_announced(connection, "r1")

    assert is_due(connection, [NAME])
    assert [(each["day"], len(each["published"][0]["windows"])) for each in collect(connection)] == [("2025-01-02", 4)]


@pytest.mark.stack
def test_ways_to_publish_are_told_apart(connection: Connection, ledger: LargeLedger) -> None:
    span = WindowRange(start_of(5), start_of(6))
    publish(connection, range(3, 4))
    publish(connection, range(4, 5), who=EAGER, dag_run=None, why=EAGER_WHY)
    publish(connection, range(5, 6), dag_run=None, window_range=span)
    publish(connection, range(6, 7), who=EAGER, dag_run=None)  # a person of that name, who asks for a reread
    publish(connection, range(7, 8), "restored", who=EAGER, dag_run=None)
    publish(connection, range(8, 9), "restored")

    (of_day,) = collect(connection)
    said = [(each["by"], each["via"]) for each in of_day["published"]]

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
    certify_again(connection, ledger, 4, Fingerprint(1, "b"))
    (first,) = collect(connection)
    publish(connection, range(4, 5), "restored")

    (again,) = collect(connection, "r2")

    assert [each["by"] for each in again["published"]] == ["repair", "restore", "late records"]
    assert again["published"][0] == first["published"][0]
    assert mark_announced(connection, "r1") == 0, "the first run marks no window that a later one announced"
    assert mark_announced(connection, "r2") == 3
    assert collect(connection, "r3") == []
