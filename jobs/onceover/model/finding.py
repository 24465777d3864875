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


def judge_window(
    evidence: Evidence, file_length: int | None, *, compacted_is_gone: bool = False
) -> tuple[Finding, ...]:
    """Return every finding about one closed window; without any, the ledger alone can certify the window.

    `file_length` is the window file's length in bytes, None if the file is missing. `compacted_is_gone` says that the
    compacted file of the evidence is missing or has another length.
    """
    findings: list[Finding] = []
    if evidence.overlaps:
        findings.append(Finding(Kind.DUPLICATED, {"landings": list(evidence.overlaps)}))
    expected = evidence.expected_length
    has_extras = evidence.has_extras and not evidence.is_certified
    if (file_length or 0) > expected or evidence.unproved or has_extras:
        findings.append(
            Finding(
                Kind.UNACCOUNTED_BYTES,
                {"expected_length": expected, "file_length": file_length or 0}
                | ({"unproved_landings": list(evidence.unproved)} if evidence.unproved else {})
                | ({"certified_extras": True} if has_extras else {}),
            )
        )
    if (file_length or 0) < expected:
        findings.append(Finding(Kind.MISSING_FILE, {"expected_length": expected, "file_length": file_length}))
    elif compacted_is_gone and evidence.compacted is not None:
        expected = evidence.compacted.bytes
        findings.append(
            Finding(Kind.MISSING_FILE, {"expected_length": expected, "file_length": None, "compacted": True})
        )
    if evidence.control != evidence.expected:
        findings.append(Finding(Kind.AGGREGATE_MISMATCH, _mismatch(evidence.control, evidence.expected)))
    late = evidence.landings_since if evidence.certified is not None else ()
    if late or evidence.late_records:
        findings.append(
            Finding(
                Kind.LATE,
                {"records": evidence.landed_since.records if late else evidence.late_records, "landings": list(late)},
            )
        )
    return tuple(findings)


def _mismatch(counted: Digest | None, landed: Digest) -> dict[str, object]:
    if counted is None:
        return {"counted": None, "landed": landed.records, "difference": "unknown"}
    difference = counted.records - landed.records
    return {"counted": counted.records, "landed": landed.records, "difference": difference or "digest"}


def is_right(findings: tuple[Finding, ...]) -> bool:
    """Return whether the ledger alone certifies the window: no finding, or only late records that are counted."""
    return not failures(finding.kind for finding in findings)


def has_hole(findings: Iterable[Finding]) -> bool:
    """Return whether ingest skipped offsets that neither landed nor were accepted as lost."""
    return any(finding.kind is Kind.HOLE for finding in findings)
