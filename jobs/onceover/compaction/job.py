"""Windows compacted: what their text holds for their certificates, once, as Parquet beside it, proved before it counts.

Every file is written under another name and read back; only if its digest is the certificate's is it moved to where it
belongs and noted, in one transaction. The text stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from pyspark.sql import SparkSession

from onceover.audit import store as audit_store
from onceover.context import PipelineContext
from onceover.errors import TerminalError
from onceover.fault_points import CompactStep, Holding
from onceover.ledger import compactions
from onceover.ledger.catalog import Registered
from onceover.ledger.compactions import CompactionDue
from onceover.model.claim import Rebuilt
from onceover.model.digest import Digest
from onceover.model.window import to_ms, written
from onceover.repair.proof import prove
from onceover.repair.rebuild import Rebuild
from onceover.spark import parquet
from onceover.spark.failure import in_halves
from onceover.spark.session import compiled_for

log = logging.getLogger(__name__)
BYTES_AT_ONCE = 512 << 20
"""Of text: what one query keeps while it writes. A run that is killed has noted the windows before."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """How it ended for one window: the bytes of its Parquet file, or why there is none."""

    due: CompactionDue
    bytes: int | None = None
    why: str | None = None

    def as_dict(self) -> dict[str, object]:
        return {
            "window": self.due.window_start,
            "records": self.due.digest.records,
            "text_bytes": self.due.text_bytes,
            "bytes": self.bytes,
            "why": self.why,
        }


class CompactRun:
    """One run, on one Spark session, by the only process that compacts this pipeline."""

    def __init__(
        self, spark: SparkSession, context: PipelineContext, known: Registered, who: str, why: str, holding: Holding
    ) -> None:
        self._spark, self._connection, self._known, self._files = spark, context.ledger, known, context.files
        self._hdfs, self._who, self._why, self._holding = context.address("hdfs").rstrip("/"), who, why, holding

    def run(self, due: Sequence[CompactionDue]) -> list[CompactionResult]:
        """Each of these windows, failing alone."""
        ended: list[CompactionResult] = []
        for group in _group_by_size(due):
            ended += chain.from_iterable(in_halves(group, self._compact_group, _report_failure))
        self._files.clear_compacting()
        for one in ended:
            if one.why:
                log.error("window %s: %s", written(one.due.window_start), one.why)
        return ended

    def _compact_group(self, group: Sequence[CompactionDue]) -> list[CompactionResult]:
        return list(self._compact(group))

    def _compact(self, group: Sequence[CompactionDue]) -> Iterator[CompactionResult]:
        certified: dict[datetime, audit_store.StoredCertificate] = {}
        for one in group:
            try:
                certified[one.window_start] = audit_store.read_certificate(
                    self._connection, self._known.name, one.window_start
                )
            except TerminalError as error:  # it went, or its certificate did, since it was listed
                yield CompactionResult(one, why=str(error))
        lengths = self._files.lengths(certified)
        paths = {start: self._hdfs + self._files.layout.window_file(start) for start, n in lengths.items() if n}
        claimed = [each.claimed for each in certified.values()]
        with (
            compiled_for(self._spark, sum(lengths.values())),
            closing(Rebuild(self._spark, self._known.contracts, claimed, (), paths, whole=True)) as rebuild,
        ):
            rebuilt = rebuild.results()
            right: list[CompactionDue] = []
            for one in (one for one in group if one.window_start in certified):
                why = _find_difference(one, certified[one.window_start], rebuilt[one.window_start])
                if why is None:
                    right.append(one)
                else:
                    yield CompactionResult(one, why=why)
            if not right:
                return
            folder = self._hdfs + self._files.layout.compacting
            parquet.write(rebuild.records([one.window_start for one in right]), folder)
            self._holding.reached(CompactStep.WRITTEN)
            found = parquet.read_back(self._spark, folder)
        for one in right:
            row = found.get(to_ms(one.window_start))
            held = Digest() if row is None else Digest(row.records, row.high1, row.low1, row.high2, row.low2)
            if row is None or not row.is_one or held != one.digest:
                yield CompactionResult(
                    one, why=f"what was written reads back as {held}, not as {one.digest}; compact it again"
                )
            else:
                yield self._keep(one, row.path.removeprefix(self._hdfs), row.bytes)

    def _keep(self, one: CompactionDue, source: str, length: int) -> CompactionResult:
        def place() -> None:
            self._files.place(source, one.window_start, one.digest)
            self._holding.reached(CompactStep.PLACED)

        if compactions.keep(self._connection, self._known.name, one, length, self._who, self._why, place):
            return CompactionResult(one, length)
        return CompactionResult(one, why="it changed meanwhile, or a repair holds it; compact it again")


def _report_failure(one: CompactionDue, reason: str) -> list[CompactionResult]:
    return [CompactionResult(one, why=f"Spark failed: {reason}")]


def _find_difference(one: CompactionDue, certified: audit_store.StoredCertificate, rebuilt: Rebuilt) -> str | None:
    """Why the window's text is not what its certificate says; None where it is."""
    reasons = prove(certified.claimed, rebuilt, rebuilt.planned_length).reasons
    if reasons:
        more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        return f"raw is not what its certificate says: {reasons[0]}{more}"
    if rebuilt.digest != one.digest:
        return f"raw holds {rebuilt.digest}, its certificate says {one.digest}"
    return None


def _group_by_size(due: Sequence[CompactionDue]) -> Iterator[list[CompactionDue]]:
    """In order, as many at once as their text allows."""
    group: list[CompactionDue] = []
    for one in due:
        if group and sum(each.text_bytes for each in group) + one.text_bytes > BYTES_AT_ONCE:
            yield group
            group = []
        group.append(one)
    if group:
        yield group
