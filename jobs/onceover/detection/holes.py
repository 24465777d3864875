"""Holes: what of them the broker can still explain, what is read again, and what only a person can decide.

Nobody knows the event times of what is missing, so a hole is a finding about the pipeline, and windows that would
close beyond it wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime

from onceover.context import PipelineContext
from onceover.errors import OnceoverError, UsageError
from onceover.kafka.hole_probe import gaps_of
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import Topic
from onceover.ledger import frontiers, losses
from onceover.ledger.database import Connection
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Gap, Reason
from onceover.model.offsets import OffsetRange, coalesce
from onceover.model.window import WindowRange, written

MOST_LIKELY = 20  # windows named beside one gap


def probe_holes(context: PipelineContext) -> tuple[Gap, ...]:
    """Every hole of the pipeline, cut into gaps by what the broker says now. Asks nobody where there is no hole."""
    holes = frontiers.read_holes(context.ledger, context.name)
    if not holes:
        return ()
    bootstrap, pipeline, policy = context.address("kafka"), context.pipeline, context.pipeline.ingest
    with closing(Topic(bootstrap, pipeline.contract.topic, policy.isolation, pipeline.kafka)) as topic:
        facts, compacted = topic.facts(), topic.policy().compacted
        source = KafkaSource(bootstrap, facts.topic, facts.topic_id, policy.isolation, pipeline.kafka)
        return tuple(gap for hole in holes for gap in gaps_of(source, facts, hole, compacted))


def explain_holes(
    context: PipelineContext, findings: Sequence[Finding]
) -> tuple[tuple[Finding, ...], tuple[OffsetRange, ...]]:
    """The pipeline's findings with its holes explained, and what of them is to be read again.

    If the broker does not answer, the holes stay as the ledger knows them, and say so.
    """
    others = tuple(f for f in findings if f.kind is not Kind.HOLE)
    unexplained = [f for f in findings if f.kind is Kind.HOLE]
    if not unexplained:
        return others, ()
    try:
        gaps = probe_holes(context)
    except OnceoverError as error:
        return (*others, *(Finding(f.kind, {**f.evidence, "not_asked": str(error)}) for f in unexplained)), ()
    lost = build_hole_finding(context.ledger, context.name, gaps)
    # What lies in the log and is empty is accounted for by having been read.
    again = coalesce(gap.offsets for gap in gaps if gap.reason is not Reason.EXPIRED)
    return ((*others, lost) if lost else others), again


def build_hole_finding(connection: Connection, name: str, gaps: Sequence[Gap]) -> Finding | None:
    """The losses among the gaps, each with the windows that its neighbours were landed in."""
    rows = []
    for gap in gaps:
        if gap.reason.is_loss:
            offsets = gap.offsets
            beside = losses.neighbours(connection, name, offsets, MOST_LIKELY)
            where = [offsets.source.generation, offsets.source.kafka_partition, offsets.start, offsets.end]
            rows.append({"offsets": where, "reason": str(gap.reason), "likely_windows": [written(w) for w in beside]})
    return Finding(Kind.HOLE, {"gaps": rows}) if rows else None


def accept_loss(
    context: PipelineContext,
    lost: OffsetRange,
    windows: WindowRange,
    who: str,
    why: str,
) -> list[datetime]:
    """Somebody decides that `lost` is lost, and which windows may lack its records: their certificates say so for ever.

    Returns the known windows among them, which are judged again. Raises UsageError for offsets that are in no hole,
    or that the log still holds.
    """
    expired = coalesce(gap.offsets for gap in probe_holes(context) if gap.reason is Reason.EXPIRED)
    if not any(e.source == lost.source and e.start <= lost.start and lost.end <= e.end for e in expired) or not lost:
        there = ", ".join(map(str, expired)) or "none"
        raise UsageError(
            f"{lost} is not a loss that can be accepted: only offsets in a hole that the log no longer holds are (now: "
            f"{there}); what the log still holds is read again by the next repair"
        )
    return losses.record_loss(context.ledger, context.name, lost, windows.start, windows.end, who, why)
