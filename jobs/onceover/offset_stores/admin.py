"""Offsets of a pipeline in an operator's hands: inspected, set, or copied to another store.

A command that changes offsets is the pipeline's driver meanwhile, so it never competes with an ingest. A set offset
loses no records: those between the frontier and a later offset are a hole, which a repair reads again; those between an
earlier offset and the frontier land twice, and the repair counts them once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from onceover.config.pipeline_tables import check_offset_path
from onceover.config.pipelines import names
from onceover.context import PipelineContext
from onceover.errors import TerminalError, UsageError
from onceover.kafka import TopicFacts
from onceover.ledger import drivers, frontiers
from onceover.ledger.actions import record_action
from onceover.ledger.database import Connection
from onceover.ledger.drivers import as_driver
from onceover.model.pipeline import Pipeline
from onceover.offset_stores import CorruptOffsetsError, OffsetStore, StoredOffsets, open_store, postgres
from onceover.offset_stores.store import MOST
from onceover.offset_stores.tracker import explain_corrupt_offsets, load_stored

_OWNER = "onceover offsets"


@dataclass(frozen=True, slots=True)
class Position:
    """One Kafka partition: its log `[earliest, end]`, what the store holds, and how far the ledger accounts for it.

    `stored` is None if the store has no offset, `frontier` and `reach` if the ledger has no such Kafka partition.
    """

    kafka_partition: int
    earliest: int
    end: int
    stored: int | None
    frontier: int | None
    reach: int | None


@dataclass(frozen=True, slots=True)
class OffsetInspection:
    """The positions of a pipeline. `trouble` says why the stored offsets cannot be read or used, None if they can."""

    store: str
    place: str
    topic_id: str
    kafka_partitions: tuple[Position, ...]
    trouble: str | None


def inspect_offsets(context: PipelineContext) -> OffsetInspection:
    """Return the positions of the pipeline's topic, store and ledger. Changes nothing."""
    pipeline = context.pipeline
    with _open_topic(context) as (ledger, facts):
        kind = pipeline.ingest.offset_store
        stored, trouble = StoredOffsets(), None
        with closing(open_store(kind, context)) as store:
            try:
                stored = _load(ledger, kind, store, facts)
                if stored.topic_id not in (None, facts.topic_id):
                    trouble = (
                        f"the stored offsets are of topic ID {stored.topic_id}, which no longer exists; the new log is "
                        "read from its start"
                    )
            except CorruptOffsetsError as error:
                trouble = f"{error}; set where reading continues with `onceover offsets {pipeline.name} set`"
            if any(offset > facts.end[p] for p, offset in stored.offsets.items()):
                with context.open_topic() as topic:  # a driver that runs may have read on since
                    facts = topic.facts()
            by_source = frontiers.read_progress(ledger, pipeline.name, facts.generation)  # after what was stored
            progress = {source.kafka_partition: pair for source, pair in by_source.items()}
            trouble = trouble or _find_trouble(stored.offsets, facts, progress)
            return OffsetInspection(
                store=kind,
                place=store.place,
                topic_id=facts.topic_id,
                kafka_partitions=tuple(
                    Position(p, facts.earliest[p], end, stored.offsets.get(p), *progress.get(p, (None, None)))
                    for p, end in sorted(facts.end.items())
                ),
                trouble=trouble,
            )


def _find_trouble(stored: Mapping[int, int], facts: TopicFacts, progress: Mapping[int, tuple[int, int]]) -> str | None:
    """Return what a stored offset tells before ingest, which sees to it, runs again: the first that it tells."""
    for p, offset in sorted(stored.items()):
        if offset > facts.end[p]:
            return (
                f"Kafka partition {p} ends at {facts.end[p]:,}, before the stored offset {offset:,}: its log was cut. "
                "Raw keeps what landed; ingest finds the cut when it runs, and reads on from there"
            )
        _, reach = progress.get(p, (offset, offset))
        if offset > reach:
            return (
                f"the stored offset {offset:,} of Kafka partition {p} is {offset - reach:,} beyond {reach:,}, up to "
                "which it was read: once ingest runs, the offsets between are a hole, which a repair reads again"
            )
    return None


