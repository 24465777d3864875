"""The transactional sink on the real parts: no step of a batch at which a kill makes a window wrong."""

from __future__ import annotations

import re

import pytest
from tests.integration.events import event
from tests.integration.kills import MISCOUNTED, TRANSACTIONAL, find_kinds, ingest_under_kills, kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import lose_ledger

from onceover.errors import TransientError, UsageError
from onceover.fault_points import Step
from onceover.ledger import landed_offsets
from onceover.model.finding_kinds import Kind
from onceover.model.pipeline import OFFSET_STORES

pytestmark = pytest.mark.stack


def require_right(lane: Lane, sent: int) -> None:
    assert lane.aggregates() == {(0.0, "a"): (sent // 2, sent // 2, 1), (5.0, "a"): (sent // 2, sent // 2, 1)}
    assert set(lane.ids()) == lane.log().keys()


def marks_of(store: str) -> tuple[pytest.MarkDecorator, ...]:
    if store == "kafka":
        return ()
    return (pytest.mark.rare if store in ("postgres", "none", "file") else pytest.mark.largest,)


@pytest.mark.parametrize("store", [pytest.param(store, marks=marks_of(store)) for store in OFFSET_STORES])
def test_transactional_sink_counts_once_whenever_it_is_killed(over: Lanes, store: str) -> None:
    lane = over(store, more=TRANSACTIONAL)
    sent = ingest_under_kills(lane)
    require_right(lane, sent)
    assert not find_kinds(lane) & MISCOUNTED, "nothing has landed or was counted twice"
    assert find_kinds(lane) == {Kind.UNACCOUNTED_BYTES}, "lines of killed appends wait in raw for a repair"
    detection = lane.detect()
    assert len(lane.repair(detection.request_id).confirmed) == 2
    require_right(lane, sent)


def test_transactional_sink_skips_what_a_store_forgot(lanes: Lanes) -> None:
    lane = lanes(more=TRANSACTIONAL)
    lane.land([event(n) for n in range(10)])
    with lane.driver() as driver:
        driver._offsets.store.save({0: 3}, "")  # another consumer of the group went back
        assert driver.turn().batch_id is None
        assert driver._offsets.store.load([0]).offsets == {0: 10}
    require_right(lane, 10)
    with pytest.raises(UsageError, match=r"0=3 lies before the stored offset 10, and the sink .* is transactional"):
        lane.set_offsets({0: 3})


@pytest.mark.rare
def test_transactional_sink_aborts_on_offsets_landed_meanwhile(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes(more=TRANSACTIONAL)
    lane.land([event(n) for n in range(10)])
    with lane.driver() as driver:
        driver._offsets.store.save({0: 3}, "")
        with monkeypatch.context() as patch:  # as if the plan had been made before the landing
            patch.setattr(landed_offsets, "list_landed", lambda *_: ())
            with pytest.raises(TransientError, match="has landed meanwhile"):
                driver.turn()
        assert driver.turn().batch_id is None
    require_right(lane, 10)


@pytest.mark.rare
def test_transactional_hole_counts_once(lanes: Lanes) -> None:
    lane = lanes(more=TRANSACTIONAL)
    lane.land([event(n, amount=1) for n in range(5)])
    lane.produce([event(n, amount=1) for n in range(5, 10)] + [event(0, amount=1)] * 10)
    with lane.driver() as driver:
        driver._offsets.store.save({0: 15}, "")  # the offset ran ahead: a hole
        driver.turn()
    lane.repair_detected()
    lane.ingest()
    assert lane.aggregates() == {(0.0, "a"): (15, 15, 1), (5.0, "a"): (5, 5, 1)}
    assert "transactional sink" in lane.explain_text(0)


@pytest.mark.parametrize("sink", [pytest.param("append", marks=pytest.mark.rare), "transactional"])
def test_old_offsets_after_a_cutover_count_by_their_own_contract(lanes: Lanes, sink: str) -> None:
    lane = lanes(more=f'sink = "{sink}"')
    lane.land([event(n, amount=1) for n in range(5)])
    lane.produce([event(n, amount=1) for n in range(5, 10)])
    kill_after(lane, Step.BEGUN)  # so that the new contract begins behind what was begun
    measures = 'events = { count = "*" }'
    lane.toml.write_text(lane.toml.read_text().replace(measures, measures + '\nbig = { count = "value.amount" }'))
    lane.migrate()
    lane.ingest()
    columns = [c.name for c in lane.registered().columns.measures]
    counted = dict(zip(columns, lane.aggregates()[(5.0, "a")], strict=True))
    assert counted == {"events": 5, "amount_sum": 5, "amount_max": 1, "big": None}, "the old contract has no big ones"


@pytest.mark.rare
def test_other_sink_holds_from_the_next_batch(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=1) for n in range(10)])
    kill_after(lane, Step.INCREMENTED)  # counted by the append sink, and not landed
    lane.toml.write_text(lane.toml.read_text().replace("[ingest]", f"[ingest]\n{TRANSACTIONAL}"))
    lane.ingest()
    assert find_kinds(lane) == {Kind.AGGREGATE_MISMATCH, Kind.UNACCOUNTED_BYTES}
    assert len(lane.repair_detected().confirmed) == 2
    require_right(lane, 10)


@pytest.mark.rare
def test_explain_names_the_sink_of_each_landing(lanes: Lanes) -> None:
    lane = lanes()
    for other in ("append", "transactional"):
        lane.toml.write_text(re.sub(r"\[ingest\]\n(sink.*\n)?", f'[ingest]\nsink = "{other}"\n', lane.toml.read_text()))
        lane.land([event(1)])
    told = re.findall(r"(\w+) sink, ", lane.explain_text(0))
    assert told == [row["sink"] for row in lane.explain(0)["ledger"]["landings"]] == ["append", "transactional"]
    lose_ledger()
    lane.rebuild()
    assert " sink, " not in lane.explain_text(0), "raw does not tell"
