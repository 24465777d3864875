"""The named steps of the batch protocol, and the one place where a test may hold a driver still between two of them."""

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


@dataclass(slots=True)
class Holding:
    """Stops this process (SIGSTOP) after `step` of its `count`-th batch, so that it can be killed or resumed there.

    Read from the environment, `ONCEOVER_STOP_AFTER=STEP[:N]`; without it nothing ever stops.
    """

    step: Step | None = None
    count: int = 1
    _seen: int = field(default=0, init=False)

    @classmethod
    def from_environment(cls) -> Holding:
        text = os.environ.get(STOP_AFTER, "")
        if not text:
            return cls()
        name, _, number = text.partition(":")
        if name not in set(Step) or not (number or "1").isdigit():
            raise UsageError(f"{STOP_AFTER}={text!r}: write STEP or STEP:N, with a step of {', '.join(Step)}")
        return cls(Step(name), int(number or "1"))

    def reached(self, step: Step) -> None:
        if step is not self.step:
            return
        self._seen += 1
        if self._seen == self.count:
            os.kill(os.getpid(), signal.SIGSTOP)
