"""The named steps of a batch, a repair and a compaction; a test may stop a process after any of them."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from enum import StrEnum

from onceover.errors import UsageError

STOP_AFTER = "ONCEOVER_STOP_AFTER"


class Step(StrEnum):
    """The steps of a batch, in order; each names what has just become true."""

    BEGUN = "begun"
    APPENDED = "appended"
    INCREMENTED = "incremented"
    LANDED = "landed"
    OFFSETS_COMMITTED = "offsets_committed"
    COMMITTED = "committed"


class RepairStep(StrEnum):
    """The steps of a repair request, in order; each names what has just become true."""

    CLAIMED = "claimed"  # this one and the next two once for each group of windows
    STAGED = "staged"
    PUBLISHED = "published"  # once for each window


class CompactStep(StrEnum):
    """The steps of a compaction, in order; each names what has just become true."""

    WRITTEN = "written"  # several windows at once, where no reader looks yet
    PLACED = "placed"  # once for each window; not yet in the ledger


AnyStep = Step | RepairStep | CompactStep
ANY_STEP: dict[str, AnyStep] = {str(step): step for step in (*Step, *RepairStep, *CompactStep)}


@dataclass(slots=True)
class FaultPoint:
    """A step after which this process stops (SIGSTOP), when the process reaches it for the `count`-th time, to be
    killed or resumed there. The default has no step and never stops."""

    step: AnyStep | None = None
    count: int = 1
    _seen: int = field(default=0, init=False)

    @classmethod
    def from_environment(cls) -> FaultPoint:
        """Read `ONCEOVER_STOP_AFTER=STEP[:N]`. Raise UsageError for another text."""
        text = os.environ.get(STOP_AFTER, "")
        if not text:
            return cls()
        name, _, number = text.partition(":")
        if name not in ANY_STEP or not (number or "1").isdigit():
            raise UsageError(f"{STOP_AFTER}={text!r}: write STEP or STEP:N, with a step of {', '.join(ANY_STEP)}")
        return cls(ANY_STEP[name], int(number or "1"))

    def stop_after(self, step: AnyStep) -> None:
        """Stop this process if the step just done is this fault point."""
        if step is not self.step:
            return
        self._seen += 1
        if self._seen == self.count:
            os.kill(os.getpid(), signal.SIGSTOP)
