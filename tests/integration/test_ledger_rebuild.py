"""The ledger lost whole or restored: rebuilt from raw it has the same windows, counts and digests, each record once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.integration.events import event
from tests.integration.extras import accept_loss, produce, repair, require_counted
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import copy_ledger, make_ledger
from tests.integration.planted_failures import expire, list_gaps, read_certificates, replay
from tests.integration.program import as_json, succeed

from onceover.config.endpoints import address
from onceover.errors import UsageError
from onceover.ledger.database import connect
from onceover.ledger.root import RootRefusedError
from onceover.model.pipeline import OFFSET_STORES

pytestmark = [pytest.mark.stack, pytest.mark.rare]


def certify(lane: Lane) -> Mapping[Any, tuple[Any, ...]]:
    lane.ingest()
    if (request_id := lane.detect().request_id) is not None:
        lane.repair(request_id)
    return read_certificates(lane)


def test_lost_ledger_is_rebuilt_from_raw_and_certifies_the_same(lanes: Lanes) -> None:
    lane = lanes(partitions=2, most=40)
    for kafka_partition in (0, 1):
        lane.produce([event(n, amount=n) for n in range(60)], kafka_partition)
        lane.produce([b"rubbish", event(3, kind="late")], kafka_partition)
    replay(lane)  # a batch landed twice: raw holds every line of it twice
    before, aggregates, raw = certify(lane), lane.aggregates(), lane.raw()
    assert len(before) == 12
    with pytest.raises(UsageError, match="landed batches"):
        lane.rebuild()
    with connect(address("postgres"), "test") as ledger:
        ledger.execute("DROP SCHEMA onceover CASCADE")
        ledger.execute(f"UPDATE aggregates.{lane.name} SET events = events + 1")
    found = as_json("ledger", "rebuild", lane.name)
    assert (found["windows"], found["records"], found["holes"]) == (12, 124, [])
    assert (found["files"], found["landings"]) == (13, 13), "a window's file is one landing, quarantine another"
    assert certify(lane) == before
    assert lane.aggregates() == aggregates
    assert lane.raw() == raw, "what the log holds too is not read again"
    with pytest.raises(UsageError, match="landed batches"):
        lane.rebuild()
    assert lane.audit()["equal"]


STORES = [
    pytest.param(store, marks=() if store in ("kafka", "postgres", "none") else pytest.mark.largest)
    for store in OFFSET_STORES
]


@pytest.mark.largest
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
    succeed("ledger", "take-root", lane.name, "--reason", "restored")
    lane.turn()
    assert list_gaps(lane) == [(50, 100, "expired")]
    accept_loss(lane, 50, 100)
    lane.ingest()
    require_counted(lane, range(100))
    assert list_gaps(lane) == []


@pytest.mark.largest
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
    require_counted(lane, range(100))
