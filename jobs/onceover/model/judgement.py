"""The judgement of a closed window by the ledger's numbers and the lengths of its files."""

from __future__ import annotations

from onceover.model.digest import Digest
from onceover.model.finding import Evidence, Finding
from onceover.model.finding_kinds import Kind


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
    if evidence.restated and not evidence.is_certified:
        findings.append(Finding(Kind.RESTATED, {"contract_version": evidence.restated}))
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
