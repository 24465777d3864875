"""Kills of a driver in this process at each step of a batch, what detection says of them, and what happens beside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane

from onceover.fault_points import AnyStep, FaultPoint, Step
from onceover.model.finding_kinds import Kind

TRANSACTIONAL = 'sink = "transactional"'
MISCOUNTED = {Kind.DUPLICATED, Kind.AGGREGATE_MISMATCH}


class Killed(Exception):
    """The end of the process, as the driver meets it: nothing after it runs."""


class KillPoint(FaultPoint):
    """A step after which the process is gone; what its open transaction did is undone."""

    def stop_after(self, step: AnyStep) -> None:
        if step is self.step:
            raise Killed


class Meanwhile(FaultPoint):
    """Something that happens once the process is at this step for the `count`-th time, before it goes on."""

    def __init__(self, step: AnyStep, action: Callable[[], object], count: int = 1) -> None:
        super().__init__(step, count)
        self.action, self.has_fired = action, False

    def stop_after(self, step: AnyStep) -> None:
        if step is self.step:
            self._seen += 1
            if self._seen == self.count:
                self.has_fired = True
                self.action()


def kill_after(lane: Lane, step: Step) -> None:
    with pytest.raises(Killed), lane.driver(KillPoint(step)) as driver:
        driver.turn()


def ingest_under_kills(lane: Lane) -> int:
    """Kill a driver after each step, new records before each; read the rest, and return how many were produced."""
    for step in Step:
        lane.produce([event(n, amount=1) for n in range(10)])
        kill_after(lane, step)
    lane.ingest()
    return 10 * len(Step)


def find_kinds(lane: Lane) -> set[Kind]:
    return {f.kind for failed in lane.detect().failed for f in failed.findings}
