"""The rebuild of a pipeline's part of a lost ledger: scan raw as the pipeline's driver, then write one transaction."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.errors import OnceoverError, TerminalError, UsageError
from onceover.kafka import TopicFacts
from onceover.kafka.hole_probe import find_empty
from onceover.kafka.log_bounds import clip_to_held
from onceover.kafka.topic import read_cluster_id
from onceover.ledger.catalog import keep_raw_store, record_poison, restore_contracts
from onceover.ledger.drivers import UNKNOWN_VERSION, Epoch, as_driver, name_process, record_versions
from onceover.ledger.frontiers import read_origins
from onceover.ledger.log_cuts import record_cuts
from onceover.ledger.restatements import record_restatement
from onceover.model.json_text import to_plain
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, subtract
from onceover.model.raw_file import RawContents, RawFile
from onceover.model.root_marker import UnreadableMarkerError, join_origins
from onceover.offset_stores.postgres import LedgerOffsetStore
from onceover.raw.marker import MarkerFiles
from onceover.raw.restatement_files import read_restatements, require_whole
from onceover.recovery.kept_contracts import read_kept_contracts, require_known
from onceover.recovery.poison import list_quarantined_poison
from onceover.recovery.rebuild_ledger import (
    WHO,
    WHY,
    KnownLogs,
    RebuiltLedger,
    find_missing,
    find_read_nowhere,
    find_spans,
    leave_out_foreign,
    require_no_batches,
    write_ledger,
)
from onceover.recovery.scan import scan
from onceover.spark.contract_check import check_contract
from onceover.spark.session import choose_codegen

log = logging.getLogger(__name__)
_SMALL = 100
"""Offsets of a gap in raw that may be control markers, aborted or compacted records; larger ones are holes."""


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What was written from which files, and the offsets that neither raw nor Kafka holds."""

    pipeline: str
    files: tuple[RawFile, ...]
    written: RebuiltLedger
    lost: tuple[OffsetRange, ...]
    foreign: int = 0  # records of a log that the root's marker does not name, left out

    def as_dict(self) -> dict[str, object]:
        return {
            "pipeline": self.pipeline,
            "files": len(self.files),
            **to_plain(self.written),
            "foreign": self.foreign,
            "in_neither": sum(map(len, self.lost)),
        }


def rebuild_pipeline(spark: SparkSession, context: PipelineContext) -> RebuildResult:
    """Write the pipeline's part of the ledger from raw, with the contracts that lie beside it. A killed run leaves at
    most a registered pipeline behind.

    Raises UsageError if the ledger has landed batches of the pipeline, BusyError while its driver runs,
    ContractChangedError if the TOML's contract is not the newest, TerminalError for a damaged contract, and for lines
    of a contract that has no file.
    """
    pipeline = context.pipeline
    require_no_batches(context.ledger, pipeline.name)
    facts, owner = _read_facts(context), name_process("rebuild")
    cluster = read_cluster_id(context.address("kafka"), pipeline)
    _require_trace(context, facts)
    contracts = read_kept_contracts(context)
    restatements = read_restatements(context.raw_address, context.layout)
    require_whole(context.layout, restatements)
    versions = [(contract, check_contract(spark, contract)) for contract in contracts.versions]
    cutovers = contracts.cutovers.at
    if not context.is_registered():
        restore_contracts(context.ledger, context.name, versions, cutovers, WHO, WHY)
    with as_driver(context.ledger, pipeline.name, owner) as epoch:
        # Listed under the epoch: no other driver appends from now on.
        files = (*context.files.list_files(), *context.files.list_compacted_files())
        size = sum(file.length for file in files)
        log.info("reading %d files, %d bytes", len(files), size)
        with choose_codegen(spark, size):
            contents = scan(spark, context.raw_address, files, contracts)
        marker = context.markers.read_newest_readable().marker
        whole = _list_log_starts(facts) if pipeline.ingest.first_start == "earliest" else {}
        before = read_origins(context.ledger, pipeline.name)  # of a driver that landed nothing
        origins = join_origins([marker.origins if marker else {}, whole, before])
        foreign = 0
        if (named := _list_named(context.markers)) is not None:
            contents, foreign = leave_out_foreign(contents, {*named, *before})
            if foreign:
                log.warning("%d records are of a log that the root's marker does not name: they do not count", foreign)
        require_known(context, contents.unknown)
        read_nowhere = find_read_nowhere(contents)
        missing = subtract(find_missing(contents, origins), read_nowhere)
        empty = coalesce((*_find_empty_offsets(context, facts, missing), *read_nowhere))
        poison = list_quarantined_poison(context, contracts.versions)
        topic_ids = {facts.generation: facts.topic_id} if facts else {}
        with context.ledger.transaction():
            registered = restore_contracts(context.ledger, context.name, versions, cutovers, WHO, WHY)
            keep_raw_store(context.ledger, context.pipeline)
            registered.table.create(context.ledger)
            record_poison(context.ledger, context.name, poison)
            logs = KnownLogs(topic_ids, origins, empty)
            without_text = context.files.expired.read()
            record_versions(context.ledger, epoch, UNKNOWN_VERSION, UNKNOWN_VERSION)
            written = write_ledger(context.ledger, epoch, registered, files, contents, logs, without_text)
            _store_offsets(context, facts, contents)
            for each in restatements.values():
                record_restatement(context.ledger, context.name, each)
        _compare_log(context, epoch)
        # Last: until then every writer refuses the root, so that none works with half of a ledger.
        context.root.take_rebuilt(epoch, cluster, owner)
    in_log = [clip_to_held(hole, facts) for hole in written.holes] if facts else []
    return RebuildResult(pipeline.name, files, written, subtract(written.holes, in_log), foreign)


