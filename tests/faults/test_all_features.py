"""All features and faults of one pipeline in random order: each record counts once at the end.

For other walks: `ONCEOVER_WALK_SEEDS="4 5 6" ONCEOVER_WALK_ROUNDS=3 .venv/bin/python -m pytest` with this file.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.faults.conftest import Jobs
from tests.faults.walked import EVERY, Walk, release_all
from tests.integration.compaction import list_states
from tests.integration.lane import Lanes

from onceover.ledger.takings import list_takings

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
SEEDS = [int(seed) for seed in os.environ.get("ONCEOVER_WALK_SEEDS", "11").split()]
ROUNDS = int(os.environ.get("ONCEOVER_WALK_ROUNDS", "1"))
"""How often each feature and fault comes; a round takes one to two minutes."""


@pytest.mark.largest
@pytest.mark.parametrize("seed", SEEDS)
def test_all_features_in_random_order_count_each_record_once(lanes: Lanes, jobs: Jobs, seed: int) -> None:
    walk = Walk(lanes(), jobs, Random(seed))
    walk.produce(0, 1, 2, 3, 4)
    walk.minute = 5
    walk.produce()
    done: list[str] = []
    try:
        for _ in range(ROUNDS):
            for step in walk.chance.sample(EVERY, len(EVERY)):
                done.append(step.__name__)
                step(walk)
        release_all(walk)  # what came into quarantine since is released as well
        walk.settle()
        assert walk.lane.aggregates() == walk.count()
    except BaseException as error:
        error.add_note(f"after {', '.join(done)}")
        raise
    first, *others = list_states(walk.lane)
    assert first == ("expired" if walk.has_expired else "certified")
    assert set(others) == {"certified"}
    with walk.lane.ledger() as ledger:
        assert list_takings(ledger, walk.lane.name) == [], "a certificate ends them"
    assert walk.lane.sweep().differing == ()
    assert walk.lane.detect().judged == 0
    assert walk.lane.audit()["equal"]
