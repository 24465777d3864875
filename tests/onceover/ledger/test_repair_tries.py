"""Tries that publish nothing: what another process or a person did meanwhile stays, and no window of a log that was not
compared is certified."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from bench.large_ledger import LargeLedger, start_of
from tests.onceover.ledger.driven_pipeline import change_window

from onceover.errors import FencedError
from onceover.ledger import claims, repair_requests, repair_tries
from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.database import Connection
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.repair.publish import publish

pytestmark = pytest.mark.stack
NAME = "tried"


def claim(connection: Connection) -> tuple[repair_requests.RepairRequest, ClaimedWindow]:
    request_id = repair_requests.create_request(connection, NAME, "kim", "a test", {start_of(3): []})
    request = repair_requests.read_request(connection, NAME, request_id)
    (claimed,), _ = claims.claim(connection, request)
    return request, claimed


def read_rows(connection: Connection, ledger: LargeLedger) -> list[Any]:
    return connection.execute(f"SELECT * FROM aggregates.{NAME} WHERE window_start = %s", [start_of(3)]).fetchall()


def test_stage_cleared_while_it_is_published_empties_no_window(
    connection: Connection, ledger: LargeLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_rows(connection, ledger)
    request, claimed = claim(connection)
    ledger.known.table.stage(connection, request.stage, [f"{start_of(3).isoformat()}\ta\t5"])
    keep = AggregateTable.keep

    def keep_and_clear(table: AggregateTable, open_one: Connection, start: datetime, revision: int) -> None:
        keep(table, open_one, start, revision)
        table.unstage(open_one, request.stage)

    monkeypatch.setattr(AggregateTable, "keep", keep_and_clear)
    digest = Digest(5, 1, 2, 3, 4)
    held = RebuiltRange(OffsetRange(KafkaPartition("0a1b2c3d", 0), 0, 5), digest)
    with pytest.raises(FencedError, match="another process has cleared the stage, nothing is published"):
        publish(connection, ledger.known, request, claimed, RebuiltWindow(digest, 5, 90, (held,)))
    assert read_rows(connection, ledger) == before != []


def test_failed_try_lifts_no_block_of_a_person(connection: Connection, ledger: LargeLedger) -> None:
    _, claimed = claim(connection)
    change_window(connection, NAME, start_of(3), "blocked_at = now(), blocked_why = 'restored'")
    assert not repair_tries.record_failed_try(connection, ledger.known, claimed, "no proof", max_tries=3)
    (row,) = connection.execute(
        'SELECT tries, blocked_at, blocked_why FROM onceover."window" WHERE pipeline = %s AND window_start = %s',
        [NAME, start_of(3)],
    ).fetchall()
    assert (row["tries"], row["blocked_why"]) == (1, "restored")
    assert row["blocked_at"] is not None


@pytest.mark.usefixtures("ledger")
def test_uncompared_log_leaves_what_would_be_certified(connection: Connection) -> None:
    request_id = repair_requests.create_request(connection, NAME, "kim", "a test", {start_of(3): []})
    asked = repair_requests.read_request(connection, NAME, request_id)
    claimed, _ = claims.claim(connection, asked, is_compared=False)
    assert claimed == []
    rows = connection.execute(
        "SELECT window_start, state, reason FROM onceover.repair WHERE request_id = %s", [request_id]
    ).fetchall()
    assert [(row["window_start"], row["state"]) for row in rows] == [(start_of(3), "left")]
    assert "was not compared" in rows[0]["reason"]
