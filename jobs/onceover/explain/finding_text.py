"""Findings in sentences for the person on call: the fault, and the evidence for it. Values in, text out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, assert_never

from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.wording import format_list, pluralize

_MAX_PAIRS = 3
_MAX_GAPS = 20


@dataclass(frozen=True, slots=True)
class FindingText:
    """A finding in words: `what` is wrong, and `how` detection or a repair knows."""

    what: str
    how: str


def describe_finding(kind: str, evidence: Mapping[str, Any], landings: Sequence[Mapping[str, Any]] = ()) -> FindingText:
    """Describe a finding; `landings` are the window's, with the offset ranges of their batches."""
    if kind not in list(Kind):
        return FindingText(kind, _format_evidence(evidence))
    try:
        return _describe(Kind(kind), evidence, landings)
    except (KeyError, TypeError, ValueError):
        # A finding of another version may hold other evidence; the person on call must still see it.
        return FindingText(kind, _format_evidence(evidence))


def parse_offset_ranges(values: Iterable[Sequence[Any]] | None) -> tuple[OffsetRange, ...]:
    """Parse the ledger's offset ranges, each [generation, kafka_partition, start, end]."""
    return tuple(OffsetRange(KafkaPartition(g, int(p)), int(a), int(b)) for g, p, a, b in values or ())


def _describe(kind: Kind, evidence: Mapping[str, Any], landings: Sequence[Mapping[str, Any]]) -> FindingText:
    what = kind.meaning.what
    match kind:
        case Kind.DUPLICATED:
            overlap = _list_overlaps(evidence["landings"], landings)
            how = f"The offset ranges behind {format_list(evidence['landings'], 'landing')} overlap{overlap}."
        case Kind.UNACCOUNTED_BYTES:
            how = _describe_unaccounted(evidence)
        case Kind.MISSING_FILE if evidence.get("compacted"):
            what = "The compacted file that replaces the window's text is missing, or has another length."
            how = f"It had {evidence['expected_length']:,} bytes; put it back at the path shown below."
        case Kind.MISSING_FILE:
            length = evidence["file_length"]
            file = "there is no window file" if length is None else f"the window file has only {length:,}"
            how = f"The ledger accounts for {evidence['expected_length']:,} bytes; {file}."
        case Kind.AGGREGATE_MISMATCH:
            return _describe_mismatch(evidence)
        case Kind.LATE:
            what = _agree_in_number(what, evidence["records"], "record")
            from_landings = f" ({format_list(evidence['landings'], 'landing')})" if evidence["landings"] else ""
            how = f"They landed after the watermark had passed the window's end{from_landings}."
        case Kind.HOLE:
            return _describe_hole(evidence)
        case Kind.TRUNCATED:
            how = _describe_cut(evidence)
        case Kind.UNREADABLE:
            how = _describe_stopped(evidence["stopped"])
        case Kind.RESTATED:
            how = f"A repair publishes it under version {evidence['contract_version']}."
        case Kind.STRAY_LINE:
            what = _agree_in_number(what, evidence["misplaced"] + evidence["foreign"], "line")
            how = " ".join([_SCAN, *(text.format(evidence[of]) for of, text in _STRAY.items() if evidence[of])])
        case Kind.FAILED_PROOF:
            how = f"Its last repair says: {evidence['reason']}."
        case Kind.CORRUPT_LINE:
            what, how = _agree_in_number(what, evidence["lines"], "line"), _SCAN
        case _:
            assert_never(kind)
    return FindingText(what, how)


def _describe_stopped(stopped: Sequence[Mapping[str, Any]]) -> str:
    """Name the offsets, as `accept-loss` takes them, and the reason."""
    ranges = parse_offset_ranges([each["offsets"] for each in stopped])
    return "; ".join(f"{offsets}: {each['why']}" for offsets, each in zip(ranges, stopped, strict=True)) + "."


def _describe_cut(evidence: Mapping[str, Any]) -> str:
    sentences: list[str] = []
    if cut := evidence["end_and_stored"]:
        ends = "; ".join(f"{g}-{p}: it ends at {end:,}, {at:,} was stored" for g, p, end, at in cut)
        sentences.append(
            f"{ends}. Reading goes on at the log's end; this ends once the log reaches the stored offset again."
        )
    if starts := evidence["cut_from"]:
        cut = "; ".join(f"{g}-{p}: from offset {at:,} on" for g, p, at in starts)
        sentences.append(
            f"The log was cut, and has grown again with other records than landed, or not yet: {cut}. Ingest reads on "
            "there; both count."
        )
    return " ".join(sentences)


