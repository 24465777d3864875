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
from onceover.fault_points import CompactStep, FaultPoint
from onceover.ledger import compactions
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.compactions import CompactionDue
from onceover.model.claim import RebuiltWindow
from onceover.model.digest import Digest
from onceover.model.window import format_moment, to_ms
from onceover.repair.proof import prove
from onceover.repair.rebuild import Rebuild
from onceover.spark import parquet
from onceover.spark.failure import isolate_failures
from onceover.spark.session import choose_codegen

log = logging.getLogger(__name__)
BYTES_AT_ONCE = 512 << 20
"""Of text: what one query keeps while it writes. A run that is killed has noted the windows before."""


@dataclass(frozen=True, slots=True)
class Ended:
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
        self,
        spark: SparkSession,
        context: PipelineContext,
        known: RegisteredPipeline,
        who: str,
        why: str,
        fault_point: FaultPoint,
    ) -> None:
        self._spark, self._connection, self._known, self._files = spark, context.ledger, known, context.files
        self._hdfs, self._who, self._why, self._fault_point = context.address("hdfs").rstrip("/"), who, why, fault_point

    def run(self, due: Sequence[CompactionDue]) -> list[Ended]:
        """Each of these windows, failing alone."""
        ended: list[Ended] = []
        for group in _groups(due):
            ended += chain.from_iterable(isolate_failures(group, self._together, _failed))
        self._files.clear_compacting()
        for one in ended:
            if one.why:
                log.error("window %s: %s", format_moment(one.due.window_start), one.why)
        return ended

    def _together(self, group: Sequence[CompactionDue]) -> list[Ended]:
        return list(self._each(group))

    def _each(self, group: Sequence[CompactionDue]) -> Iterator[Ended]:
        certified: dict[datetime, audit_store.Certified] = {}
        for one in group:
            try:
                certified[one.window_start] = audit_store.certified(
                    self._connection, self._known.name, one.window_start
                )
            except TerminalError as error:  # it went, or its certificate did, since it was listed
                yield Ended(one, why=str(error))
        lengths = self._files.read_lengths(certified)
        paths = {start: self._hdfs + self._files.layout.window_file(start) for start, n in lengths.items() if n}
        claimed = [each.claimed for each in certified.values()]
        with (
            choose_codegen(self._spark, sum(lengths.values())),
            closing(Rebuild(self._spark, self._known.contracts, claimed, (), paths, whole=True)) as rebuild,
        ):
            rebuilt = rebuild.collect()
            right: list[CompactionDue] = []
            for one in (one for one in group if one.window_start in certified):
                why = _difference(one, certified[one.window_start], rebuilt[one.window_start])
                if why is None:
                    right.append(one)
                else:
                    yield Ended(one, why=why)
            if not right:
                return
            folder = self._hdfs + self._files.layout.compacting
            parquet.write(rebuild.select_records([one.window_start for one in right]), folder)
            self._fault_point.stop_after(CompactStep.WRITTEN)
            found = parquet.read_back(self._spark, folder)
        for one in right:
            row = found.get(to_ms(one.window_start))
            held = Digest() if row is None else Digest(row.records, row.high1, row.low1, row.high2, row.low2)
            if row is None or not row.is_one or held != one.digest:
                yield Ended(one, why=f"what was written reads back as {held}, not as {one.digest}; compact it again")
            else:
                yield self._kept(one, row.path.removeprefix(self._hdfs), row.bytes)

    def _kept(self, one: CompactionDue, source: str, length: int) -> Ended:
        def place() -> None:
            self._files.place(source, one.window_start, one.digest)
            self._fault_point.stop_after(CompactStep.PLACED)

        if compactions.record_compaction(self._connection, self._known.name, one, length, self._who, self._why, place):
            return Ended(one, length)
        return Ended(one, why="it changed meanwhile, or a repair holds it; compact it again")


def _failed(one: CompactionDue, reason: str) -> list[Ended]:
    return [Ended(one, why=f"Spark failed: {reason}")]


def _difference(one: CompactionDue, certified: audit_store.Certified, rebuilt: RebuiltWindow) -> str | None:
    """Why the window's text is not what its certificate says; None where it is."""
    reasons = prove(certified.claimed, rebuilt, rebuilt.planned_length).reasons
    if reasons:
        more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        return f"raw is not what its certificate says: {reasons[0]}{more}"
    if rebuilt.digest != one.digest:
        return f"raw holds {rebuilt.digest}, its certificate says {one.digest}"
    return None


def _groups(due: Sequence[CompactionDue]) -> Iterator[list[CompactionDue]]:
    """In order, as many at once as their text allows."""
    group: list[CompactionDue] = []
    for one in due:
        if group and sum(each.text_bytes for each in group) + one.text_bytes > BYTES_AT_ONCE:
            yield group
            group = []
        group.append(one)
    if group:
        yield group
