"""The windows whose text retention took away, for the day the ledger is lost: `ROOT/PIPELINE/expired/windows.log`.

A late record gives such a window a file again. Without this list, a rebuilt ledger takes that file for all of the
window's raw, and a repair replaces the rows of many records by those of one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from onceover.errors import UnknownOutcomeError, UsageError
from onceover.model.window import format_moment, parse_moment
from onceover.raw.layout import Layout
from onceover.raw.store import RawStore

log = logging.getLogger(__name__)
_EXPIRED, _KEPT = "expired", "kept"


class ExpiredList:
    """One pipeline's list in the raw store. The pipeline's driver writes it; the last line about a window counts."""

    def __init__(self, store: RawStore, layout: Layout) -> None:
        self._store = store
        self._path = layout.expired_windows
        self._written: dict[datetime, str] = {}  # a move that fails in each turn adds one line, not one a turn

    def add(self, starts: Iterable[datetime]) -> None:
        """Write down that the text of these windows is about to be moved away; twice is as good as once. Raise as
        `RawStore.append`, after which nothing may be moved."""
        self._append(_EXPIRED, starts)

    def remove(self, starts: Iterable[datetime]) -> None:
        """Write down that the text of these windows has stayed, or is back. Raise as `RawStore.append`."""
        self._append(_KEPT, starts)

    def add_marked(self, starts: Sequence[datetime], mark: Callable[[], Collection[datetime]]) -> int:
        """Write these windows down, and those again as kept that `mark`, which expires them in the ledger, does not
        return. Return how many it did return. Raise as `RawStore.append`."""
        self.add(starts)
        marked = frozenset(mark())
        self.remove(start for start in starts if start not in marked)
        return len(marked)

    def read(self) -> frozenset[datetime]:
        """Return the starts of the windows whose text was moved away, and did not come back."""
        found: dict[datetime, str] = {}
        ignored = 0
        for line in (self._store.read(self._path) or b"").decode(errors="replace").splitlines():
            said, _, moment = line.partition(" ")
            with suppress(UsageError):
                if said in (_EXPIRED, _KEPT):
                    found[parse_moment(moment)] = said
                    continue
            ignored += bool(line)
        if ignored:  # an append that was cut short, after which nothing was moved
            log.warning("%s on %s has %d lines that name no window", self._path, self._store.where, ignored)
        return frozenset(start for start, said in found.items() if said == _EXPIRED)

    def _append(self, said: str, starts: Iterable[datetime]) -> None:
        new = [start for start in starts if self._written.get(start) != said]
        # The first line break ends what an append that was cut short has left.
        text = "".join(f"\n{said} {format_moment(start)}" for start in new)
        if text and not self._store.append(self._path, [f"{text}\n".encode()]).proved:
            raise UnknownOutcomeError(
                f"{self._path} on {self._store.where} may not be whole; the next try writes again"
            )
        self._written |= dict.fromkeys(new, said)
