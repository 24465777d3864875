"""Looking at the offsets of a pipeline, and saying by hand where reading goes on: set, or moved to another store.

Whoever changes them is the pipeline's driver for as long as that takes, so an ingest that runs is never overtaken. A
set offset can lose nothing: what lies between the frontier and it is a hole, which a repair reads again; what lies
before the frontier is landed twice, and counted once by the repair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from onceover.config.pipeline_tables import offset_path_mistake
from onceover.config.pipelines import names
from onceover.context import PipelineContext
from onceover.errors import TerminalError, UsageError
from onceover.kafka import Topic, TopicFacts
from onceover.ledger import drivers, frontiers
from onceover.ledger.database import Connection
from onceover.ledger.drivers import as_driver
from onceover.offset_stores import CorruptOffsetsError, OffsetStore, StoredOffsets, open_store, postgres
from onceover.offset_stores.tracker import explain_corrupt_offsets, load_stored

_OWNER = "onceover offsets"


@dataclass(frozen=True, slots=True)
class Position:
    """One Kafka partition: its log `[earliest, end]`, what the store holds, and how far the ledger accounts for it.

    `stored` is None where the store holds nothing, `frontier` and `reach` where the ledger knows nothing.
    """

    kafka_partition: int
    earliest: int
    end: int
    stored: int | None
    frontier: int | None
    reach: int | None


@dataclass(frozen=True, slots=True)
class OffsetInspection:
    """What `look` found. `trouble` says why the stored offsets cannot be read, or that they are another topic's."""

    store: str
    place: str
    topic_id: str
    kafka_partitions: tuple[Position, ...]
    trouble: str | None


def inspect_offsets(context: PipelineContext) -> OffsetInspection:
    """Where the pipeline's topic, its store and its ledger stand. Changes nothing."""
    pipeline = context.pipeline
    with _opened(context) as (ledger, facts):
        held, kind = frontiers.read_progress(ledger, pipeline.name, facts.generation), pipeline.ingest.offset_store
        known = {source.kafka_partition: both for source, both in held.items()}
        stored, trouble = StoredOffsets(), None
        with closing(open_store(kind, pipeline, ledger)) as store:
            try:
                stored = _stored(ledger, kind, store, facts)
                if stored.topic_id not in (None, facts.topic_id):
                    trouble = (
                        f"they are of topic ID {stored.topic_id}, which is gone; the new log is read from its start"
                    )
            except CorruptOffsetsError as error:
                trouble = f"{error}; say where to go on with `onceover offsets {pipeline.name} set`"
            return OffsetInspection(
                store=kind,
                place=store.place,
                topic_id=facts.topic_id,
                kafka_partitions=tuple(
                    Position(p, facts.earliest[p], end, stored.offsets.get(p), *known.get(p, (None, None)))
                    for p, end in sorted(facts.end.items())
                ),
                trouble=trouble,
            )


def set_offsets(context: PipelineContext, wanted: Mapping[int, int], who: str, why: str) -> Mapping[int, int]:
    """Say where reading goes on in these Kafka partitions; the others stay. Returns what is stored now.

    Raises UsageError for an offset outside the log, BusyError while an ingest runs.
    """
    pipeline, kind = context.pipeline, context.pipeline.ingest.offset_store
    if kind == "none":
        raise UsageError(f"pipeline {pipeline.name} keeps no offsets (offset_store none); there is nothing to set")
    with _opened(context) as (ledger, facts):
        for kafka_partition, offset in wanted.items():
            low, high = facts.earliest.get(kafka_partition), facts.end.get(kafka_partition)
            if low is None or high is None:
                raise UsageError(f"topic {facts.topic} has no Kafka partition {kafka_partition}")
            if not low <= offset <= high:
                raise UsageError(
                    f"{kafka_partition}={offset} lies outside the log of Kafka partition {kafka_partition}, which goes "
                    f"from {low} to {high}"
                )
        with as_driver(ledger, pipeline.name, _OWNER) as epoch, closing(open_store(kind, pipeline, ledger)) as store:
            before = _readable(ledger, kind, store, facts)
            after = {**(before or {}), **wanted}
            if missing := facts.end.keys() - after.keys():
                raise UsageError(
                    "nothing is stored, or it cannot be read, so every Kafka partition needs its offset; missing: "
                    f"{', '.join(map(str, sorted(missing)))}; `onceover offsets {pipeline.name} show` has the frontiers"
                )
            return _save(ledger, epoch, kind, store, facts, before, after, who, why)


def copy_offsets(context: PipelineContext, to: str, path: str, who: str, why: str) -> Mapping[int, int]:
    """Copy what is stored into another store, at `path` if that is one of files, read it back, and return it. The
    pipeline's TOML still names the old one.

    Raises UsageError if there is nothing to copy, CorruptOffsetsError if what is to be copied is not ours,
    TerminalError if the other store then holds anything else.
    """
    pipeline, kind = context.pipeline, context.pipeline.ingest.offset_store
    if to == kind:
        raise UsageError(f"pipeline {pipeline.name} keeps its offsets in {kind} already")
    if "none" in (to, kind):
        raise UsageError("the store none keeps nothing: nothing can be copied from it or to it")
    if wrong := offset_path_mistake(to, path):
        raise UsageError(f"--path: {wrong}")
    moved = replace(pipeline, ingest=replace(pipeline.ingest, offset_store=to, offset_path=path))
    with _opened(context) as (ledger, facts), as_driver(ledger, pipeline.name, _OWNER) as epoch:
        with closing(open_store(kind, pipeline, ledger)) as store, explain_corrupt_offsets(kind, pipeline.name):
            found = _stored(ledger, kind, store, facts)
        if not found.offsets:
            raise UsageError(f"{store.place} holds no offsets of the topic as it is now; there is nothing to copy")
        with closing(open_store(to, moved, ledger)) as other:
            before = _readable(ledger, to, other, facts)
            return _save(ledger, epoch, to, other, facts, before, found.offsets, who, why)


def _stored(ledger: Connection, kind: str, store: OffsetStore, facts: TopicFacts) -> StoredOffsets:
    return load_stored(store, postgres.read_topic_id(ledger, kind, store.place), facts.topic_id, facts.end.keys())


def _readable(ledger: Connection, kind: str, store: OffsetStore, facts: TopicFacts) -> Mapping[int, int] | None:
    """What is stored, None if nobody can read it: it is about to be replaced, by somebody who says so."""
    try:
        return _stored(ledger, kind, store, facts).offsets
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
    """The note comes first, so that nothing is ever changed that nobody has signed."""
    postgres.claim_place(ledger, epoch.pipeline, kind, store.place, names())
    postgres.note_change(ledger, epoch.pipeline, kind, who, why, before, after)
    drivers.beat(ledger, epoch)
    store.save(after, facts.topic_id)
    postgres.note_topic(ledger, kind, store.place, facts.topic_id)
    found = store.load(facts.end).offsets
    if any(found.get(p) != offset for p, offset in after.items()):
        raise TerminalError(
            f"{store.place} was to hold {dict(after)}, but holds {dict(found)}: somebody else writes there"
        )
    return after


@contextmanager
def _opened(context: PipelineContext) -> Iterator[tuple[Connection, TopicFacts]]:
    pipeline = context.pipeline
    context.registered()
    kafka = context.address("kafka")
    with closing(Topic(kafka, pipeline.contract.topic, pipeline.ingest.isolation, pipeline.kafka)) as topic:
        yield context.ledger, topic.facts()
