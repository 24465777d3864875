"""The landings of claimed windows name their batches, by which offsets that two batches landed are known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of

from onceover.ledger import repair_requests
from onceover.ledger.database import Connection
from onceover.repair.shared_ranges import find_shared

pytestmark = pytest.mark.stack
NAME = "landed"


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, NAME, 10)
    yield built
    large_ledger.drop(connection, built)


def test_claimed_landings_name_their_batches(connection: Connection, ledger: LargeLedger) -> None:
    asked = repair_requests.create_request(connection, NAME, "kim", "a test", {start_of(n): [] for n in (3, 4)})
    claimed, _ = repair_requests.claim(connection, repair_requests.read_request(connection, NAME, asked))
    named = {landing.landing_id: landing.batch_id for window in claimed for landing in window.landings}
    rows = connection.execute(
        "SELECT landing_id, batch_id FROM onceover.landing WHERE pipeline = %s AND window_start = ANY(%s)",
        [NAME, [start_of(3), start_of(4)]],
    )
    assert named == {row["landing_id"]: row["batch_id"] for row in rows}
    assert len(set(named.values())) < len(named), "some batches landed in both windows"
    assert find_shared(claimed) == ()
