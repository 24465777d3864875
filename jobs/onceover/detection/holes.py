"""Holes: gaps that the broker explains, gaps that are read again, and losses that only a person can accept.

The event times of missing records are unknown, so a hole is a finding about the pipeline, and windows that would close
beyond it wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime

from onceover.context import PipelineContext
from onceover.errors import OnceoverError, UsageError
from onceover.kafka.hole_probe import find_gaps
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import Topic
from onceover.ledger import frontiers, losses
from onceover.ledger.database import Connection
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Gap, Reason
from onceover.model.offsets import OffsetRange, coalesce
from onceover.model.window import WindowRange, format_moment

MOST_LIKELY = 20  # windows named beside one gap


def probe_holes(context: PipelineContext) -> tuple[Gap, ...]:
    """Return every hole of the pipeline, cut into gaps by the broker's log; queries no broker without a hole."""
    holes = frontiers.read_holes(context.ledger, context.name)
    if not holes:
        return ()
    bootstrap, pipeline, policy = context.address("kafka"), context.pipeline, context.pipeline.ingest
    with closing(Topic(bootstrap, pipeline.contract.topic, policy.isolation, pipeline.kafka)) as topic:
        facts, compacted = topic.facts(), topic.policy().compacted
        source = KafkaSource(bootstrap, facts.topic, facts.topic_id, policy.isolation, pipeline.kafka)
        return tuple(gap for hole in holes for gap in find_gaps(source, facts, hole, compacted))


def explain_holes(
    context: PipelineContext, findings: Sequence[Finding]
) -> tuple[tuple[Finding, ...], tuple[OffsetRange, ...]]:
    """Return the pipeline's findings with its holes explained, and the offset ranges to read again.

    If the broker does not answer, the holes stay as the ledger has them, with the error as `not_asked`.
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
    # A gap that is empty in the log is accounted for by reading it.
    again = coalesce(gap.offsets for gap in gaps if gap.reason is not Reason.EXPIRED)
    return ((*others, lost) if lost else others), again


def build_hole_finding(connection: Connection, name: str, gaps: Sequence[Gap]) -> Finding | None:
    """Return a finding of the losses among the gaps, each with the windows of its neighbouring offsets; else None."""
    rows = []
    for gap in gaps:
        if gap.reason.is_loss:
            offsets = gap.offsets
            beside = losses.list_neighbours(connection, name, offsets, MOST_LIKELY)
            where = [offsets.source.generation, offsets.source.kafka_partition, offsets.start, offsets.end]
            rows.append(
                {"offsets": where, "reason": str(gap.reason), "likely_windows": [format_moment(w) for w in beside]}
            )
    return Finding(Kind.HOLE, {"gaps": rows}) if rows else None


def accept_loss(
    context: PipelineContext,
    lost: OffsetRange,
    windows: WindowRange,
    who: str,
    why: str,
) -> list[datetime]:
    """Record a person's decision that `lost` is lost and that `windows` may lack its records, which their certificates
    state from then on.

    Returns the windows among them that the ledger has; detection judges these again. Raises UsageError for offsets
    outside every hole, that the log still holds, or that a log which was cut has yet to reach again.
    """
    expired = coalesce(gap.offsets for gap in probe_holes(context) if gap.reason is Reason.EXPIRED)
    if not any(e.source == lost.source and e.start <= lost.start and lost.end <= e.end for e in expired) or not lost:
        acceptable = ", ".join(map(str, expired)) or "none"
        raise UsageError(
            f"{lost} is not a loss that can be accepted: only offsets in a hole that the log no longer holds are (now: "
            f"{acceptable}); the next repair reads again what the log still holds"
        )
    _reject_beyond_end(context, lost)
    return losses.record_loss(context.ledger, context.name, lost, windows.start, windows.end, who, why)


def _reject_beyond_end(context: PipelineContext, lost: OffsetRange) -> None:
    """Raise UsageError where the log ends before the loss does: once a cut log has grown again it has other records
    there, which are in no certificate that states a loss."""
    pipeline, source = context.pipeline, lost.source
    address = context.address("kafka")
    with closing(Topic(address, pipeline.contract.topic, pipeline.ingest.isolation, pipeline.kafka)) as topic:
        facts = topic.facts()
    end = facts.end.get(source.kafka_partition, lost.end) if source.generation == facts.generation else lost.end
    if end < lost.end:
        raise UsageError(
            f"{lost} is not lost: Kafka's log was cut and ends at {end:,}, and ingest reads what is written there once "
            f"it has grown again. If {facts.topic} is never written again, delete and create it, run "
            f"`onceover ingest {context.name}`, then this command again"
        )
