"""A pipeline whose keys and measures have the names of Onceover's own columns: all of the loop goes through."""

from __future__ import annotations

import pytest
from tests.integration.events import EVENTS, event, moment
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import land_twice, minutes

from onceover.explain.page.numbers import read_numbers
from onceover.lines import disjoint_units
from onceover.repair.revisions import restore_revision

pytestmark = [pytest.mark.stack, pytest.mark.rare]

KEYS = ("stage", "side", "t", "k_key", "select", "z" * 41)
MEASURES = (
    "event_ms",
    "offset",
    "kafka_partition",
    "reason",
    "head",
    "text",
    "hash",
    "rows",
    "m",
    "m_m",
    "m_sum",
    "line",
)


def make_toml() -> str:
    """Return the lanes' TOML with these names: each key is the record's kind, each measure a sum of its amount."""
    contract, ingest = EVENTS.split("[contract.keys]")[0], EVENTS.split("[contract.bounds]")[1]
    keys = "".join(f'{key} = "value.kind"\n' for key in KEYS)
    measures = "".join(f'{name} = {{{{ sum = "value.amount" }}}}\n' for name in MEASURES)
    return f"{contract}[contract.keys]\n{keys}[contract.measures]\n{measures}[contract.bounds]{ingest}"


def read(lane: Lane) -> dict[tuple[object, ...], set[object]]:
    """Return the different values of keys and of measures of each row: one of each, if all is right."""
    return {(row[0], *set(row[1:])): set(values) for row, values in lane.aggregates().items()}


def test_pipeline_with_our_own_names_goes_through_the_whole_loop(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes(make_toml())
    lane.land([event(1, amount=5), event(6, "b", 7)])
    assert lane.detect().certified == 2
    land_twice(lane, [event(2, amount=20)])
    assert lane.repair_detected().confirmed
    assert read(lane) == {(0.0, "a"): {25}, (5.0, "b"): {7}}
    assert lane.verify(0)["equal"]

    with lane.ledger() as ledger:
        (shown,) = read_numbers(ledger, lane.name, moment(0))["rows"]
        assert (set(shown["before"].values()), set(shown["after"].values())) == ({45}, {25})
        restore_revision(ledger, lane.registered(), moment(0), None, "me", "a test")
    assert read(lane)[0.0, "a"] == {45}
    monkeypatch.setattr(disjoint_units, "UNIT_BYTES", 150)  # each window is folded in several units, as large ones are
    assert len(lane.repair_detected(minutes(0, 10), force=True).confirmed) == 2
    assert read(lane) == {(0.0, "a"): {25}, (5.0, "b"): {7}}
