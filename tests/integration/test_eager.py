"""Eager repair on the real parts: bounded a look, and no window that a person has to see to."""

from __future__ import annotations

import pytest
from tests.integration.events import event
from tests.integration.lane import Lanes

from onceover.errors import TransientError
from onceover.fault_points import FaultPoint
from onceover.repair import eager
from onceover.repair.eager import EagerRepair

pytestmark = pytest.mark.stack


def _refuse(*_: object, **__: object) -> None:
    raise TransientError("HDFS is away")


def test_eager_look_is_bounded_and_skips_blocked_windows(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "MAX_WINDOWS", 2)
    monkeypatch.setattr(eager, "PAUSE_SECONDS", 0.0)
    lane = lanes()
    lane.land([event(n, amount=1) for n in range(20)])
    # miscounted, as by a crash; and one that a person has to see to
    lane.query('UPDATE onceover."window" SET records = records + 1 WHERE pipeline = %s', [lane.name])
    lane.query(
        'UPDATE onceover."window" SET blocked_at = clock_timestamp(), blocked_why = %s WHERE pipeline = %s '
        'AND window_start = (SELECT min(window_start) FROM onceover."window" WHERE pipeline = %s)',
        ["a test", lane.name, lane.name],
    )
    with lane.open() as context:
        looks = EagerRepair(lane.spark, context, FaultPoint())
        first, second, third = looks.look(), looks.look(), looks.look()
    assert first is not None
    assert len(first.confirmed) == 2
    assert second is not None
    assert len(second.confirmed) == 1
    assert third is None, "the blocked window is left"


@pytest.mark.rare
def test_eager_look_that_fails_is_logged_and_ends_no_driver(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(eager, "PAUSE_SECONDS", 0.0)
    lane = lanes()
    lane.land([event(n, amount=1) for n in range(5)])
    with lane.open() as context:
        looks = EagerRepair(lane.spark, context, FaultPoint())
        with monkeypatch.context() as patch:
            patch.setattr(eager, "detect", _refuse)
            assert looks.look() is None
        assert "the eager repair failed, and is left to the schedule: HDFS is away" in caplog.text
        assert looks.look() is None, "the window is right, and certified from the ledger"
    assert lane.detect().judged == 0
