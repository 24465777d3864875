"""Holes: gaps that the broker explains, gaps that are read again, and losses that only a person can accept.

The event times of missing records are unknown, so a hole is a finding about the pipeline, and windows that would close
beyond it wait.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime

from onceover.context import PipelineContext
from onceover.errors import MissingTopicError, OnceoverError, TerminalError, UsageError
from onceover.kafka.hole_probe import find_gaps
from onceover.kafka.log_bounds import clip_to_held
from onceover.kafka.log_probe import LogProbe
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import Topic, TopicFacts
from onceover.kafka.unreadable_search import find_unreadable
from onceover.ledger import frontiers, losses
from onceover.ledger.compactions import list_known_digests
from onceover.ledger.database import Connection
from onceover.ledger.log_limits import list_stopped
from onceover.ledger.root import RootRefusedError
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Gap, Reason, merge_losses
from onceover.model.log_history import NO_EPOCH
from onceover.model.offsets import OffsetRange, coalesce, intersect, subtract
from onceover.model.stopped_range import StopCause
from onceover.model.window import WindowRange, format_moment

log = logging.getLogger(__name__)
MAX_LIKELY = 20  # windows named beside one gap
MAX_EXPLAINED = 20
"""Losses of which the likely windows are named."""
MAX_READ = 100_000
"""Offsets that detection reads to explain holes; the rest of a larger hole is read once, when it is read again."""


@dataclass(frozen=True, slots=True)
class _Log:
    """The topic's log, as it is now; without Kafka partitions if the topic was deleted."""

    source: KafkaSource
    facts: TopicFacts
    compacted: bool


def probe_holes(context: PipelineContext, most: int | None = None) -> tuple[Gap, ...]:
    """Return every hole of the pipeline, cut into gaps by the broker's log; queries no broker without a hole.

    With `most`, reads at most so many offsets: what it does not read counts as lost.
    """
    holes = frontiers.read_holes(context.ledger, context.name)
    if not holes:
        return ()
    with _open_log(context) as log:
        return find_gaps(log.source, log.facts, holes, log.compacted, most)


def list_readable_holes(context: PipelineContext, findings: Sequence[Finding]) -> tuple[OffsetRange, ...]:
    """Return the offsets of the holes among the findings that Kafka's log still has. Reads no record; returns none if
    the broker does not answer, which `explain_holes` then reports."""
    if not any(finding.kind is Kind.HOLE for finding in findings):
        return ()
    try:
        with _open_log(context) as log:
            # A gap that is empty in the log is accounted for by reading it.
            return coalesce(
                clip_to_held(hole, log.facts) for hole in frontiers.read_holes(context.ledger, context.name)
            )
    except RootRefusedError:
        raise
    except OnceoverError:
        return ()