_SCAN = "A repair read every line of the window file and counted them."
_STRAY = {
    "misplaced": "Of another window, or of a release from quarantine that never landed: {:,}.",
    "foreign": "Of a log that neither the ledger nor the root's marker names: {:,}.",
}


def _agree_in_number(what: str, number: int, noun: str) -> str:
    return re.sub(r"\[(\w+)\|(\w+)\]", r"\1" if number == 1 else r"\2", what).format(pluralize(number, noun))


def _describe_unaccounted(evidence: Mapping[str, Any]) -> str:
    expected, length = evidence["expected_length"], evidence["file_length"]
    how = f"The window file has {length:,} bytes, its landings account for {expected:,}: {length - expected:,} more."
    sentences = [how] if length > expected else []
    if unproved := evidence.get("unproved_landings"):
        sentences.insert(0, f"The file's length did not prove {format_list(unproved, 'landing')}.")
    if evidence.get("certified_extras"):
        sentences.append(
            "The last certificate counts records that had landed nowhere, and the window has changed, or they have "
            "landed since: only raw shows which of them still count."
        )
    return " ".join(sentences)


def _describe_hole(evidence: Mapping[str, Any]) -> FindingText:
    if "gaps" not in evidence:
        behind = "; ".join(f"{g}-{p}: frontier {a:,}, reach {b:,}" for g, p, a, b in evidence["frontier_and_reach"])
        unread = f" The broker could not be read: {evidence['not_asked']}." if "not_asked" in evidence else ""
        what = "Offsets were skipped: the records between frontier and reach are unknown."
        return FindingText(what, f"{behind}.{unread}")
    gaps = [_describe_gap(gap) for gap in evidence["gaps"][:_MAX_GAPS]]
    if (more := len(evidence["gaps"]) - _MAX_GAPS) > 0:
        gaps.append(f"and {more:,} more ranges")
    return FindingText(Kind.HOLE.meaning.what, "; ".join(gaps) + ".")


def _describe_gap(gap: Mapping[str, Any]) -> str:
    (offsets,) = parse_offset_ranges([gap["offsets"]])
    says = {"lost": "Kafka still has them, the next repair reads them again", "expired": "Kafka no longer has them"}
    likely = f"; likely of {format_list(gap['likely_windows'], 'window')}" if gap["likely_windows"] else ""
    return f"{offsets} {gap['reason']}: {says.get(gap['reason'], '')}{likely}"


def _describe_mismatch(evidence: Mapping[str, Any]) -> FindingText:
    difference = evidence["difference"]
    changed = "Rows of the aggregates were changed after they were certified."
    if difference == "rows":
        stated, present = pluralize(evidence["certified_rows"], "row"), pluralize(evidence["rows"], "row")
        return FindingText(changed, f"The certificate states {stated}; the aggregates hold other rows: {present}.")
    if difference == "unknown":
        held = pluralize(evidence["landed"], "record")
        return FindingText(changed, f"How many records they count is unknown; the landings hold {held}.")
    what = Kind.AGGREGATE_MISMATCH.meaning.what
    how = f"They count {pluralize(evidence['counted'], 'record')}, the landings hold {evidence['landed']:,}"
    if difference == "digest":
        return FindingText(what, f"{how}: as many, but not the same ones: the digests differ.")
    return FindingText(
        what, f"{how}: {pluralize(abs(difference), 'record')} too {'many' if difference > 0 else 'few'}."
    )


def _list_overlaps(named: Sequence[int], landings: Sequence[Mapping[str, Any]]) -> str:
    held = {
        row["landing_id"]: parse_offset_ranges(row["offset_ranges"]) for row in landings if row["landing_id"] in named
    }
    shared = [
        f"{first} and {second} share {OffsetRange(a.source, max(a.start, b.start), min(a.end, b.end))}"
        for first, second in combinations(sorted(held), 2)
        for a in held[first]
        for b in held[second]
        if a.overlaps(b)
    ]
    more = f", and {len(shared) - _MAX_PAIRS} more" if len(shared) > _MAX_PAIRS else ""
    return f": {', '.join(shared[:_MAX_PAIRS])}{more}" if shared else ""


def _format_evidence(evidence: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in evidence.items()) or "no evidence was kept"
