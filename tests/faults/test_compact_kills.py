"""Real crashes of a real compaction: the next one reaches the same result from any leftovers."""

from __future__ import annotations

import pytest
from tests.faults.conftest import Jobs, hold
from tests.integration.lane import Lane, Lanes, event

from onceover.fault_points import CompactStep

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]


@pytest.mark.parametrize("step", CompactStep)
def test_killed_compaction_is_done_again_from_the_start(lanes: Lanes, jobs: Jobs, step: CompactStep) -> None:
    lane = lanes()
    lane.land([event(n, amount=n) for n in range(15)])
    assert lane.detect().certified == 3
    text = set(lane.raw())
    killed = jobs("compact.py", "--pipeline", lane.name, "--older-than-ms", "0", "--who", "test", "--why", "a test")
    hold(killed, step, count=2 if step is CompactStep.PLACED else 1)
    left = [name.startswith("compacting/") for name in lane.raw() if name.endswith(".zst")]
    assert sorted(left) == ([True] * 3 if step is CompactStep.WRITTEN else [False, False, True])
    killed.kill()
    noted = 1 if step is CompactStep.PLACED else 0
    assert count_compacted(lane) == noted, "what is placed and not noted is not there"

    assert [one.why for one in lane.compact()] == [None] * (3 - noted)
    assert count_compacted(lane) == 3
    assert {name.split(".")[0] for name in set(lane.raw()) - text} == {
        "2026-03-01/1200", "2026-03-01/1205", "2026-03-01/1210",
    }  # fmt: skip
    assert len(lane.raw()) == 6, "one file a window beside its text"


def count_compacted(lane: Lane) -> int:
    (row,) = lane.query('SELECT count(compacted_bytes) AS n FROM onceover."window" WHERE pipeline = %s', [lane.name])
    return int(row["n"])
