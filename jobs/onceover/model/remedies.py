"""The actions that lead out of a finding, each with the command that does or shows it.

A command has the placeholders `{pipeline}`, `{window}` and `{end}`; a person replaces the words in capitals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Remedy:
    """One action, with the command that does or shows it; None if no command can."""

    text: str
    command: str | None = None

    def fill(self, **names: str) -> Remedy:
        """Put a pipeline's name and a window's bounds into the command."""
        return Remedy(self.text, self.command and self.command.format(**names))


RESTORE: Final = Remedy(
    "Lines that raw has lost cannot be rebuilt from it: bring the window file back first, if you can."
)
REREAD: Final = Remedy(
    "If you cannot, read them again from Kafka, which repairs the window too:",
    'onceover reread {pipeline} {window} --reason "..."',
)
RELEASE: Final = Remedy(
    "If a release from quarantine died, or the ledger was restored from before it, its records count once released "
    "again; see which, and repeat it without --dry-run:",
    "onceover quarantine {pipeline} release --dry-run",
)
TAKE_OUT: Final = Remedy(
    "Find out who wrote these lines; where one ID has two contents or windows, find out which is wrong. To be rid of "
    "the finding, stop ingest, copy the file elsewhere, put it back without the wrong lines, and repair the window."
)
REBUILD: Final = Remedy(
    "Its certificate is valid, so schedules do not repair it. To rebuild it all the same:",
    'onceover repair {pipeline} --from {window} --to {end} --force --reason "..."',
)
COMPARE: Final = Remedy(
    "Once its records have been read again from Kafka, compare what raw gives with the rows that were there; if they "
    "are equal, the window is certified, without records counted twice:",
    REREAD.command,
)
TAKE_OVER: Final = Remedy(
    "If the ledger was restored from a backup, a later expiry took the text. Take over compacted files written since:",
    "onceover compact {pipeline}",
)
DECLARE: Final = Remedy(
    "If neither a backup nor Kafka has the records any more, declare the window expired: its rows stay as they are, "
    "and are never proved. That declares all windows that are listed without a reason against it, for good, even if a "
    "backup is found later. See which; then with --reason instead of --dry-run:",
    "onceover retention {pipeline} --adopt-missing --dry-run",
)
LOOK: Final = Remedy(
    "Airflow's DAG repair_failed_windows repairs it at its next run. To see what that would do:",
    "onceover repair {pipeline} --from {window} --to {end} --dry-run",
)
LOOK_AFTER: Final = Remedy(f"After that, {LOOK.text}", LOOK.command)
REPAIR: Final = Remedy("To do it now:", 'onceover repair {pipeline} --from {window} --to {end} --reason "..."')
CERTIFY: Final = Remedy(
    "Nothing is wrong with it; the next detection certifies it. To certify it now, without Spark:", REPAIR.command
)