def explain_holes(context: PipelineContext, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the pipeline's findings with its holes explained.

    If the broker does not answer, the holes stay as the ledger has them, with the error as `not_asked`.
    """
    others = tuple(f for f in findings if f.kind is not Kind.HOLE)
    unexplained = [f for f in findings if f.kind is Kind.HOLE]
    if not unexplained:
        return others
    try:
        gaps = probe_holes(context, MAX_READ)
    except RootRefusedError:
        raise
    except OnceoverError as error:
        return (*others, *(Finding(f.kind, {**f.evidence, "not_asked": str(error)}) for f in unexplained))
    lost = build_hole_finding(context.ledger, context.name, gaps)
    return (*others, lost) if lost else others


def build_hole_finding(connection: Connection, name: str, gaps: Sequence[Gap]) -> Finding | None:
    """Return a finding of the losses among the gaps, the first of them with the windows of their neighbouring offsets;
    else None."""
    rows = []
    for number, gap in enumerate(merge_losses(gaps)):
        offsets = gap.offsets
        beside = losses.list_neighbours(connection, name, offsets, MAX_LIKELY) if number < MAX_EXPLAINED else []
        where = [offsets.source.generation, offsets.source.kafka_partition, offsets.start, offsets.end]
        rows.append({"offsets": where, "reason": str(gap.reason), "likely_windows": [format_moment(w) for w in beside]})
    return Finding(Kind.HOLE, {"gaps": rows}) if rows else None


@contextmanager
def _open_log(context: PipelineContext) -> Iterator[_Log]:
    with context.open_own_topic() as topic:
        try:
            facts, compacted = topic.facts(), _is_compacted(topic)
        except MissingTopicError:
            facts, compacted = TopicFacts(topic.topic, "", "", {}, {}), False  # without a log, all offsets are gone
        yield _Log(context.build_source(facts), facts, compacted)


def _is_compacted(topic: Topic) -> bool:
    """Return whether the log may drop older values of a key; False if the client has no right to know, for it is only
    another word for offsets without a record."""
    try:
        return topic.policy().compacted
    except MissingTopicError:
        raise
    except TerminalError as error:
        log.warning("offsets that Kafka compacted count as markers: %s", error)
        return False


def accept_loss(
    context: PipelineContext,
    span: OffsetRange,
    windows: WindowRange,
    who: str,
    why: str,
    *,
    unreadable: bool = False,
) -> tuple[tuple[OffsetRange, ...], list[datetime]]:
    """Record a person's decision that what expired within `span` is lost and that `windows` may lack its records, which
    their certificates state from then on. What the log holds in between stays as it is, and what raw holds counts.

    Returns the lost offsets, and the windows among `windows` that the ledger has; detection judges these again. Raises
    UsageError for a span that does not begin and end in a hole that expired, for offsets that a batch may still land or
    that a log which was cut has yet to reach again, and while there are compacted files that the ledger does not know.

    With `unreadable`, the span is one that Kafka's log holds and that no reader gets, in a hole or where ingest waits:
    it is lost as well.
    """
    context.require_own_root()
    if unreadable:
        leader_epoch = _require_unreadable(context, span)
        return (span,), losses.record_unreadable(
            context.ledger, context.name, span, leader_epoch, windows.start, windows.end, who, why
        )
    lost = _list_expired(context, span)
    _reject_beyond_end(context, span)
    _reject_unknown_files(context)
    return lost, losses.record_loss(context.ledger, context.name, lost, windows.start, windows.end, who, why)


def _require_unreadable(context: PipelineContext, span: OffsetRange) -> int:
    """Raise UsageError unless the span lies in a hole, or where ingest waits, Kafka's log holds it, and a read of each
    of its offsets fails, by a record or its batch. Return the log's leader epoch there."""
    stopped = [each.offsets for each in list_stopped(context.ledger, context.name, StopCause.UNREADABLE)]
    holes = frontiers.read_holes(context.ledger, context.name)
    if subtract([span], [*stopped, *holes]):
        waits = f"ingest waits before {', '.join(map(str, stopped))}" if stopped else "ingest waits before none"
        raise UsageError(
            f"{span} is not all in a hole, nor are these offsets that ingest cannot read: {waits}; see `onceover "
            "doctor`"
        )
    with _open_log(context) as now:
        if clip_to_held(span, now.facts) != span:
            raise UsageError(f"Kafka's log does not hold all of {span}: accept it as lost, without --unreadable")
        _require_no_reader(now.source, span)
        return _find_leader_epoch(now, span)


def _find_leader_epoch(now: _Log, span: OffsetRange) -> int:
    """Return the leader epoch of the records of this span, which nothing reads: that of the next record."""
    kafka_partition = span.source.kafka_partition
    with closing(LogProbe(now.source, kafka_partition, now.facts.end[kafka_partition])) as probe:
        found = probe.find_epoch(span.end)
    return found[1] if found else now.facts.leader_epochs.get(kafka_partition, NO_EPOCH)


def _require_no_reader(source: KafkaSource, span: OffsetRange) -> None:
    at = span.start
    while at < span.end:
        found = find_unreadable(source, OffsetRange(span.source, at, span.end), span.end)
        if found is None or found.offsets.start > at:
            raise UsageError(f"offset {at} of {span} can be read, or has no record: the next repair reads it")
        log.warning("%s cannot be read: %s", found.offsets, found.why)
        at = found.offsets.end


def _list_expired(context: PipelineContext, span: OffsetRange) -> tuple[OffsetRange, ...]:
    """Return what has expired within the span. Raises UsageError unless it begins and ends with that."""
    # Which offsets have expired is known without reading a record.
    expired = coalesce(gap.offsets for gap in probe_holes(context, 0) if gap.reason is Reason.EXPIRED)
    lost = intersect(expired, [span])
    if not lost or (lost[0].start, lost[-1].end) != (span.start, span.end):
        acceptable = ", ".join(map(str, expired[:MAX_EXPLAINED])) or "none"
        more = f", and {len(expired) - MAX_EXPLAINED} more" if len(expired) > MAX_EXPLAINED else ""
        raise UsageError(
            f"{span} is not a loss that can be accepted: only offsets in a hole that the log no longer holds are (now: "
            f"{acceptable}{more}), and a range of several has to begin and end with such offsets; the next repair "
            "reads again what the log still holds"
        )
    return lost


def _reject_beyond_end(context: PipelineContext, lost: OffsetRange) -> None:
    """Raise UsageError where the log ends before the loss does: once a cut log has grown again it has other records
    there, which are in no certificate that states a loss."""
    source = lost.source
    with _open_log(context) as log:
        facts = log.facts
    end = facts.end.get(source.kafka_partition, lost.end) if source.generation == facts.generation else lost.end
    if end < lost.end:
        raise UsageError(
            f"{lost} is not lost: Kafka's log was cut and ends at {end:,}, and ingest reads what is written there once "
            f"it has grown again. If {facts.topic} is never written again, delete it, then run this "
            "command again"
        )


def _reject_unknown_files(context: PipelineContext) -> None:
    """Raise UsageError for a compacted file that this ledger does not know, as its backup is older: no repair reads it,
    and it may hold the records."""
    files = {f.path: f.window_start for f in context.files.list_compacted_files() if f.window_start}
    known = list_known_digests(context.ledger, context.name, sorted(set(files.values())))
    unknown = files.keys() - {context.layout.compacted_file(start, digest) for start, digest in known}
    if unknown:
        raise UsageError(
            f"this ledger does not know {min(unknown)}, for its backup is older, and that file may hold the records, "
            f"which no repair reads. `onceover ledger rebuild {context.name}` lands them, in a ledger without the "
            "pipeline: see docs/backup.md, Records in a compacted file alone; or move the file out of the pipeline's "
            "folder"
        )
