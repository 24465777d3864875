"""What one kind of finding means to a person: words, causes, what a repair does about it, remedies and an alert."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.model.remedies import LOOK, REPAIR, Remedy


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule of deploy/alerts.yml, with its annotations and its section of docs/runbook.md."""

    name: str
    summary: str
    description: str
    section: str


@dataclass(frozen=True, slots=True)
class Case:
    """A cause of a finding and the effect of a repair; `reason` distinguishes the cases of one kind."""

    cause: str
    repair: str
    reason: str = ""
    alert: Alert | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The meaning of one kind.

    `what` is a sentence for people; `{}` is the number in the evidence, `[one|many]` agrees with that number.
    `cause`, `repair`, `reason` and `alert` are its first case, `other` the second if there are two.
    `first` lists actions that a repair needs to succeed. `look` is the command that shows more.
    `waits_for_batches`: a batch in flight can cause the kind for a moment, so it counts only once that batch has ended.
    `by_scan`: only a scan of raw shows the kind, so it stays until a repair reads the window again.
    """

    what: str
    cause: str
    repair: str = ""
    reason: str = ""
    alert: Alert | None = None
    other: Case | None = None
    remedy: tuple[Remedy, ...] = (LOOK, REPAIR)
    first: tuple[Remedy, ...] = ()
    look: str = "onceover explain {pipeline} {window}"
    of_window: bool = True
    waits_for_batches: bool = False
    by_scan: bool = False

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return the one or two cases."""
        first = Case(self.cause, self.repair, self.reason, self.alert)
        return (first, self.other) if self.other else (first,)
