"""A loud word for a batch whose records mostly go to quarantine: how many, and for which reasons."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from onceover.errors import OnceoverError
from onceover.ingest.report import Progress
from onceover.lines.line_file import read_intact
from onceover.model.batch import Landing
from onceover.model.record import Record
from onceover.printable import escape
from onceover.raw.layout import Layout

log = logging.getLogger(__name__)
_MAX_BYTES: Final = 1 << 20
"""Of a landing, for its reasons: they need not be counted, only named."""
_MAX_REASONS: Final = 3


class QuarantineFile(Protocol):
    """The part of the raw store that reads a file's bytes `[start, end)`."""

    def read_bytes(self, path: str, start: int, end: int) -> Iterator[bytes]: ...


class QuarantineAlarm:
    """An alarm of one driver. The first of several such batches in a row names the reasons, the others are counted."""

    def __init__(
        self,
        pipeline: str,
        layout: Layout,
        files: QuarantineFile,
        explain: Callable[[str, Record], str | None] = lambda *_: None,
    ) -> None:
        """`explain` returns Spark's own error for a record of a reason, None if Spark has none."""
        self._pipeline, self._layout, self._files, self._explain = pipeline, layout, files, explain
        self._in_a_row = 0

    def hear(self, progress: Progress) -> None:
        """Log an error if more than half of a batch's records landed in quarantine. A file that cannot be read stops
        nothing: what landed is safe."""
        if 2 * progress.quarantined <= progress.records:
            self._in_a_row = 0 if progress.records else self._in_a_row
            return
        self._in_a_row += 1
        said = f"{progress.quarantined:,} of {progress.records:,} records went to quarantine"
        if self._in_a_row > 1:
            log.error("%s, in %d batches in a row", said, self._in_a_row)
            return
        log.error(
            "%s, most of them as: %s; correct the contract or the producer, see `onceover quarantine %s list`",
            said, self._name_reasons(progress.in_quarantine), self._pipeline,
        )  # fmt: skip

    def _name_reasons(self, refused: Sequence[Landing]) -> str:
        counted: Counter[str] = Counter()
        first: dict[str, Record] = {}
        try:
            for landing in refused:
                if landing.quarantine_day is None:
                    continue
                path, start = self._layout.quarantine_file(landing.quarantine_day), landing.byte_start
                end = min(landing.byte_end, start + _MAX_BYTES)
                for line in read_intact(self._files.read_bytes(path, start, end)):
                    if line.reason:
                        counted[line.reason] += 1
                        first.setdefault(line.reason, line.record)
        except OnceoverError as error:
            log.warning("cannot read the reasons: %s", error)
        named = []
        for reason, _ in counted.most_common(_MAX_REASONS):
            why = self._explain(reason, first[reason])
            named.append(escape(f"{reason} ({why})" if why else reason))
        return ", ".join(named) or "unknown"
