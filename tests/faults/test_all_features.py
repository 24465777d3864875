"""All features and faults of one pipeline in random order: each record counts once at the end."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from tests.faults.conftest import Jobs
from tests.faults.walked import EVERY, Walk, release_all
from tests.integration.compaction import list_states
from tests.integration.lane import Lane

from onceover.ledger.takings import list_takings

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]


@pytest.mark.parametrize("seed", [10])
def test_all_features_in_random_order_count_each_record_once(lanes: Callable[..., Lane], jobs: Jobs, seed: int) -> None:
    walk = Walk(lanes(), jobs, Random(seed))
    walk.produce(0, 1, 2, 3, 4)
    walk.minute = 5
    walk.produce()
    done: list[str] = []
    try:
        for step in walk.chance.sample(EVERY, len(EVERY)):
            done.append(step.__name__)
            step(walk)
        release_all(walk)  # what came into quarantine since is released as well
        walk.settle()
        assert walk.lane.aggregates() == walk.count()
    except BaseException as error:
        error.add_note(f"after {', '.join(done)}")
        raise
    assert set(list_states(walk.lane)) == {"certified", "expired"}
    with walk.lane.ledger() as ledger:
        assert list_takings(ledger, walk.lane.name) == [], "a certificate ends them"
    assert walk.lane.sweep().differing == ()
    assert walk.lane.detect().judged == 0
    assert walk.lane.audit()["equal"]
