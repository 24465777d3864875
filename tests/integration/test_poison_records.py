"""Records of which the contract's SQL ends Spark's process, or never ends: they alone go to quarantine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.events import EVENTS, event
from tests.integration.lane import Lanes
from tests.integration.releases import release

from onceover.cli.doctor import check_kafka
from onceover.ingest.driver import Ingest
from onceover.ingest.report import format_progress
from onceover.recovery.poison import list_quarantined_poison
from onceover_local.stack.process import wait_for

pytestmark = pytest.mark.stack

KEY = "'''regexp_extract(value.kind, '^((a|b)+ ?)+$', 0)'''"
REGEX = EVENTS.replace('"value.kind"', KEY)
DEEP = "ab " * 66_000
"""A key of 200,000 characters: Java's regular expressions recurse once a character or two."""


@pytest.mark.rare
def test_record_that_overflows_the_stack_is_quarantined_alone(lanes: Lanes) -> None:
    lane = lanes(REGEX, partitions=2)
    lane.produce([event(1, "a"), event(1, DEEP, 100), event(2, "b"), event(2, DEEP, 100), event(3, "a", 2)])
    lane.produce([event(4, "a")], kafka_partition=1)
    with lane.driver() as driver:
        turn_until(driver, lambda: (0.0, "a") in lane.aggregates())
        (waiting,) = (each for each in check_kafka([lane.pipeline]) if "a record that ends Spark" in each.what)
        assert waiting.state == "note"
        assert waiting.what[8:].startswith("-0:0-5 waits while ingest searches it"), waiting.what
        lane.produce([event(4, "a")], kafka_partition=1)
        assert "-0:0-5 waits while it is searched" in format_progress(driver.turn())
        turn_until(driver, lambda: lane.aggregates()[0.0, "a"][0] == 2)
        assert lane.reasons() == {}, "the search goes on, and did not hold up the other Kafka partition"
        turn_until(driver, lambda: len(lane.reasons()) == 2)
    assert lane.reasons() == {(0, 1): "SQL failed: key kind", (0, 3): "SQL failed: key kind"}
    lane.ingest()
    assert lane.aggregates() == {(0.0, "a"): (4, 5, 2), (0.0, "b"): (1, 1, 1)}
    assert lane.audit()["equal"]
    with lane.open() as context:
        known = list_quarantined_poison(context, lane.registered().contracts.versions)
    assert {(0, each.offset): each.reason for each in known} == lane.reasons(), "a lost ledger finds them in raw"


@pytest.mark.rare
def test_release_leaves_a_record_that_overflows_the_stack(lanes: Lanes) -> None:
    lane = lanes(EVENTS.replace('["at", "kind"]', '["at", "kind", "amount"]'))
    without = [event(n, kind).replace(b', "amount": 1', b"") for n, kind in ((1, "a"), (2, DEEP), (3, "b"))]
    lane.land(without)
    text = lane.toml.read_text().replace('["at", "kind", "amount"]', '["at", "kind"]')
    lane.toml.write_text(text.replace('"value.kind"', KEY))
    lane.migrate()
    released = release(lane)
    assert (sum(released.windows.values()), released.left) == (2, {"SQL failed: key kind": 1})
    lane.ingest()
    assert lane.aggregates() == {(0.0, "a"): (1, None, None), (0.0, "b"): (1, None, None)}
    assert release(lane).left == {"SQL failed: key kind": 1}


def turn_until(driver: Ingest, is_so: Callable[[], bool]) -> None:
    def turn() -> bool:
        driver.turn()
        return is_so()

    wait_for(turn, 300, "ingest to get there")
