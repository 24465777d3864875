"""Raw that is gone without an expiry in this ledger, declared expired by a person's word.

A ledger restored from a backup does not know what retention moved away after it. Only windows whose rows are as
certified are declared: an expired window is never judged again. A day of quarantine counts in no aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onceover.context import PipelineContext
from onceover.ledger import missing_text
from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.expiries import ExpiringFile
from onceover.ledger.missing_text import CertifiedText


@dataclass(frozen=True, slots=True)
class MissingText:
    """Windows without a window file, in order: those that can be declared expired, and those that cannot, each with
    the reason; and the days whose quarantine file is gone or has lost records, which can be."""

    pipeline: str
    declarable: tuple[CertifiedText, ...]
    others: tuple[tuple[CertifiedText, str], ...]
    days: tuple[ExpiringFile, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "missing_quarantine": [
                {"day": file.quarantine_day, "records": file.records, "bytes": file.bytes} for file in self.days
            ],
        }


def list_missing(context: PipelineContext) -> MissingText:
    """Return the certified windows whose window file is gone and that no compacted file replaces, and days of
    quarantine that have lost records. Writes nothing."""
    registered = context.require_same_contract()
    texts = {text.window_start: text for text in missing_text.list_certified_texts(context.ledger, context.name)}
    present = context.files.read_lengths(texts)
    missing = [text for start, text in texts.items() if start not in present]
    compacted = context.files.read_compacted_lengths({text.window_start: text.digest for text in missing})
    rows = _read_rows(context, registered, missing)
    declarable: list[CertifiedText] = []
    others: list[tuple[CertifiedText, str]] = []
    for text in missing:
        if text.window_start in compacted:
            others.append((text, f"it has a compacted file: run `onceover compact {context.name}` first"))
        elif text.has_landings_since:
            others.append((text, "records have landed in it since it was certified"))
        elif text.may_land_again:
            others.append((text, "it counts records that landed nowhere and may still land, and would count twice"))
        elif text.rows is None or text.rows != rows.get(text):
            others.append((text, "its rows are no longer those that were certified"))
        else:
            declarable.append(text)
    quarantined = missing_text.list_quarantine_files(context.ledger, context.name)  # before the files, which only grow
    lengths = context.files.list_quarantine_days() if quarantined else {}
    days = (file for file in quarantined if file.quarantine_day and lengths.get(file.quarantine_day, 0) < file.bytes)
    return MissingText(context.name, tuple(declarable), tuple(others), tuple(days))


def declare_expired(context: PipelineContext, listed: MissingText, who: str, why: str) -> tuple[int, int]:
    """Mark the listed windows and days expired, a window only if it has not changed since. Returns their numbers."""
    context.require_own_root()
    windows = context.files.expired.add_marked(
        [text.window_start for text in listed.declarable],
        lambda: missing_text.mark_expired(context.ledger, context.name, listed.declarable, who, why),
    )
    return windows, missing_text.mark_days_expired(context.ledger, context.name, listed.days, who, why)


def _read_rows(
    context: PipelineContext, registered: RegisteredPipeline, texts: list[CertifiedText]
) -> dict[CertifiedText, Fingerprint]:
    """Return the fingerprints of the windows' rows now, by the columns of the contract that each was certified with."""
    rows: dict[CertifiedText, Fingerprint] = {}
    for version in {text.contract_version for text in texts}:
        of_version = {text.window_start: text for text in texts if text.contract_version == version}
        table = registered.select_version(version).table
        found = table.fingerprints(context.ledger, list(of_version))
        rows |= {of_version[start]: fingerprint for start, fingerprint in found.items()}
    return rows
