from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.signals import FLIGHTS

from onceover.explain.page.pipelines import rank
from onceover.ledger.windows import WindowState
from onceover.model.gap import Reason
from onceover.observability.metric_values import DriverState, Signals


def line(name: str, driver: DriverState = DriverState.ALIVE, **known: Any) -> Signals:
    return replace(FLIGHTS, pipeline=name, driver=driver, **{"windows": {}, "holes": {}, "overdue": 0, **known})


def test_worst_pipeline_is_first() -> None:
    worst_first = [
        line("dead", DriverState.DEAD),
        line("blocked", windows={WindowState.BLOCKED: 2}),
        line("hole", holes={Reason.EXPIRED: 1}),
        line("two failed", windows={WindowState.FAILED: 2}),
        line("a failed", windows={WindowState.FAILED: 1}),
        line("late", overdue=3),
        line("a right", windows={WindowState.CERTIFIED: 9}),
        line("b right"),
    ]
    by_name = sorted(worst_first, key=lambda each: each.pipeline)
    assert sorted(by_name, key=rank) == worst_first
