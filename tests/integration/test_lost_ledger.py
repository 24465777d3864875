"""A ledger that was lost or restored: every record that raw or Kafka held counts once."""

from __future__ import annotations

import pytest
from tests.integration.extras import accept_loss, produce, repair, sum_up
from tests.integration.lane import Lanes
from tests.integration.other_ledger import copy_ledger, make_ledger
from tests.integration.planted_failures import count_certified, expire, list_gaps
from tests.integration.program import run

from onceover.ledger.root import RootRefusedError
from onceover.model.pipeline import OFFSET_STORES

pytestmark = pytest.mark.stack
STORES = [
    pytest.param(store, marks=() if store in ("kafka", "postgres", "none") else pytest.mark.largest)
    for store in OFFSET_STORES
]


@pytest.mark.largest
@pytest.mark.rare
@pytest.mark.parametrize("store", STORES)
def test_ledger_restored_behind_the_log_counts_all(over: Lanes, monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    lane = over(store)
    produce(lane, range(50))
    lane.ingest()
    backup = copy_ledger()
    produce(lane, range(50, 100))
    lane.ingest()
    repair(lane)
    monkeypatch.setenv("ONCEOVER_POSTGRES", backup)
    expire(lane, 100)
    done = run("ledger", "take-root", lane.name, "--reason", "restored")
    assert done.returncode == 0, done.stderr
    lane.turn()
    assert list_gaps(lane) == [(50, 100, "expired")]
    accept_loss(lane, 50, 100)
    lane.ingest()
    repair(lane)
    assert (list_gaps(lane), lane.aggregates(), count_certified(lane)) == ([], sum_up(range(100)), 2)


@pytest.mark.largest
@pytest.mark.rare
@pytest.mark.parametrize("store", STORES)
def test_lost_ledger_is_refused_then_rebuilt_with_all_records(
    over: Lanes, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    lane = over(store)
    produce(lane, range(50))
    lane.ingest()
    expire(lane, 50)
    produce(lane, range(50, 100))
    monkeypatch.setenv("ONCEOVER_POSTGRES", make_ledger())
    with pytest.raises(RootRefusedError, match=f"onceover ledger rebuild {lane.name}"), lane.driver():
        pass
    lane.rebuild()
    lane.ingest()
    repair(lane)
    assert (lane.aggregates(), count_certified(lane)) == (sum_up(range(100)), 2)
