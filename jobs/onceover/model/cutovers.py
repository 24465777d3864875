"""Which version of its contract a record has: a function of its ID, and of nothing else.

    offset    0 ......... cutover to 2 ......... cutover to 3 .........
    version       1                     2                     3

A Kafka partition that the ledger did not know when a version came, one of a topic created anew as well, has no cutover
to it: it has that version, or a later one, from its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.pipeline import Contract


@dataclass(frozen=True, slots=True)
class Cutovers:
    """Where each version begins: by Kafka partition and version, the first offset that has it. `newest` is in force."""

    newest: int = 1
    at: Mapping[KafkaPartition, Mapping[int, int]] = field(default_factory=dict)

    def version(self, source: KafkaPartition, offset: int) -> int:
        """The version of that ID: the largest one whose cutover is not beyond it."""
        known = self.at.get(source, {})
        return next((v for v in range(self.newest, 1, -1) if known.get(v, 0) <= offset), 1)

    def by_version(self, ranges: Iterable[OffsetRange]) -> dict[int, tuple[OffsetRange, ...]]:
        """The same offsets, cut at the cutovers."""
        found: dict[int, list[OffsetRange]] = {}
        for whole in ranges:
            inner = sorted({at for at in self.at.get(whole.source, {}).values() if whole.start < at < whole.end})
            for start, end in zip((whole.start, *inner), (*inner, whole.end), strict=True):
                version = self.version(whole.source, start)
                found.setdefault(version, []).append(OffsetRange(whole.source, start, end))
        return {version: tuple(pieces) for version, pieces in sorted(found.items())}

    def for_one_batch(self, generation: str, at: Mapping[int, int], end: Mapping[int, int]) -> dict[int, int]:
        """Up to where the next batch may read, by Kafka partition: what has the oldest version of all that lies in
        `[at, end)`, and nothing of another one. What waits for its turn ends where it stands."""
        left = (OffsetRange(KafkaPartition(generation, p), at[p], end[p]) for p in at if at[p] < end.get(p, 0))
        oldest = next(iter(self.by_version(left).values()), ())
        return {**at, **{r.source.kafka_partition: r.end for r in oldest}}


@dataclass(frozen=True, slots=True)
class Contracts:
    """Every version of a pipeline's contract, the first of them being version 1, and which one a record has."""

    versions: tuple[Contract, ...]
    cutovers: Cutovers = field(default_factory=Cutovers)

    @property
    def newest(self) -> Contract:
        return self.versions[-1]
