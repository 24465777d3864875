"""An append that ends after any of its bytes: the replay and a repair count each record once."""

from __future__ import annotations

import pytest
from tests.faults.ends import end_lease
from tests.integration.extras import die_after, repair
from tests.integration.lane import NOON_MS, Lanes, event
from tests.integration.planted_failures import count_certified

from onceover.fault_points import Step
from onceover.model.window import from_ms

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
WINDOWS = 250


def test_append_torn_after_any_byte_costs_no_record(lanes: Lanes) -> None:
    """Each window's file is cut after one byte more than that of the window before."""
    lane = lanes()
    lane.produce([event(5 * n, amount=n) for n in range(WINDOWS)])
    die_after(lane, Step.APPENDED)
    whole = lane.raw()
    longest = max(map(len, whole.values()))
    assert len(whole) == WINDOWS > longest, "there is a window for each byte"
    client, torn = lane.hdfs(), set()
    for n in range(WINDOWS):
        path = lane.layout.window_file(from_ms(NOON_MS + n * 5 * 60_000))
        content = whole[path.removeprefix(f"{lane.layout.raw_root}/{lane.name}/")][:n]
        client.write(path, content, overwrite=True)
        torn.add(len(content))
    assert torn >= set(range(min(map(len, whole.values())) + 1)), "every number of bytes is there"
    end_lease(lane)
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(5.0 * n, "a"): (1, n, n) for n in range(WINDOWS)}
    assert count_certified(lane) == WINDOWS
    assert lane.detect().judged == 0
