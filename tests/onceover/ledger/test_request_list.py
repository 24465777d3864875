"""Requests are listed by how far they are, cancelled, and continued after a kill."""

from __future__ import annotations

import pytest
from bench.large_ledger import LargeLedger, start_of
from psycopg import sql

from onceover.errors import UsageError
from onceover.ledger import claims, repair_requests
from onceover.ledger.actions import record_action
from onceover.ledger.claims import clear_dead_stages
from onceover.ledger.database import Connection
from onceover.ledger.repair_requests import cancel_request, find_killed, find_queued, list_requests
from onceover.model.claim import ClaimedWindow
from onceover.model.dag_run import DagRun
from onceover.model.window import WindowRange

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("ledger")]
NAME = "asked"
RANGE = WindowRange(start_of(0), start_of(4))


def ask(connection: Connection, dag_run: DagRun | None = None, *, continued: int | None = None) -> int:
    """Request four windows by force."""
    windows = {start_of(n): () for n in range(4)}
    return repair_requests.create_request(
        connection, NAME, "kim", "INC-1", windows, dag_run=dag_run, window_range=RANGE, forced=True, continued=continued
    )


def claim(connection: Connection, request: int) -> list[ClaimedWindow]:
    return claims.claim(connection, repair_requests.read_request(connection, NAME, request))[0]


def set_states(connection: Connection, request: int, state: str, *windows: int) -> None:
    connection.execute(
        "UPDATE onceover.repair SET state = %s WHERE request_id = %s AND window_start = ANY(%s)",
        [state, request, [start_of(n) for n in windows]],
    )


def count_states(connection: Connection, request: int) -> dict[str, int]:
    rows = connection.execute(
        "SELECT state, count(*) AS n FROM onceover.repair WHERE request_id = %s GROUP BY 1", [request]
    )
    return {row["state"]: row["n"] for row in rows}


def list_states(connection: Connection, *, every: bool = False) -> list[tuple[int, str, int, int]]:
    rows = list_requests(connection, NAME, every=every)
    return [(row["request_id"], row["state"], row["waiting"], row["repaired"]) for row in rows]


def test_requests_are_listed_by_how_far_they_are(connection: Connection) -> None:
    first, second = ask(connection), ask(connection)
    set_states(connection, first, "confirmed", 0, 1)
    assert list_states(connection) == [(first, "waiting", 2, 2), (second, "waiting", 4, 0)]
    claimed = claim(connection, second)
    assert list_states(connection)[1] == (second, "running", 4, 0)
    claims.drop_claims(connection, NAME, claimed)
    set_states(connection, second, "confirmed", 0, 1, 2, 3)
    assert list_states(connection) == [(first, "waiting", 2, 2)]
    assert list_states(connection, every=True)[1] == (second, "ended", 0, 4)


def test_window_that_was_certified_since_waits_for_no_repair(connection: Connection) -> None:
    request = ask(connection)
    connection.execute(
        "UPDATE onceover.certificate SET created_at = clock_timestamp() WHERE pipeline = %s AND window_start = ANY(%s)",
        [NAME, [start_of(n) for n in range(4)]],
    )
    assert list_states(connection) == []
    assert list_states(connection, every=True) == [(request, "ended", 0, 0)]


def test_cancelled_request_leaves_what_waits_and_keeps_the_rest(connection: Connection) -> None:
    request = ask(connection)
    set_states(connection, request, "confirmed", 0)
    assert cancel_request(connection, NAME, request, "ada", "the wrong month") == 3
    assert count_states(connection, request) == {"confirmed": 1, "cancelled": 3}
    assert claim(connection, request) == [], "a repair that runs claims nothing more of it"
    assert cancel_request(connection, NAME, request, "bob", "again") == 0
    (row,) = list_requests(connection, NAME, only=request)
    assert (row["state"], row["cancelled_by"], row["cancelled_why"]) == ("cancelled", "ada", "the wrong month")


def test_cancellation_leaves_held_windows_to_their_repair(connection: Connection) -> None:
    request = ask(connection)
    claimed = claim(connection, request)
    assert cancel_request(connection, NAME, request, "ada", "too slow") == 0
    assert count_states(connection, request) == {"claimed": 4}
    claims.drop_claims(connection, NAME, claimed)
    assert cancel_request(connection, NAME, request, "ada", "too slow") == 4, "that repair has died"


