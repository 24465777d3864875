"""A repair of a log that was not compared with what landed: it certifies no window."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of

from onceover.ledger import repair_requests
from onceover.ledger.database import Connection

pytestmark = pytest.mark.stack
NAME = "gated"


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, NAME, 10, rows=True)
    yield built
    large_ledger.drop(connection, built)


@pytest.mark.usefixtures("ledger")
def test_uncompared_log_leaves_what_would_be_certified(connection: Connection) -> None:
    request_id = repair_requests.create_request(connection, NAME, "kim", "a test", {start_of(3): []})
    asked = repair_requests.read_request(connection, NAME, request_id)
    claimed, _ = repair_requests.claim(connection, asked, is_compared=False)
    assert claimed == []
    rows = connection.execute(
        "SELECT window_start, state, reason FROM onceover.repair WHERE request_id = %s", [request_id]
    ).fetchall()
    assert [(row["window_start"], row["state"]) for row in rows] == [(start_of(3), "left")]
    assert "was not compared" in rows[0]["reason"]
