"""Findings: the reasons why a window failed, judged from the ledger's numbers and the file's length alone.

The last certificate is the base: expected length = frozen length + bytes of the landings since that
begin at or beyond it; expected count and digest = certified + all landings since. Raw is never read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from onceover.model.digest import EMPTY, Digest
from onceover.model.finding_kinds import Kind, failures
from onceover.model.raw_file import CompactedFile


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a window failed, with its evidence as JSON values."""

    kind: Kind
    evidence: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} ({', '.join(f'{k} {v}' for k, v in self.evidence.items())})"

    def as_dict(self) -> dict[str, object]:
        return {"kind": self.kind, **self.evidence}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the ledger says about one window, at one version.

    `control` is the digest that the aggregates' rows count, None if another program changed them.
    `landed_since`, `bytes_since` and `landings_since` are of landings outside the certificate's landing set; without a
    certificate, of all.
    With `has_extras`, the certificate counts records that had landed nowhere; only raw shows whether they still do.
    `compacted` is the file that replaces the window's expired text.
    `restated` is the contract version of a restatement; near real time, records may have had an earlier one.
    `overlaps` are landings of this window, not all certified, whose batches' offset ranges overlap: each with the
    earlier one that it overlaps and that reaches furthest.
    """

    window_start: datetime
    window_end: datetime
    version: int
    control: Digest | None
    certified: Digest | None
    certificate_version: int | None
    frozen_length: int
    landed_since: Digest = EMPTY
    bytes_since: int = 0
    landings_since: tuple[int, ...] = ()
    late_records: int = 0
    overlaps: tuple[int, ...] = ()
    unproved: tuple[int, ...] = ()
    landing_set: tuple[int, ...] = ()
    has_extras: bool = False
    restated: int | None = None
    compacted: CompactedFile | None = None

    @property
    def is_certified(self) -> bool:
        return self.certificate_version == self.version

    @property
    def expected(self) -> Digest:
        return (self.certified or EMPTY) + self.landed_since

    @property
    def expected_length(self) -> int:
        return self.frozen_length + self.bytes_since


def is_right(findings: tuple[Finding, ...]) -> bool:
    """Return whether the ledger alone certifies the window: no finding, or only late records that are counted."""
    return not failures(finding.kind for finding in findings)


def has_hole(findings: Iterable[Finding]) -> bool:
    """Return whether ingest skipped offsets that neither landed nor were accepted as lost."""
    return any(finding.kind is Kind.HOLE for finding in findings)
