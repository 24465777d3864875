from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onceover.explain.page.pipelines import PipelineLine
from onceover.ledger.windows import WindowState
from onceover.model.gap import Reason
from onceover.observability.snapshot import DriverState


def line(name: str, driver: DriverState = DriverState.ALIVE, **known: Any) -> PipelineLine:
    windows: Mapping[WindowState, int] = known.pop("windows", {})
    holes: Mapping[Reason, int] = known.pop("holes", {})
    return PipelineLine(name, driver, None, windows, known.pop("overdue", 0), {}, {}, holes, None, (), ())


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
    by_name = sorted(worst_first, key=lambda each: each.name)
    assert sorted(by_name, key=lambda each: each.rank) == worst_first