def _compare_log(context: PipelineContext, epoch: Epoch) -> None:
    """Compare the log with what the rebuilt ledger says has landed: the topic may be gone before another process does.
    What cannot be compared now, ingest and detection compare before a window is certified."""
    if facts := _read_facts(context):
        try:
            record_cuts(context.ledger, context.name, facts, context.build_source(facts), epoch)
        except OnceoverError as error:
            log.warning("the log of %s was not compared with what raw holds: %s", context.name, error)


def _require_trace(context: PipelineContext, facts: TopicFacts | None) -> None:
    """Raise UsageError if neither a topic nor raw nor rows of the pipeline exist: its TOML or an address is wrong."""
    root = context.root.read_facts(None, None)
    if facts is None and not (root.holds_raw or root.has_rows):
        raise UsageError(
            f"there is nothing to rebuild: {context.root.path} holds no raw, "
            f"aggregates.{context.name} has no rows, and the topic {context.pipeline.contract.topic} does not exist; "
            f"check the TOML of {context.name}, and the addresses, with `onceover doctor`"
        )


def _find_empty_offsets(
    context: PipelineContext, facts: TopicFacts | None, missing: Sequence[OffsetRange]
) -> tuple[OffsetRange, ...]:
    """Return the offsets that raw lacks because Kafka has no record of them, as far as its log still shows that."""
    if facts is None or not missing:
        return ()
    try:
        return find_empty(context.build_source(facts), facts, [hole for hole in missing if len(hole) <= _SMALL])
    except OnceoverError as error:
        log.warning("cannot find out which offsets hold no record, so that they are holes: %s", error)
        return ()


def _store_offsets(context: PipelineContext, facts: TopicFacts | None, contents: RawContents) -> None:
    """Continue reading behind what raw holds, where the offsets were lost with the ledger."""
    if facts is None or context.pipeline.ingest.offset_store != "postgres":
        return
    spans = (each for each in find_spans(contents, {}) if each.source.generation == facts.generation)
    ends = {each.source.kafka_partition: each.end for each in spans}
    if ends:
        LedgerOffsetStore(context.ledger, context.name).save(ends, facts.topic_id)


def _list_named(markers: MarkerFiles) -> Collection[KafkaPartition] | None:
    """List the Kafka partitions that the root's marker names, each from before its first append. None without a marker,
    and if the newest cannot be read: an older one may not name all."""
    try:
        marker = markers.read_newest().marker
    except UnreadableMarkerError:
        return None
    return None if marker is None else tuple(marker.origins)


def _list_log_starts(facts: TopicFacts | None) -> Mapping[KafkaPartition, int]:
    """Return the earliest offset in the log of each Kafka partition that exists."""
    return {KafkaPartition(facts.generation, p): start for p, start in facts.earliest.items()} if facts else {}


def _read_facts(context: PipelineContext) -> TopicFacts | None:
    """Return the topic's facts; None if the topic does not exist: raw outlives it."""
    try:
        with context.open_topic() as topic:
            return topic.facts()
    except TerminalError as error:
        log.warning("cannot read the topic's log, rebuilding from raw alone: %s", error)
        return None