def set_offsets(
    context: PipelineContext, changes: Mapping[int, int], who: str, why: str, *, past_end: bool = False
) -> Mapping[int, int]:
    """Set where reading continues in these Kafka partitions; the others stay. Returns all stored offsets.

    With `past_end`, an offset may lie beyond the log's end: so far the log was read before it was cut. Raises
    UsageError for an offset outside the log, or before the stored one if the sink skips what has landed; BusyError
    while an ingest runs.
    """
    pipeline, kind = context.pipeline, context.pipeline.ingest.offset_store
    if kind == "none":
        raise UsageError(
            f"pipeline {pipeline.name} keeps no offsets (offset_store none); there is nothing to set; to set one, "
            f"name a store under [ingest] in pipelines/{pipeline.name}.toml first"
        )
    with _open_topic(context) as (ledger, facts):
        for kafka_partition, offset in changes.items():
            low, high = facts.earliest.get(kafka_partition), facts.end.get(kafka_partition)
            if low is None or high is None:
                raise UsageError(f"topic {facts.topic} has no Kafka partition {kafka_partition}")
            if not low <= offset <= (MOST if past_end else high):
                raise UsageError(
                    f"{kafka_partition}={offset} lies outside the log of Kafka partition {kafka_partition}, which goes "
                    f"from {low} to {high}"
                )
        with as_driver(ledger, pipeline.name, _OWNER) as epoch, closing(open_store(kind, context)) as store:
            before = _load_if_readable(ledger, kind, store, facts)
            after = {**(before or {}), **changes}
            if pipeline.ingest.skips_landed:
                _reject_backwards(pipeline, before or {}, changes)
            if missing := facts.end.keys() - after.keys():
                raise UsageError(
                    "no offsets are stored, or they cannot be read, so every Kafka partition needs its offset; "
                    f"missing: {', '.join(map(str, sorted(missing)))}; `onceover offsets {pipeline.name} show` has the "
                    "frontiers"
                )
            return _save(ledger, epoch, kind, store, facts, before, after, who, why)


def _reject_backwards(pipeline: Pipeline, before: Mapping[int, int], changes: Mapping[int, int]) -> None:
    for kafka_partition, offset in sorted(changes.items()):
        if offset < before.get(kafka_partition, offset):
            raise UsageError(
                f"{kafka_partition}={offset} lies before the stored offset {before[kafka_partition]}, and the sink of "
                f"{pipeline.name} is {pipeline.ingest.sink}, which reads nothing again that has landed; missing "
                "records are read again by a repair, and a window's lines that raw has lost by `onceover reread "
                f"{pipeline.name} WINDOW`"
            )


def copy_offsets(context: PipelineContext, to: str, path: str, who: str, why: str) -> Mapping[int, int]:
    """Copy the stored offsets into another store, at `path` if that store keeps files, read them back, and return them.
    The pipeline's TOML still names the old store.

    Raises UsageError if there is nothing to copy, CorruptOffsetsError if the stored offsets are damaged, TerminalError
    if the other store then holds other offsets.
    """
    pipeline, kind = context.pipeline, context.pipeline.ingest.offset_store
    if to == kind:
        raise UsageError(f"pipeline {pipeline.name} keeps its offsets in {kind} already")
    if "none" in (to, kind):
        raise UsageError("offset_store none keeps no offsets: nothing can be copied from it or to it")
    if mistake := check_offset_path(to, path):
        raise UsageError(f"--path: {mistake}")
    with _open_topic(context) as (ledger, facts), as_driver(ledger, pipeline.name, _OWNER) as epoch:
        with closing(open_store(kind, context)) as store, explain_corrupt_offsets(kind, pipeline.name):
            stored = _load(ledger, kind, store, facts)
        if not stored.offsets:
            raise UsageError(f"{store.place} holds no offsets of the current topic; there is nothing to copy")
        with closing(open_store(to, context, path)) as other:
            before = _load_if_readable(ledger, to, other, facts)
            return _save(ledger, epoch, to, other, facts, before, stored.offsets, who, why)


def _load(ledger: Connection, kind: str, store: OffsetStore, facts: TopicFacts) -> StoredOffsets:
    return load_stored(store, postgres.read_topic_id(ledger, kind, store.place), facts.topic_id, facts.end.keys())


def _load_if_readable(ledger: Connection, kind: str, store: OffsetStore, facts: TopicFacts) -> Mapping[int, int] | None:
    """Return the stored offsets, None if they are damaged: the operator is about to replace them."""
    try:
        return _load(ledger, kind, store, facts).offsets
    except CorruptOffsetsError:
        return None


def _save(
    ledger: Connection,
    epoch: drivers.Epoch,
    kind: str,
    store: OffsetStore,
    facts: TopicFacts,
    before: Mapping[int, int] | None,
    after: Mapping[int, int],
    who: str,
    why: str,
) -> Mapping[int, int]:
    """Save offsets and read them back. The note with author and reason comes first, so that no change is unsigned."""
    postgres.claim_place(ledger, epoch.pipeline, kind, store.place, names())
    detail = {"store": kind, "before": before, "after": after}
    record_action(ledger, epoch.pipeline, "set offsets", who, why, detail)
    drivers.beat(ledger, epoch)
    store.save(after, facts.topic_id)
    postgres.note_topic(ledger, kind, store.place, facts.topic_id)
    actual = store.load(facts.end).offsets
    if any(actual.get(p) != offset for p, offset in after.items()):
        raise TerminalError(
            f"{store.place} was to hold {dict(after)}, but holds {dict(actual)}: another program writes there; "
            "stop it, and try again"
        )
    return after


@contextmanager
def _open_topic(context: PipelineContext) -> Iterator[tuple[Connection, TopicFacts]]:
    context.read_registration()
    with context.open_topic() as topic:
        yield context.ledger, topic.facts()