def test_unknown_request_is_refused_with_the_list(connection: Connection) -> None:
    with pytest.raises(UsageError, match=r"pipeline asked has no repair request 0; list them with `onceover requests"):
        cancel_request(connection, NAME, 0, "ada", "typed wrong")


def test_killed_forced_repair_goes_on_where_it_was(connection: Connection) -> None:
    asked = ("kim", "INC-1", RANGE)
    assert find_killed(connection, NAME, *asked) is None
    request = ask(connection)
    set_states(connection, request, "confirmed", 0, 1)
    connection.execute(
        "UPDATE onceover.certificate c SET repair_id = r.repair_id FROM onceover.repair r WHERE r.request_id = %s "
        "AND r.state = 'confirmed' AND c.pipeline = r.pipeline AND c.window_start = r.window_start",
        [request],
    )
    set_states(connection, request, "claimed", 2)
    assert find_killed(connection, NAME, *asked) == (request, frozenset({start_of(0), start_of(1)}))
    assert find_killed(connection, NAME, "ada", "INC-1", RANGE) is None, "of another person"
    assert find_killed(connection, NAME, "kim", "INC-2", RANGE) is None, "for another reason"

    windows = {start_of(n): () for n in (2, 3)}
    assert repair_requests.create_request(connection, NAME, "kim", "INC-1", windows, continued=request) == request
    assert count_states(connection, request) == {"confirmed": 2, "planned": 2}
    set_states(connection, request, "confirmed", 2, 3)
    assert find_killed(connection, NAME, *asked) is None, "it has ended: asked again, all is rebuilt"
    set_states(connection, request, "published", 3)
    assert find_killed(connection, NAME, *asked) is None, "its window changed before it was confirmed"


def test_continued_request_keeps_its_replaced_revision(connection: Connection) -> None:
    request = ask(connection)
    connection.execute(
        "UPDATE onceover.repair SET state = 'published', before = '{\"revision\": 0}', after = '{\"revision\": 1}' "
        "WHERE request_id = %s AND window_start = %s",
        [request, start_of(0)],
    )
    repair_requests.create_request(connection, NAME, "kim", "INC-1", {start_of(0): ()}, continued=request)
    assert count_states(connection, request) == {"published": 1, "planned": 3}


def test_request_of_a_run_that_still_waits_is_queued(connection: Connection) -> None:
    earlier, now = DagRun("repair_failed_windows", "earlier"), DagRun("repair_failed_windows", "now")
    request = ask(connection, earlier)
    assert find_queued(connection, NAME, now, lambda run: run == earlier) == request
    assert find_queued(connection, NAME, now, lambda _: False) is None, "a run that ended repairs nothing more"
    assert find_queued(connection, NAME, earlier, lambda _: True) is None, "its own"
    assert find_queued(connection, NAME, DagRun("repair_on_call", "now"), lambda _: True) is None
    set_states(connection, request, "confirmed", 0, 1, 2, 3)
    assert find_queued(connection, NAME, now, lambda _: True) is None


def test_rows_that_killed_repairs_staged_are_cleared(connection: Connection, ledger: LargeLedger) -> None:
    table, request = ledger.known.table, ask(connection)
    claimed = claim(connection, request)
    audits = [record_action(connection, NAME, "audit window", "kim", None, {}) for _ in range(2)]
    connection.execute(
        "UPDATE onceover.action SET created_at = created_at - interval '2 days' WHERE action_id = %s", audits[:1]
    )
    stages = [f"request:{request}:a", f"request:{request}0:b", "batch:1", *(f"audit:{number}" for number in audits)]
    for stage in stages:
        table.stage(connection, stage, [f"{start_of(0).isoformat()}\ta\t5"])

    def list_stages() -> list[str]:
        rows = connection.execute(sql.SQL("SELECT DISTINCT _stage FROM {} ORDER BY 1").format(table.staging))
        return [row["_stage"] for row in rows]

    clear_dead_stages(connection, ledger.known)
    alive = [f"audit:{audits[1]}", "batch:1"]
    assert list_stages() == [*alive, f"request:{request}:a"], "the claim of its request is alive"
    claims.drop_claims(connection, NAME, claimed)
    clear_dead_stages(connection, ledger.known)
    assert list_stages() == alive
