"""The named steps of a batch, a repair and a compaction, and where a test may hold a process still after one."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from enum import StrEnum

from onceover.errors import UsageError

STOP_AFTER = "ONCEOVER_STOP_AFTER"


class Step(StrEnum):
    """What has just become true of a batch, in the order in which it becomes true."""

    BEGUN = "begun"
    APPENDED = "appended"
    INCREMENTED = "incremented"
    LANDED = "landed"
    OFFSETS_COMMITTED = "offsets_committed"
    COMMITTED = "committed"


class RepairStep(StrEnum):
    """What has just become true of a repair request, in the order in which it becomes true."""

    CLAIMED = "claimed"
    STAGED = "staged"
    PUBLISHED = "published"  # one window: once for each


class CompactStep(StrEnum):
    """What has just become true of a compaction, in the order in which it becomes true."""

    WRITTEN = "written"  # some windows at once: where nobody reads them
    PLACED = "placed"  # one window: once for each; not noted yet


AnyStep = Step | RepairStep | CompactStep
ANY_STEP: dict[str, AnyStep] = {str(step): step for step in (*Step, *RepairStep, *CompactStep)}


@dataclass(slots=True)
class FaultPoint:
    """Stops this process (SIGSTOP) when it has reached `step` for the `count`-th time, to be killed or resumed there.

    Read from the environment, `ONCEOVER_STOP_AFTER=STEP[:N]`; without it nothing ever stops.
    """

    step: AnyStep | None = None
    count: int = 1
    _seen: int = field(default=0, init=False)

    @classmethod
    def from_environment(cls) -> FaultPoint:
        text = os.environ.get(STOP_AFTER, "")
        if not text:
            return cls()
        name, _, number = text.partition(":")
        if name not in ANY_STEP or not (number or "1").isdigit():
            raise UsageError(f"{STOP_AFTER}={text!r}: write STEP or STEP:N, with a step of {', '.join(ANY_STEP)}")
        return cls(ANY_STEP[name], int(number or "1"))

    def stop_after(self, step: AnyStep) -> None:
        if step is not self.step:
            return
        self._seen += 1
        if self._seen == self.count:
            os.kill(os.getpid(), signal.SIGSTOP)
